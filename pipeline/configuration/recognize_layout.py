"""`--config auto`: recognizes the layout of an input's files, and turns it into settings.

The launcher looks at a sample of the input before the job (`look_at_input`).
"""

import posixpath
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import Any

from recordmill import storage
from recordmill.pipeline.configuration.advise_input import (
    advise_input,
    are_named_by_plan,
    find_files_around,
)
from recordmill.pipeline.configuration.config import AUTO, Layout, flags_of
from recordmill.pipeline.configuration.look_at_input import look_at_input, look_deeper
from recordmill.pipeline.configuration.offer_layouts import offer_layouts
from recordmill.pipeline.configuration.preflight import check_local_inputs, is_input_name
from recordmill.pipeline.configuration.recognize_masks import recognize_masks, suggest_masks
from recordmill.pipeline.configuration.refuse_archives import (
    refuse_contents,
    refuse_mixture,
    refuse_same_folders,
)
from recordmill.pipeline.configuration.refuse_contradictions import (
    MOST_SHOWN,
    are_no_classes,
    refuse_contradictions,
    refuse_wrapper,
)
from recordmill.pipeline.configuration.refuse_pairs import (
    find_lists,
    find_pairs_in,
    refuse_pairs,
)
from recordmill.pipeline.configuration.refuse_splits import (
    refuse_given_splits,
    refuse_splits_in_names,
    refuse_splits_of_classes,
    refuse_unclear_splits,
)
from recordmill.pipeline.configuration.refuse_tables import (
    has_table_around,
    has_tables,
    refuse_files,
    refuse_pickles,
    refuse_tables,
)
from recordmill.pipeline.configuration.refuse_versions import refuse_versions
from recordmill.pipeline.configuration.written_settings import part_of
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.source import Input, ListingSettings
from recordmill.transforms.inputs.folder_sketch import (
    USUAL_WORDS,
    FolderSketch,
    Recognized,
)
from recordmill.transforms.inputs.mask_pairs import guess_mask_folders
from recordmill.transforms.inputs.other_classes import (
    OtherClasses,
    find_folders_next_to_tables,
    may_be_classes,
)
from recordmill.transforms.inputs.patterns import (
    Ignore,
    compile_globs,
    why_ignored,
)
from recordmill.transforms.inputs.sources.source import load_source, source_names
from recordmill.transforms.inputs.suggest_pairs import suggest_pairs_beside
from recordmill.transforms.inputs.tables.recognize_tables import unused_columns

_DESCRIPTIVE = ("source", "splits", "labels", "include", "ignore", "convention")
"""Settings that say what the files mean, whether users or recognition gave them."""

_NUMBERED = frozenset(("coco", "yolo"))
"""Sources that number classes, each collection in its own way."""

_OWN_SPLITS = ("fractions", "stratify", "from_folders", "from_source")
"""Keys below `splits` with which users decide the splits themselves."""


def fill_in(
    inputs: Sequence[Input], say: Callable[[str], None], written: Mapping[str, Any]
) -> tuple[dict[str, Any], Layout | None]:
    """Recognizes the layout of a run's inputs, reports it, and adds its settings to the given ones.

    Given settings stay. If `source.kind` is given, only this kind is considered; if file names do
    not show it, the usual words for splits are used.

    Args:
        inputs: the folders and files to read.
        say: reports a line.
        written: the given settings, in YAML's shape.

    Returns:
        All settings, in YAML's shape; and the layout, or None if none is recognized.

    Raises:
        UsageError: the user must choose between layouts, or give more settings.
        RecordmillError: an input on this machine does not exist, or cannot be read.
    """
    check_local_inputs(inputs)
    source = part_of(written, "source")
    kinds = [source["kind"]] if "kind" in source else _kinds_with(source)
    found: list[tuple[Input, Recognized]] = []
    try:
        looks = [(each, _look(each.path, kinds, written, len(inputs))) for each in inputs]
        found = [(each, recognized) for each, recognized in looks if recognized]
    except UsageError:
        raise
    except (
        OSError,
        ValueError,
    ):
        # The job may have other permissions; `preflight` reports unknown stores.
        pass
    if not found:
        gives_words = "kind" in source and load_source(source["kind"]).gives_words
        usual = {"splits": {"from_source": USUAL_WORDS}} if gives_words else {}
        return {**_without_splits(usual, written), **written}, None
    settings = _without_chosen(found[0][1].settings, written)
    if any(_without_chosen(recognized.settings, written) != settings for _, recognized in found):
        kinds = [f"{each.path} looks like {recognized.kind}" for each, recognized in found]
        alone = " or ".join(f"--input {shlex.quote(each.path)}" for each, _ in found)
        raise UsageError(
            f"inputs have different layouts ({', '.join(kinds)}): convert each by itself, with "
            f"{alone}, or describe what they have in common with --config"
        )
    merged = _merge(settings, written)
    in_use = {key: merged[key] for key in (*settings, *_DESCRIPTIVE) if key in merged}
    first = found[0][1]
    why = first.describe(unused_columns(_columns_of(first), part_of(merged, "source")))
    if first.kind == "class_folders" and not gives_classes(merged):
        why = "images without labels" if gives_classes(settings) else why
    layout = Layout(first.kind, why, flags_of(in_use), _find_other_classes(found, in_use))
    say(f"recognized {layout.kind}: {layout.why}; to set it explicitly: {layout.flags}")
    return merged, layout


def _find_other_classes(
    found: Sequence[tuple[Input, Recognized]], in_use: Mapping[str, Any]
) -> OtherClasses | None:
    """Returns the folders of all inputs that may be classes, next to tables that name images."""
    folders = frozenset[str]().union(*(each.class_folders for _, each in found))
    if not folders:
        return None
    tables: dict[str, None] = {}
    for _, each in found:
        tables.update(dict.fromkeys(each.tables))
    return OtherClasses(
        folders,
        tuple(tables),
        tuple(shlex.split(flags_of({**in_use, "layout": AUTO}))),
        are_inputs_named=any(each.name for each, _ in found),
        may_be_classes=may_be_classes(folders),
    )


def _columns_of(found: Recognized) -> list[str]:
    """Returns the columns of a table, those that the recognized settings name first."""
    columns = found.settings["source"].get("columns", {})
    named = [each for each in columns.values() if isinstance(each, str) and "{" not in each]
    return [*dict.fromkeys((*filter(None, named), *found.left_out))]


def _look(
    place: str, kinds: Sequence[str], written: Mapping[str, Any], inputs: int
) -> Recognized | None:
    """Recognizes one of a number of inputs.

    Raises:
        UsageError: as for `recognize`; or all annotations are in one folder, or no file looks like
            an image, or a table is not understood.
        OSError: the input cannot be listed.
    """
    listing = _listing(written)
    ignore = partial(why_ignored, listing)
    sketch = replace(look_at_input(place, ignore), ignored=listing.ignore)
    others = [kind for kind in kinds if kind != "class_folders"]
    if others != kinds and not sketch.only:
        sketch = replace(sketch, deeper=look_deeper(sketch, ignore, inputs))
    inner = partial(recognize, written=written, inputs=inputs)
    try:
        found = _recognize_or_refuse(sketch, kinds, place, written, inputs)
    except UsageError:
        if "source" not in written:  # what is in the only folder comes before what is unclear
            with suppress(_UnclearFolderError):
                _refuse_folder_around(sketch, place, written, kinds, inner)
        raise
    classes_or_none = not found or found.kind == "class_folders"
    if classes_or_none:
        if "source" not in written and has_table_around(sketch):
            refuse_tables(sketch, place, written)
        _refuse_folder_around(sketch, place, written, kinds, inner)
    found = found and _with_class_folders(found, sketch, written)
    if "source" in written:
        return found
    if found and found.kind == "class_folders":
        _refuse_as_classes(found, sketch, place, written, others)
    refuse_versions(sketch, place, found)
    if classes_or_none:
        refuse_tables(sketch, place, written)
    if not found and sketch.top.files and not sketch.top.folders:
        refuse_files(sketch, place)
    return found


def _refuse_as_classes(
    found: Recognized,
    sketch: FolderSketch,
    place: str,
    written: Mapping[str, Any],
    others: Sequence[str],
) -> None:
    """Refuses class folders that are something else; `others` are the other kinds of sources."""
    if not sketch.split_folders:
        ignore = partial(why_ignored, _listing(written))
        _refuse_annotations_below(sketch, place, others, ignore)
    if gives_classes(found.settings):
        _refuse_folders(sketch, place, written)
    if not _gives_splits(written) and "splits" not in found.settings:
        class_from = found.settings["source"].get("class_from", "first_folder")
        refuse_splits_in_names(sketch, place, class_from)


def _with_class_folders(
    found: Recognized, sketch: FolderSketch, written: Mapping[str, Any]
) -> Recognized:
    """Adds the folders that may be classes next to tables, unless the user chose the tables."""
    is_chosen = bool(sketch.only) or _has_key(written, "source.kind")
    if not found.tables or is_chosen:
        return found
    return replace(found, class_folders=find_folders_next_to_tables(sketch))


class _UnclearFolderError(UsageError):
    """An input's only folder may be meant in several ways."""


def _refuse_folder_around(
    sketch: FolderSketch,
    place: str,
    written: Mapping[str, Any],
    kinds: Sequence[str],
    recognize_inner: Callable[[FolderSketch, Sequence[str], str], Recognized | None],
) -> None:
    """Refuses an input whose only folder is an input of its own."""
    if len(sketch.top.folders) != 1 or sketch.top.images:
        return
    (only,) = sketch.top.folders
    folder = f"{place}/{only}"
    below = look_at_input(folder, _ignore_below(only, partial(why_ignored, _listing(written))))
    others = [kind for kind in kinds if kind != "class_folders"]
    try:
        inside = recognize_inner(below, kinds if below.split_folders else others, folder)
    except UsageError:  # its commands are for the folder
        where = advise_input(sketch, place, only)
        raise _UnclearFolderError(f"{place}: all images are in {only}: use {where}") from None
    if not inside or not (inside.is_firm or below.split_folders):
        return
    # The plan names files around folders of images, and advises the same.
    around = find_files_around(sketch, only, sketch.ignored)
    are_named = "source" not in written and are_named_by_plan(sketch, around)
    are_given = "class_from" in part_of(written, "source")
    if inside.kind != "class_folders" or not (are_named or are_given):
        raise _lies_below(sketch, place, only, inside)


def _gives_splits(written: Mapping[str, Any]) -> bool:
    """Returns whether the user decides the splits."""
    given = part_of(written, "splits")
    return any(given.get(key) for key in _OWN_SPLITS)


def _refuse_folders(sketch: FolderSketch, place: str, written: Mapping[str, Any]) -> None:
    """Refuses folders that cannot be classes, or may be something else."""
    splits = part_of(written, "splits").get("from_folders")
    if splits:
        if isinstance(splits, dict):
            refuse_given_splits(sketch, place, splits)
        return
    if not part_of(written, "labels").get("classes"):
        refuse_unclear_splits(sketch, place)
    if not sketch.split_folders:  # with these, the first folders are not classes
        refuse_wrapper(sketch, place)
    refuse_contradictions(sketch, place)


def _recognize_or_refuse(
    sketch: FolderSketch,
    kinds: Sequence[str],
    place: str,
    written: Mapping[str, Any],
    inputs: int,
) -> Recognized | None:
    """Recognizes a layout; a table that is not understood comes before what else is unclear.

    Raises:
        UsageError: as for `recognize`, or a table is not understood.
    """
    if "source" not in written and not sketch.has_images:
        refuse_pickles(sketch.top, place)
    try:
        if "source" not in written and _may_be_classes_only(sketch, kinds):
            refuse_tables(sketch, place, written)
        if "source" not in written and "archives" in kinds:
            refuse_contents(sketch, place, are_splits_given=_gives_splits(written))
            refuse_same_folders(sketch, place)
        return recognize(sketch, kinds, place, written, inputs)
    except UsageError:
        if "source" not in written and not has_tables(sketch):
            refuse_tables(sketch, place, written)
        raise


def _may_be_classes_only(sketch: FolderSketch, kinds: Sequence[str]) -> bool:
    """Returns whether there are several ways, and none reads a file of labels."""
    ways = [each.kind for each in _recognize_as(kinds, sketch)]
    return len(ways) > 1 and set(ways) == {"class_folders"}


def _ignore_below(folder: str, ignore: Ignore) -> Ignore:
    """Returns the same decision for paths that begin in a folder of the input."""
    return lambda path, is_folder: ignore(f"{folder}/{path}", is_folder)


def gives_classes(settings: Mapping[str, Any]) -> bool:
    """Returns whether folders would be classes."""
    return settings["source"].get("class_from") != "none"


def _lies_below(sketch: FolderSketch, place: str, folder: str, found: Recognized) -> UsageError:
    looks = f"{place}/{folder} looks like {found.kind} ({found.why})"
    where = advise_input(sketch, place, folder)
    return UsageError(f"{looks}, which the folders around it would lose: use {where}")


def _lie_below(sketch: FolderSketch, place: str, annotated: Mapping[str, Recognized]) -> UsageError:
    """Says that several folders are annotated datasets, with the flags for each and for all."""
    looks = [f"{place}/{at} looks like {each.kind} ({each.why})" for at, each in annotated.items()]
    ways = [f"to convert {at} alone, use {advise_input(sketch, place, at)}" for at in annotated]
    kinds = {each.kind for each in annotated.values()}
    names = {at: at.replace("/", "_") for at in annotated}
    if len(kinds) == 1 and not kinds & _NUMBERED and all(map(is_input_name, names.values())):
        together = " ".join(
            f"--input {shlex.quote(f'{name}={place}/{at}')}" for at, name in names.items()
        )
        ways.append(f"to convert these together, use {together}")
    return UsageError(
        f"{', '.join(looks)}, which the folders around them would lose: {'; '.join(ways)}"
    )


def _refuse_annotations_below(
    sketch: FolderSketch, place: str, kinds: Sequence[str], ignore: Ignore
) -> None:
    """Refuses class folders that are annotated datasets of their own, whose boxes would be lost."""
    about_boxes = [kind for kind in kinds if load_source(kind).is_about_boxes]
    # On a store, each folder takes at least one request.
    most, below = (MOST_SHOWN, 3) if storage.is_local(place) else (1, 2)
    level = [("", sketch)]
    for _ in range(below):
        inner = []
        for at, seen in level:
            around = [
                each
                for each in seen.top.folders
                if seen.at(each).folders and not seen.at(each).images
            ]
            inner += [posixpath.join(at, each) for each in around[:most]]
        level = [(each, look_at_input(f"{place}/{each}", ignore)) for each in inner]
        found = {at: next(_recognize_as(about_boxes, seen), None) for at, seen in level}
        annotated = {at: each for at, each in found.items() if each}
        if len(annotated) > 1:
            raise _lie_below(sketch, place, annotated)
        for at, each in annotated.items():
            raise _lies_below(sketch, place, at, each)


def recognize(
    sketch: FolderSketch,
    kinds: Sequence[str],
    place: str,
    written: Mapping[str, Any],
    inputs: int = 1,
) -> Recognized | None:
    """Returns the only possible layout of an input; None if file names do not show any.

    Args:
        sketch: the input.
        kinds: the sources to try.
        place: the input's path, for messages.
        written: the settings that the user has given.
        inputs: how many inputs share the requests to a store.

    Raises:
        UsageError: there are several, or a setting is missing; the text has the flags.
    """
    if sketch.only and sketch.only not in sketch.record_files:
        kinds = [
            kind
            for kind in kinds
            if compile_globs(load_source(kind)().files).match_file(sketch.only)
        ]
    found = [*_recognize_as(kinds, sketch)]
    others = [each for each in found if each.is_firm and each.kind != "class_folders"]
    if not others:
        segmented = _recognize_pairs(sketch, kinds, place, written, inputs)
        found = [segmented] if segmented else found
    found = [each for each in found if _is_offered(each, written)]
    found = _without_named_folders([each for each in found if each.is_firm] or found)
    if "source" not in written:
        refuse_mixture(found, sketch, place, _listing(written).ignore)
    agreeing = [_agreements(each.settings, written) for each in found]
    found = [each for each, count in zip(found, agreeing, strict=True) if count == max(agreeing)]
    for each in found:
        if each.is_urgent:
            _ask(each, place, written)
    if len(found) > 1 and are_no_classes(sketch):
        found = [each for each in found if not _makes_classes(each)] or found
    if len(found) > 1:
        ways = offer_layouts(found, sketch)
        if both := suggest_pairs_beside(sketch.images, sketch.split_folders):
            ways.append(f"class_folders (pairs of images, each in one record): {flags_of(both)}")
        raise UsageError(
            f"{place} may be meant in {len(ways)} ways, choose one: {'; or '.join(ways)}"
        )
    for each in found:
        _ask(each, place, written)
    return next(iter(found), None)


def _recognize_pairs(
    sketch: FolderSketch,
    kinds: Sequence[str],
    place: str,
    written: Mapping[str, Any],
    inputs: int,
) -> Recognized | None:
    """Recognizes images with masks; None if there are none.

    Raises:
        UsageError: there are second images besides masks, or splits, and all would be class
            folders.
    """
    if "image_masks" not in kinds and "class_folders" not in kinds:
        return None
    listing, pairs = _listing(written), find_pairs_in(sketch, inputs)
    found = None
    likely = pairs or guess_mask_folders(sketch.images)
    lists = find_lists(sketch, likely) if likely else []
    if likely and "image_masks" in kinds:
        source = part_of(written, "source")
        found = recognize_masks(sketch, likely, lists, listing, source, inputs)
    if found is None and "class_folders" in kinds and "source" not in written:
        drawn = suggest_masks(sketch, likely, lists, listing, inputs) if likely else None
        refuse_pairs(sketch, place, listing, pairs, drawn)
        if "splits" not in written:
            refuse_splits_of_classes(sketch, place)
    return found


def _recognize_as(kinds: Sequence[str], sketch: FolderSketch) -> Iterator[Recognized]:
    """Yields the layouts that sources of these kinds recognize."""
    for kind in kinds:
        yield from load_source(kind).recognize(sketch)


def _is_offered(found: Recognized, written: Mapping[str, Any]) -> bool:
    """Returns whether a layout is possible with the given settings."""
    return not found.only_if or any(_has_key(written, key) for key in found.only_if)


def _makes_classes(found: Recognized) -> bool:
    """Returns whether a layout makes classes of folders."""
    return found.kind == "class_folders" and gives_classes(found.settings)


def _without_named_folders(found: Sequence[Recognized]) -> list[Recognized]:
    """The layouts without class folders if a table names the classes of the images in them."""
    if not any(each.replaces_folders for each in found):
        return list(found)
    return [each for each in found if each.kind != "class_folders"]


def _ask(found: Recognized, place: str, written: Mapping[str, Any]) -> None:
    """Raises a UsageError for the first thing that the user has not said yet, if there is one."""
    for needs, keys in ((found.needs, found.needed_keys), *found.questions):
        if needs and not any(_has_key(written, key) for key in keys):
            raise UsageError(f"{place} looks like {found.kind} ({found.why}), but {needs}")


def _kinds_with(source: Mapping[str, Any]) -> list[str]:
    """Returns the kinds of source that have all the given settings."""
    return [kind for kind in source_names() if set(source) <= _setting_names(kind)]


def _setting_names(kind: str) -> set[str]:
    """Returns the names of the settings of a source."""
    return {each.name for each in fields(load_source(kind))}


def _listing(written: Mapping[str, Any]) -> ListingSettings:
    """Returns what is given of files and groups, without values of other types."""
    splits = written.get("splits")
    group = splits.get("group") if isinstance(splits, dict) else None
    return ListingSettings(
        include=_texts(written, "include"),
        ignore=_texts(written, "ignore"),
        group=str(group) if group else None,
    )


def _texts(written: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Returns a list of texts; empty unless the value is one."""
    given = written.get(key)
    if isinstance(given, list) and all(isinstance(each, str) for each in given):
        return tuple(given)
    return ()


def _agreements(settings: Any, written: Any) -> int:
    """Returns the number of settings that are given with the same value.

    It is negative if one has another value.
    """
    if isinstance(settings, Mapping) and isinstance(written, Mapping):
        counts = [
            _agreements(value, written[key]) for key, value in settings.items() if key in written
        ]
        return min(counts) if counts and min(counts) < 0 else sum(counts)
    return 1 if settings == written else -1


def _without_chosen(settings: Mapping[str, Any], written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns recognized settings, without those about splits and ids that the user decides."""
    settings = _without_splits(settings, written)
    labels = part_of(written, "labels")
    has_none = not part_of(written, "source").get("label_part", "cls")
    is_given = labels.get("classes") or labels.get("offset") is not None
    if "ids" in labels or not (has_none or is_given):
        return settings
    # Ids need labels; a list of classes, or the first id, would contradict the ids of the data.
    own = {key: value for key, value in part_of(settings, "labels").items() if key != "ids"}
    kept = {key: value for key, value in settings.items() if key != "labels"}
    return {**kept, "labels": own} if own else kept


def _without_splits(settings: Mapping[str, Any], written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns recognized settings, without those about splits if the user decides these."""
    splits, labels = part_of(written, "splits"), part_of(written, "labels")
    given = settings.get("splits", {})
    are_classes = bool(given.get("from_folders")) and set(given["from_folders"]) <= set(
        labels.get("classes") or ()
    )
    recognized, own = part_of(settings, "source"), part_of(written, "source")
    are_other_words = "from_source" in given and any(
        own.get(key) not in (None, recognized.get(key)) for key in ("split", "sets")
    )
    if not (are_classes or are_other_words or any(splits.get(key) for key in _OWN_SPLITS)):
        return settings
    kept = {key: value for key, value in settings.items() if key != "splits"}
    if "source" in kept:  # patterns that find words for splits would have no effect
        idle = set(load_source(kept["source"]["kind"]).split_settings)
        kept["source"] = {
            key: value for key, value in kept["source"].items() if key not in {*idle, "sets"}
        }
        if isinstance(columns := kept["source"].get("columns"), Mapping):
            kept["source"]["columns"] = {
                key: value for key, value in columns.items() if key != "split"
            }
    return kept


def _has_key(written: Any, path: str) -> bool:
    key, _, below = path.partition(".")
    return (
        isinstance(written, dict)
        and key in written
        and (not below or _has_key(written[key], below))
    )


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merges settings key by key; those of `over` win, and an empty mapping there stays empty."""
    merged = {**under, **over}
    for key in under.keys() & over.keys():
        if over[key] and isinstance(under[key], Mapping) and isinstance(over[key], Mapping):
            merged[key] = _merge(under[key], over[key])
    return merged
