"""`load`: one split of a dataset as a tf.data dataset, ready for `fit`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from recordmill.reading.load.elements import ElementLayout, choose_elements, finish_function, parse_function
from recordmill.reading.load.image_tensors import Fit, ImageLayout
from recordmill.reading.load.shard_records import ReadingOrder, read_shards
from recordmill.reading.load.split_info import SplitInfo, describe_split
from recordmill.schemas.errors import LoadError

if TYPE_CHECKING:
    import tensorflow as tf

Uneven = Literal["ragged", "padded"]

_PARSED_AT_ONCE = 64
_SHUFFLED_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class _Batches:
    """How elements are batched; without `size`, they are not."""

    size: int | None
    drop_remainder: bool
    uneven: Uneven | None
    deterministic: bool

    def __post_init__(self) -> None:
        if self.uneven not in (None, "ragged", "padded"):
            raise LoadError(f"uneven is {self.uneven!r}: choose ragged or padded")


def load(
    path: str,
    split: str | Sequence[str] = "train",
    *,
    batch_size: int | None = None,
    image_size: tuple[int, int] | None = None,
    fit: Fit = "stretch",
    channels: int = 3,
    shuffle: bool | int = False,
    seed: int | None = None,
    repeat: bool | int = False,
    deterministic: bool | None = None,
    drop_remainder: bool = False,
    features: Literal["all"] | Sequence[str] | None = None,
    decode: bool = True,
    uneven: Uneven | None = None,
    num_replicas: int = 1,
    index: int = 0,
    input_context: "tf.distribute.InputContext | None" = None,
) -> "tf.data.Dataset":
    """Reads a split, or several as one: shards in parallel, parsed in batches, decoded on all processors, prefetched.

    Args:
        path: the dataset's folder.
        split: the split's name; several as a sequence, or joined by `+`.
        batch_size: records per batch; None for single elements.
        image_size: height and width to resize to, as float32; None: as stored, uint8. Both are from 0 to 255.
        fit: how an image of another aspect ratio fills `image_size`: `stretch`, `crop` or `pad`.
        channels: 3, 1 (grayscale) or 0 (as stored).
        shuffle: True shuffles shards, and records in a buffer of 256 MiB, in each epoch; a number: of that many.
        seed: makes shuffling the same on every run.
        repeat: number of epochs; True repeats forever. Batches span the ends of epochs.
        deterministic: whether the order is the same everywhere; None: unless shuffled without a seed.
        drop_remainder: drops a last batch that is not full.
        features: None for pairs of image and label if the dataset has both, otherwise for dicts of all features; `all`
            for such dicts in any case; keys for tuples of those features.
        decode: False leaves images as the stored bytes.
        uneven: batches values that differ in length as `ragged` tensors, or `padded` with zeros.
        num_replicas: number of readers that share the shards.
        index: the index of this reader, from 0.
        input_context: gives both, inside `tf.distribute`; `batch_size` is then the total of all replicas.

    Returns:
        A dataset of known cardinality, with the split's `SplitInfo` as its attribute `info`. A pair's label is an id,
        looked up if names are stored; for images with several labels it is multi-hot, of length `info.label_depth`.

    Raises:
        LoadError: it cannot be read as requested, or has no images. A shard that turns out to be damaged later raises
            `tf.errors.InvalidArgumentError` with its name.
    """
    _check_tensorflow()
    num_replicas, index, batch_size = _share(num_replicas, index, batch_size, input_context)
    info = _describe(path, split)
    layout = choose_elements(info, features, decode)
    order = _order(info, shuffle, seed, repeat, deterministic)
    batches = _Batches(batch_size, drop_remainder, uneven, order.deterministic)
    images = ImageLayout(image_size, fit, channels, _size_of_all(info, layout, image_size, batches))
    records, count = read_shards(info, order, num_replicas, index)
    dataset = _make_elements(records, info, layout, images, batches)
    return _finish(dataset, info, _cardinality(count, order.repeat, batches), num_replicas)


def _describe(path: str, split: str | Sequence[str]) -> SplitInfo:
    """The splits to read; an empty one raises, since training on nothing would pass silently."""
    info = describe_split(path, split)
    if not info.num_examples:
        raise LoadError(
            f"the split {info.split} of {info.folder} has no images: choose another; its rejected.jsonl says which "
            "images could not be taken"
        )
    return info


def _check_tensorflow() -> None:
    try:
        import tensorflow  # noqa: F401  # here, to report its absence in one sentence
    except ModuleNotFoundError:
        raise LoadError(
            "load needs TensorFlow, which is not installed: pip install '.[tensorflow]' in a clone"
        ) from None


def _share(
    num_replicas: int, index: int, batch_size: int | None, context: "tf.distribute.InputContext | None"
) -> tuple[int, int, int | None]:
    """The number of readers, the index of this one, and its batch size."""
    if batch_size is not None and batch_size < 1:
        raise LoadError(f"batch_size is {batch_size}: give at least 1, or None for single elements")
    if context is not None:
        own = context.get_per_replica_batch_size(batch_size) if batch_size else None
        return context.num_input_pipelines, context.input_pipeline_id, own
    if not 0 <= index < num_replicas:
        raise LoadError(f"index is {index} of num_replicas {num_replicas}: count from 0 to {num_replicas - 1}")
    return num_replicas, index, batch_size


def _order(
    info: SplitInfo, shuffle: bool | int, seed: int | None, repeat: bool | int, deterministic: bool | None
) -> ReadingOrder:
    stored = sum(shard.bytes or 0 for shard in info.shards)
    buffer = max(_SHUFFLED_BYTES * info.num_examples // max(stored, 1), 1000) if shuffle is True else int(shuffle)
    epochs = -1 if repeat is True else max(int(repeat), 1)
    is_fixed = (not shuffle or seed is not None) if deterministic is None else deterministic
    return ReadingOrder(bool(shuffle), buffer, seed, epochs, is_fixed)


def _size_of_all(
    info: SplitInfo, layout: ElementLayout, image_size: tuple[int, int] | None, batches: _Batches
) -> tuple[int, int] | None:
    """The size that stored images must have, if only images of one size can be batched."""
    if not layout.image or batches.size is None or image_size or batches.uneven or not info.num_examples:
        return None
    if info.image_size is None:
        raise LoadError(
            f"images of {info.folder} differ in size: give image_size=(height, width), or uneven='ragged' or 'padded'"
        )
    return info.image_size


def _make_elements(
    records: "tf.data.Dataset", info: SplitInfo, layout: ElementLayout, images: ImageLayout, batches: _Batches
) -> "tf.data.Dataset":
    """Parses in batches; splits them only if records are decoded or requested one by one."""
    import tensorflow as tf

    parallel: dict[str, Any] = {"num_parallel_calls": tf.data.AUTOTUNE, "deterministic": batches.deterministic}
    size, whole = batches.size, batches.size is not None and not layout.image
    parsed = records.batch(size if whole else _PARSED_AT_ONCE, drop_remainder=whole and batches.drop_remainder)
    dataset = parsed.map(parse_function(info, layout, padded=whole and batches.uneven == "padded"), **parallel)
    finish = finish_function(info, layout, images)
    if whole:
        return dataset.map(finish, **parallel)
    dataset = dataset.unbatch().map(finish, **parallel)
    if size is None:
        return dataset
    uneven = batches.uneven or ("ragged" if layout.is_ragged else None)
    batch = {None: dataset.batch, "ragged": dataset.ragged_batch, "padded": dataset.padded_batch}[uneven]
    return batch(size, drop_remainder=batches.drop_remainder)


def _finish(dataset: "tf.data.Dataset", info: SplitInfo, cardinality: int, num_replicas: int) -> "tf.data.Dataset":
    import tensorflow as tf

    policy = tf.data.experimental.AutoShardPolicy
    options = tf.data.Options()
    # Already sharded; otherwise TensorFlow would shard by records, since it cannot see which files elements come from.
    options.experimental_distribute.auto_shard_policy = policy.OFF if num_replicas > 1 else policy.DATA
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(cardinality))
    dataset = dataset.prefetch(tf.data.AUTOTUNE).with_options(options)
    dataset.info = info
    return dataset


def _cardinality(count: int, repeat: int, batches: _Batches) -> int:
    """The number of elements or batches; -1 (tf.data's value) if infinite."""
    if repeat < 0:
        return -1 if count else 0
    records, size = count * repeat, batches.size or 1
    return records // size if batches.drop_remainder else -(-records // size)
