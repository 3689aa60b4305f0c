"""`load`: reads a split as a tf.data dataset that is ready for `fit`; errors name the shard.

Serialized Examples become the elements of a training loop. TensorFlow is imported at the first
call.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from recordmill.annotations.kinds import KINDS, list_stored
from recordmill.reading.dataset import SplitInfo, StoredShard, describe_split
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import tensorflow_features
from recordmill.schemas.str_path import StrPath
from recordmill.storage.stores.store import in_parallel
from recordmill.storage.tfrecord_file import DamagedFileError, read_back

if TYPE_CHECKING:
    import tensorflow as tf


HeightAndWidth = tuple[int, int]
"""Height and width, in pixels."""


def image_from(
    values: Mapping[str, Any],
    info: SplitInfo,
    key: str,
    size: HeightAndWidth | None = None,
    stored: HeightAndWidth | None = None,
) -> "tf.Tensor":
    """Returns one record's image with three channels and values from 0 to 255.

    It is uint8 as stored, or float32 if resized (bilinearly).

    Args:
        values: the record's parsed features.
        info: its split.
        key: the image's feature.
        size: what images are resized to; None: as stored.
        stored: what all images must have as stored, so that they can be batched; None: any.
    """
    import tensorflow as tf

    if info.raw:
        image = _raw_image(values, info, key)
    else:
        image = tf.io.decode_image(values[key], channels=3, expand_animations=False)
        image.set_shape((None, None, 3))
    if size is not None:
        return tf.image.resize(image, size)
    if stored:
        return tf.ensure_shape(image, (*stored, 3))
    return image


def _raw_image(values: Mapping[str, Any], info: SplitInfo, key: str) -> "tf.Tensor":
    """Returns raw pixels as uint8 with three channels; gray ones are repeated.

    Their shape is in the record, or the same for all records.
    """
    import tensorflow as tf

    height, width = info.key_of("height"), info.key_of("width")
    if height and width:
        shape = tf.stack([values[height], values[width], -1])
    elif info.image_size:
        shape = tf.constant([*info.image_size, -1], tf.int64)
    else:
        raise LoadError(
            f"{info.folder} holds raw pixels of several sizes, and its records do not say which: "
            "use decode=False"
        )
    image = tf.reshape(tf.io.decode_raw(values[key], tf.uint8), shape)
    return tf.ensure_shape(
        tf.broadcast_to(image, tf.concat([tf.shape(image)[:2], [3]], 0)), (None, None, 3)
    )


ElementShape = Literal["pair", "dict", "tuple"]


@dataclass(frozen=True, slots=True)
class ElementLayout:
    """The structure of an element.

    Attributes:
        shape: `pair`: (image, label), `dict`: values by key, `tuple`: values in the order of
            `keys`.
        keys: its features' keys.
        image: the key of the image to decode; None if none is decoded.
        multi_hot: the key of the labels that become multi-hot; None if none do.
        is_ragged: whether elements have features with a varying number of values.
        annotations: the kinds of annotations that become one array each, under their names.
    """

    shape: ElementShape
    keys: tuple[str, ...]
    image: str | None
    multi_hot: str | None
    is_ragged: bool
    annotations: tuple[str, ...] = ()

    def fields(self, kind: str, info: SplitInfo) -> dict[str, str]:
        """Returns the keys of the features from which such an array is made, by their fields."""
        stored = {feature.field: feature.key for feature in info.features}
        form = next(form for form in KINDS[kind].loaded if form <= stored.keys())
        return {field: stored[field] for field in sorted(form)}

    def needed(self, info: SplitInfo) -> set[str]:
        """Returns the keys of all features that must be parsed."""
        keys = {key for key in self.keys if key not in self.annotations}
        for kind in self.annotations:
            keys.update(self.fields(kind, info).values())
        if self.annotations or (self.image and info.raw):
            keys.update(key for field in ("height", "width") if (key := info.key_of(field)))
        if self.annotations and (image := info.key_of("encoded")):
            keys.add(image)
        return keys

    @property
    def label(self) -> str:
        """The key of a pair's label."""
        return self.keys[1]


def choose_elements(
    info: SplitInfo,
    features: Literal["all"] | Sequence[str] | None,
    decode: bool,
    annotations: Sequence[str] | None = None,
) -> ElementLayout:
    """Decides the structure of the elements.

    Args:
        info: the split.
        features: keys for a tuple of them, `all` for a dict of all; None for pairs of image and
            label if the dataset has both, otherwise a dict of all.
        decode: whether the image is decoded.
        annotations: the kinds of annotations that dicts have as arrays; None for those that need no
            decoding, if the image is decoded.

    Raises:
        LoadError: a key is not a feature of the dataset, or it does not have such annotations.
    """
    image = info.key_of("encoded")
    label = info.key_of("label") or info.key_of("labels") or info.key_of("label_text")
    decoded = image if decode else None
    every = tuple(feature.key for feature in info.features)
    many = {feature.key for feature in info.features if feature.many}
    kinds = _choose_annotations(info, annotations, decode)
    if features is None and image and label and not annotations:
        hot = label if decoded and label in many else None
        return ElementLayout("pair", (image, label), decoded, hot, label in many and not hot)
    if features is None or features == "all":
        return ElementLayout("dict", (*every, *kinds), decoded, None, bool(many), kinds)
    if isinstance(features, str):
        features = (features,)
    if annotations:
        raise LoadError(f"features is {features!r}, and annotations are in dicts: remove one")
    keys = tuple(features)
    unknown = [key for key in keys if key not in every]
    if unknown or not keys:
        missing = unknown[0] if unknown else ""
        raise LoadError(f"{info.folder} has no feature {missing!r}: choose from {', '.join(every)}")
    return ElementLayout(
        "tuple", keys, decoded if decoded in keys else None, None, not many.isdisjoint(keys)
    )


def _choose_annotations(
    info: SplitInfo, wanted: Sequence[str] | None, decode: bool
) -> tuple[str, ...]:
    """Returns the kinds of annotations that become arrays; see `choose_elements`."""
    fields = {feature.field for feature in info.features}
    kinds = {
        kind.name: kind
        for kind in list_stored(fields)
        if any(form <= fields for form in kind.loaded)
    }
    if wanted is None:
        return tuple(name for name, kind in kinds.items() if kind.is_always_loaded and decode)
    if isinstance(wanted, str):
        wanted = (wanted,)
    for name in wanted:
        if name not in kinds:
            known = ", ".join(kinds) or "none"
            raise LoadError(f"{info.folder} has no annotations {name!r}: choose from {known}")
    return tuple(wanted)


def parse_function(
    info: SplitInfo, layout: ElementLayout
) -> "Callable[[tf.Tensor], dict[str, Any]]":
    """Makes the function that parses a batch of serialized Examples into tensors by key.

    Class names become ids. Features with several values become ragged tensors. Features that the
    elements do not need are not parsed.
    """
    import tensorflow as tf

    needed = layout.needed(info)
    description = tensorflow_features(feature for feature in info.features if feature.key in needed)
    by_name = layout.shape == "pair" and layout.label == info.key_of("label_text")
    names = tf.constant(list(info.labels), tf.string)
    ids = tf.constant(list(info.labels.values()), tf.int64)
    if by_name:
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(names, ids), -1)
    else:
        table = None

    def parse(records: "tf.Tensor") -> dict[str, Any]:
        parsed = tf.io.parse_example(records, description)
        values = {
            key: tf.RaggedTensor.from_sparse(value) if isinstance(value, tf.SparseTensor) else value
            for key, value in parsed.items()
        }
        if table is not None:
            values[layout.label] = table.lookup(values[layout.label])
        return values

    return parse


def finish_function(
    info: SplitInfo,
    layout: ElementLayout,
    size: HeightAndWidth | None = None,
    stored: HeightAndWidth | None = None,
) -> "Callable[[Mapping[str, Any]], Any]":
    """Makes the function that turns parsed values into an element.

    If it decodes an image, the values are those of one record.
    """
    import tensorflow as tf

    fields = {kind: layout.fields(kind, info) for kind in layout.annotations}

    def find_size(values: Mapping[str, Any]) -> "tf.Tensor":
        height, width = info.key_of("height"), info.key_of("width")
        if height and width:
            return tf.stack([tf.cast(values[key], tf.int32) for key in (height, width)])
        if image := info.key_of("encoded"):
            return tf.shape(image_from(values, info, image))[:2]
        return tf.zeros(2, tf.int32)

    def finish(values: Mapping[str, Any]) -> Any:
        chosen = {key: values.get(key) for key in layout.keys}
        if layout.image:
            chosen[layout.image] = image_from(values, info, layout.image, size, stored)
        for kind in layout.annotations:
            made_as = info.loaded_types.get(kind, KINDS[kind].loaded_type)
            tensor = _as_tensor(kind, fields[kind], values, find_size(values), size, made_as)
            if KINDS[kind].loaded_rank == 2:
                tensor = tf.ensure_shape(tensor, size or stored or (None, None))
            chosen[kind] = tensor
        if layout.multi_hot:
            one_hot = tf.one_hot(
                values[layout.multi_hot], info.label_depth, on_value=True, off_value=False
            )
            chosen[layout.multi_hot] = tf.cast(tf.reduce_any(one_hot, axis=0), tf.float32)
        if layout.shape == "dict":
            return chosen
        return tuple(chosen[key] for key in layout.keys)

    return finish


def _as_tensor(
    kind: str,
    fields: Mapping[str, str],
    values: Mapping[str, Any],
    size: "tf.Tensor",
    resized: HeightAndWidth | None,
    made_as: str,
) -> "tf.Tensor":
    """Returns the annotations of one kind in a record as one tensor.

    Args:
        kind: the kind.
        fields: the keys of the features that it is made from, by their fields.
        values: the record's parsed features.
        size: height and width of the image as stored.
        resized: what the image is resized to; None if it is not.
        made_as: the name of the tensor's type.
    """
    import tensorflow as tf

    def convert(size: Any, *given: Any) -> Any:
        values = dict(zip(fields, given, strict=True))
        return KINDS[kind].as_array(values, (int(size[0]), int(size[1])), resized)

    given = [tf.reshape(values[key], [-1]) for key in fields.values()]
    tensor = tf.numpy_function(convert, [size, *given], made_as, stateful=False)
    tensor.set_shape([None] * KINDS[kind].loaded_rank)
    return tensor


CYCLE = 16
"""Number of shards that are interleaved. Fixed, so that the order does not depend on the number of
processors."""

_READ_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """The order of records.

    Attributes:
        shuffle: whether shards and records are shuffled, differently in each epoch.
        buffer: size of the shuffle buffer, in records.
        seed: makes the shuffling reproducible; None for a random order.
        repeat: number of epochs; -1 repeats forever.
        deterministic: whether the order must not depend on which shard answers first.
    """

    shuffle: bool
    buffer: int
    seed: int | None
    repeat: int
    deterministic: bool


def read_shards(
    info: SplitInfo, order: ReadingOrder, num_replicas: int, index: int
) -> "tuple[tf.data.Dataset, int]":
    """Reads the serialized Examples of one replica's share of a split; also returns their number.

    Replicas share the shards; if there are fewer shards than replicas, each reads all shards and
    keeps every `num_replicas`-th record. If a shard has fewer intact records than the marker says,
    reading stops with an error that names it.

    Raises:
        LoadError: a shard is missing, cannot be opened, or has another size.
    """
    import tensorflow as tf

    by_record = len(info.shards) < num_replicas
    if by_record:
        shards = info.shards
    else:
        shards = info.shards[index::num_replicas]
    if faults := [fault for fault in in_parallel(StoredShard.find_fault, shards) if fault]:
        raise LoadError(faults[0])
    files = tf.data.Dataset.from_tensor_slices(
        (
            tf.constant([shard.path for shard in shards], tf.string),
            tf.constant([shard.records for shard in shards], tf.int64),
            tf.constant([shard.bytes for shard in shards], tf.int64),
        )
    )
    if order.shuffle and not by_record:
        files = files.shuffle(len(shards), seed=order.seed)
    compression = "GZIP" if info.compression == "gzip" else ""
    records = files.interleave(
        lambda path, count, size: _read_shard(path, count, size, compression),
        cycle_length=CYCLE,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=order.deterministic or by_record,
    )
    count = sum(shard.records or 0 for shard in shards)
    if by_record:
        records = records.shard(num_replicas, index)
        count = len(range(index, count, num_replicas))
    if order.shuffle:
        records = records.shuffle(max(min(order.buffer, count), 1), seed=order.seed)
    if order.repeat != 1:
        records = records.repeat(order.repeat)
    return records, count


def _read_shard(
    path: "tf.Tensor", count: "tf.Tensor", size: "tf.Tensor", compression: str
) -> "tf.data.Dataset":
    """The records of one file, followed by an error that says why if there are not `count` of them.

    TensorFlow's own errors do not name the file, and it does not notice a file truncated between
    two records. `ignore_errors` stops at the first damage, but retries a file that cannot be
    opened, so that is checked first.
    """
    import tensorflow as tf

    fault = tf.numpy_function(_fault_before, [path, size], tf.string, stateful=True)
    fault.set_shape([])
    readable = tf.boolean_mask([path], [tf.equal(fault, "")])
    records = tf.data.TFRecordDataset(readable, compression, _READ_BYTES).ignore_errors()

    def stop(path: "tf.Tensor", fault: "tf.Tensor") -> "tf.Tensor":
        reason = tf.numpy_function(
            _fault_after, [path, fault, compression, count], tf.string, stateful=True
        )
        with tf.control_dependencies([tf.debugging.Assert(False, [reason], summarize=1)]):
            return tf.identity(path)

    return records.concatenate(tf.data.Dataset.from_tensors((path, fault)).map(stop)).take(count)


def _fault_before(path: bytes, size: Any) -> bytes:
    fault = StoredShard("", "", path.decode(), bytes=int(size)).find_fault()
    return (fault or "").encode()  # a tensor has no None


def _fault_after(path: bytes, fault: bytes, compression: bytes, count: Any) -> bytes:
    """Finds out why a file ended early: reads it again, without TensorFlow, up to the damage."""
    if fault:
        return fault
    name = path.decode()
    try:
        found = read_back(name, compression.decode().lower() or "none").records
    except (DamagedFileError, OSError) as error:
        return (
            f"the shard {name} is damaged, {error}: restore it, or convert the dataset again"
        ).encode()
    return (
        f"the shard {name} ended early; now it holds {found:,} of {count:,} records: restore it, "
        "or retry"
    ).encode()


_PARSED_AT_ONCE = 64
_SHUFFLED_BYTES = 2**28


def load(
    path: StrPath,
    split: str | Sequence[str] = "train",
    *,
    batch_size: int | None = None,
    image_size: HeightAndWidth | None = None,
    shuffle: bool | int = False,
    seed: int | None = None,
    repeat: bool | int = False,
    deterministic: bool | None = None,
    features: Literal["all"] | Sequence[str] | None = None,
    decode: bool = True,
    annotations: Sequence[str] | None = None,
    num_replicas: int = 1,
    index: int = 0,
) -> "tf.data.Dataset":
    """Reads a split, or several as one.

    Shards are read in parallel, records parsed in batches, and images decoded on all cores.
    Example: `train = recordmill.load("dataset", batch_size=32, image_size=(224, 224))`.

    Args:
        path: the dataset's folder.
        split: the split's name; several as a sequence, or joined by `+`.
        batch_size: records per batch; None for single elements.
        image_size: height and width to resize to, as float32; None: as stored, uint8. Values are 0
            to 255 in both.
        shuffle: True shuffles shards and a 256 MiB buffer of records in each epoch; a number:
            of as many records.
        seed: makes shuffling the same on every run.
        repeat: number of epochs; True repeats forever. Batches span the ends of epochs.
        deterministic: whether the order must be independent of timing; None: unless shuffled
            without a seed.
        features: None for pairs of image and label, or dicts of all features if one is missing;
            `all` for dicts; keys for tuples of those features.
        decode: False leaves images as the stored bytes.
        annotations: the kinds of annotations that dicts have as arrays, see docs/load.md.
        num_replicas: number of readers that share the shards.
        index: the index of this reader, from 0.

    Returns:
        A prefetched dataset of known cardinality, with the split's `SplitInfo` as its attribute
        `info`. A pair's label is an id, looked up if names are stored; it is multi-hot, of length
        `info.label_depth`, if images have several.

    Raises:
        LoadError: the split cannot be read as requested, or has no images. If a shard turns out to
            be damaged later, iteration raises `tf.errors.InvalidArgumentError` with its name.
    """
    _check_arguments(batch_size, image_size, num_replicas, index)
    info = _describe(path, split)
    layout = choose_elements(info, features, decode, annotations)
    order = _order(info, shuffle, seed, repeat, deterministic)
    must_fit = layout.image and batch_size and image_size is None
    finish = finish_function(info, layout, image_size, _common_size(info) if must_fit else None)
    records, count = read_shards(info, order, num_replicas, index)
    dataset = _make_elements(
        records, parse_function(info, layout), finish, layout, order, batch_size
    )
    batches = -(-count * order.repeat // (batch_size or 1))
    cardinality = batches if order.repeat > 0 or not count else -1  # tf.data's value for infinite
    return _finish(dataset, info, cardinality, num_replicas)


def _check_arguments(
    batch_size: int | None, image_size: HeightAndWidth | None, num_replicas: int, index: int
) -> None:
    if find_spec("tensorflow") is None:
        raise LoadError(
            "load needs TensorFlow, which is not installed: pip install '.[tensorflow]' in a clone"
        )
    if batch_size is not None and batch_size < 1:
        raise LoadError(f"batch_size is {batch_size}: give at least 1, or None for single elements")
    if image_size is not None and (len(image_size) != 2 or min(image_size) < 1):
        raise LoadError(f"image_size is {image_size}: give (height, width) in pixels")
    if not 0 <= index < num_replicas:
        raise LoadError(
            f"index is {index} of num_replicas {num_replicas}: count from 0 to {num_replicas - 1}"
        )


def _describe(path: StrPath, split: str | Sequence[str]) -> SplitInfo:
    """Describes the splits to read, and raises if they are empty.

    Otherwise, training on nothing would go unnoticed.
    """
    info = describe_split(path, split)
    if not info.num_examples:
        raise LoadError(
            f"the split {info.split} of {info.folder} has no images: choose another, or see its "
            "rejected.jsonl for the images that were rejected"
        )
    return info


def _order(
    info: SplitInfo,
    shuffle: bool | int,
    seed: int | None,
    repeat: bool | int,
    deterministic: bool | None,
) -> ReadingOrder:
    stored = sum(shard.bytes or 0 for shard in info.shards)
    if shuffle is True:
        buffer = max(_SHUFFLED_BYTES * info.num_examples // max(stored, 1), 1000)
    else:
        buffer = int(shuffle)
    epochs = -1 if repeat is True else max(int(repeat), 1)
    if deterministic is None:
        is_fixed = not shuffle or seed is not None
    else:
        is_fixed = deterministic
    return ReadingOrder(bool(shuffle), buffer, seed, epochs, is_fixed)


def _common_size(info: SplitInfo) -> HeightAndWidth:
    """The size that all stored images must have, since only images of one size can be batched."""
    if info.image_size is None:
        raise LoadError(
            f"images of {info.folder} differ in size: give image_size=(height, width), or no "
            "batch_size"
        )
    return info.image_size


def _make_elements(
    records: "tf.data.Dataset",
    parse: Callable[[Any], Any],
    finish: Callable[[Any], Any],
    layout: ElementLayout,
    order: ReadingOrder,
    size: int | None,
) -> "tf.data.Dataset":
    """Parses records in batches; splits them only to decode images or to yield single elements."""
    import tensorflow as tf

    parallel: dict[str, Any] = {
        "num_parallel_calls": tf.data.AUTOTUNE,
        "deterministic": order.deterministic,
    }
    if size is not None and not layout.image and not layout.annotations:
        return records.batch(size).map(parse, **parallel).map(finish, **parallel)
    dataset = (
        records.batch(_PARSED_AT_ONCE).map(parse, **parallel).unbatch().map(finish, **parallel)
    )
    if size is None:
        return dataset
    return (dataset.ragged_batch if layout.is_ragged else dataset.batch)(size)


def _finish(
    dataset: "tf.data.Dataset", info: SplitInfo, cardinality: int, num_replicas: int
) -> "tf.data.Dataset":
    import tensorflow as tf

    policy = tf.data.experimental.AutoShardPolicy
    options = tf.data.Options()
    # Already sharded; otherwise TensorFlow would shard by records, since it cannot see which files
    # elements come from.
    if num_replicas > 1:
        options.experimental_distribute.auto_shard_policy = policy.OFF
    else:
        options.experimental_distribute.auto_shard_policy = policy.DATA
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(cardinality))
    dataset = dataset.prefetch(tf.data.AUTOTUNE).with_options(options)
    dataset.info = info
    return dataset
