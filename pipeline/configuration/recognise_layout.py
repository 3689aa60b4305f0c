"""`--config auto`: recognises the layout of an input's files on the launcher, and turns it into settings."""

import posixpath
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import orjson

from recordmill import storage
from recordmill.pipeline.configuration.config import COMMENT, iter_overrides
from recordmill.pipeline.configuration.look_at_input import look_at_input
from recordmill.pipeline.configuration.setting_errors import as_yaml
from recordmill.schemas.errors import UsageError
from recordmill.schemas.formatting import format_count, printable, show_names
from recordmill.schemas.settings.source import Input, ListingSettings
from recordmill.transforms.inputs.listing.folder_sketch import IMAGE_ENDINGS, USUAL_WORDS, FolderSketch, stems_of
from recordmill.transforms.inputs.listing.patterns import Ignore, compile_globs, why_ignored
from recordmill.transforms.inputs.sources import Recognised, load_source, source_names
from recordmill.transforms.inputs.sources.class_folders import likely_classes
from recordmill.transforms.inputs.tables.known_tables import why_no_columns
from recordmill.transforms.inputs.tables.read_table import TABLE_ENDINGS

_WORKBOOKS = (".xlsx", ".xls", ".ods")
_TABLES = (*TABLE_ENDINGS, *_WORKBOOKS)

_OWN_SPLITS = ("fractions", "stratify", "from_folders", "from_source")
"""Keys below `splits` with which users decide the splits themselves."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A recognised layout.

    Attributes:
        kind: the source.
        why: the files that show it.
        flags: the flags that replace `--config auto` the next time.
    """

    kind: str
    why: str
    flags: str


class LayoutFinder:
    """Recognises the layouts of a run's inputs, and reports them.

    Attributes:
        found: the recognised layout; None if there is none, or none was needed.
    """

    def __init__(self, inputs: Sequence[Input], say: Callable[[str], None]) -> None:
        self._inputs, self._say = inputs, say
        self.found: Layout | None = None

    @property
    def comment(self) -> str:
        """The line of the dataset's `config.yaml` that says what was recognised, and why."""
        return f"{COMMENT}{self.found.kind}: {printable(self.found.why)}\n" if self.found else ""

    def fill_in(self, written: Mapping[str, Any]) -> dict[str, Any]:
        """Adds recognised settings to the given ones, which stay; both are in YAML's shape.

        If `source.kind` is given, only this kind is considered; if file names do not show it, the usual words for
        splits are used.

        Raises:
            UsageError: the user must choose between layouts, or give more settings.
        """
        source = _part(written, "source")
        kinds = [source["kind"]] if "kind" in source else _kinds_with(source)
        found: list[tuple[Input, Recognised]] = []
        try:
            for each in self._inputs:
                if recognised := _look(each.path, kinds, written):
                    found.append((each, recognised))
        except UsageError:
            raise
        except (OSError, ValueError):  # the job may have other permissions; `preflight` reports unknown stores
            pass
        if not found:
            gives_words = "kind" in source and load_source(source["kind"]).gives_words
            usual = {"splits": {"from_source": USUAL_WORDS}} if gives_words else {}
            return {**_without_splits(usual, written), **written}
        settings = _without_splits(found[0][1].settings, written)
        if any(_without_splits(recognised.settings, written) != settings for _, recognised in found):
            looks = ", ".join(f"{each.path} looks like {recognised.kind}" for each, recognised in found)
            raise UsageError(f"the inputs have different layouts ({looks}): convert them one by one, or write --config")
        layout = self.found = Layout(found[0][1].kind, found[0][1].why, flags_of(settings))
        self._say(f"recognised {layout.kind}: {layout.why}; to set it explicitly: {layout.flags}")
        return _merge(settings, written)


def _look(place: str, kinds: Sequence[str], written: Mapping[str, Any]) -> Recognised | None:
    """Recognises one input.

    Raises:
        UsageError: as for `recognise`; or all annotations are in one folder, or no file looks like an image, or a
            table is not understood.
        OSError: the input cannot be listed.
    """
    ignore = partial(why_ignored, _listing(written))
    sketch = look_at_input(place, ignore)
    found = recognise(sketch, kinds, place, written)
    top, others = sketch.top, [kind for kind in kinds if kind != "class_folders"]
    if (not found or found.kind == "class_folders") and len(top.folders) == 1 and not top.images:
        folder = f"{place}/{top.folders[0]}"
        below = look_at_input(folder, ignore)
        inside = recognise(below, kinds if below.split_folders else others, folder, written)
        if inside and inside.is_firm:
            looks = f"{folder} looks like {inside.kind} ({inside.why})"
            raise UsageError(f"{looks}: let --input end in /{top.folders[0]}")
    if found and found.kind == "class_folders" and "source" not in written and not sketch.split_folders:
        _refuse_annotations_below(sketch, place, others, ignore)
    if (not found or found.kind == "class_folders") and "source" not in written:
        _refuse_tables(sketch, place, _listing(written).ignore)
    if not found and "source" not in written and top.files and not top.folders:
        _refuse_files(sketch, place)
    return found


def _refuse_annotations_below(sketch: FolderSketch, place: str, kinds: Sequence[str], ignore: Ignore) -> None:
    """Refuses class folders that are annotated datasets of their own, whose boxes would be lost."""
    about_boxes = [kind for kind in kinds if load_source(kind).is_about_boxes]
    most, below = (3, 3) if storage.is_local(place) else (1, 2)  # on a store, each folder takes at least one request
    level = [("", sketch)]
    for _ in range(below):
        inner = [posixpath.join(at, each) for at, seen in level for each in seen.folders_around[:most]]
        level = [(each, look_at_input(f"{place}/{each}", ignore)) for each in inner]
        looks = {at: found for at, seen in level for kind in about_boxes for found in load_source(kind).recognise(seen)}
        if looks:
            (at, found), *others = looks.items()
            each = " ".join(f"--input {name.replace('/', '_')}={place}/{name}" for name in looks)
            more = (", as do others", f", or give each such folder a name: {each}") if others else ("", "")
            what = f"{place}/{at} looks like {found.kind} ({found.why}){more[0]}, which --input {place} would lose"
            raise UsageError(f"{what}: let --input end in /{at}{more[1]}")


def _refuse_files(sketch: FolderSketch, place: str) -> None:
    """Refuses inputs in which no file has the extension of an image."""
    files = sketch.top.files
    endings = {posixpath.splitext(name)[1].lower() for name in files}
    if "" in endings or endings & set(IMAGE_ENDINGS):
        return
    are = "is not an image:" if len(files) == 1 else "are not images, such as"
    what = f"{format_count(len(files), 'file')} {are} {files[0]}"
    advice = "let --input name what is to be converted, or --config what it is"
    if all(name.lower().endswith(TABLE_ENDINGS) for name in files):
        named = "--set source.kind=manifest --set source.columns.uri=COLUMN if a column names images"
        advice = f"add {named}, or --config configs/observations.yaml if there are none"
    elif files == sketch.top.ending(".npz") and (
        arrays := sorted({name for inside in sketch.archives.values() for name in stems_of(inside.top.ending(".npy"))})
    ):
        named = "--set 'source={kind: arrays, images: {all: NAME}, labels: {all: NAME}}' --set images.store=png"
        advice = f"add {named} with the names of its arrays, which are {show_names(arrays)}"
    raise UsageError(f"{place}: {what}: {advice}")


def _refuse_tables(sketch: FolderSketch, place: str, ignored: Sequence[str]) -> None:
    """Refuses a table that is not understood, unless folders are several classes: its labels would be lost."""
    is_alone = (sketch.top.folders or sketch.has_images) and len(likely_classes(sketch)) < 2
    paths = [sketch.only] if sketch.only else sketch.all_ending(*_TABLES) if is_alone else ()
    tables = [path for path in paths if path.lower().endswith(_TABLES) and "submission" not in path]
    if not tables:
        return
    table = next((path for path in tables if path in sketch.heads), tables[0])
    why = why_no_columns(table, sketch)
    how = "add --set source.kind=manifest --set source.columns.uri=COLUMN if a column names images, with "
    how += "source.delimiter or source.names if it needs them"
    if table.lower().endswith(_WORKBOOKS):
        why, how = "a workbook is not read", "save it as CSV"
    what = f"is not understood as a table of images ({why})"
    if sketch.only:
        raise UsageError(f"{place} {what}: {how}, or --config configs/observations.yaml if there are no images")
    patterns = [f"/{table}"] if len(tables) == 1 else sorted({f"*{posixpath.splitext(path)[1]}" for path in tables})
    leave_out = f"leave it out with {flags_of({'ignore': [*ignored, *patterns]})}"
    how = how.replace("add", f"let --input end in /{table} and add", 1)
    raise UsageError(f"{place}/{table} {what}, and its labels would be lost: {how}, or {leave_out}")


def recognise(sketch: FolderSketch, kinds: Sequence[str], place: str, written: Mapping[str, Any]) -> Recognised | None:
    """The only possible layout of an input; None if file names do not show any.

    Args:
        sketch: the input.
        kinds: the sources to try.
        place: the input's path, for messages.
        written: the settings that the user has given.

    Raises:
        UsageError: there are several, or a setting is missing; the text has the flags.
    """
    if sketch.only:
        kinds = [kind for kind in kinds if compile_globs(load_source(kind)().files).match_file(sketch.only)]
    found = [each for kind in kinds for each in load_source(kind).recognise(sketch)]
    found = [each for each in found if each.is_firm] or found
    agreeing = [_agreements(each.settings, written) for each in found]
    found = [each for each, count in zip(found, agreeing, strict=True) if count == max(agreeing)]
    if len(found) > 1:
        whys = [each.why + (f", but {each.needs.partition(':')[0]}" if each.needs else "") for each in found]
        ways = [f"{each.kind} ({why}): {flags_of(each.settings)}" for each, why in zip(found, whys, strict=True)]
        raise UsageError(f"{place} may be meant in {len(found)} ways, choose one: {'; or '.join(ways)}")
    for each in found:
        if each.needs and not any(_has_key(written, key) for key in each.needed_keys):
            raise UsageError(f"{place} looks like {each.kind} ({each.why}), but {each.needs}")
    return next(iter(found), None)


def flags_of(settings: Mapping[str, Any]) -> str:
    """Settings, which are two levels deep at most, as flags for a shell."""
    flags = []
    for path, value in iter_overrides(settings):
        text = as_yaml(value)
        text = orjson.dumps(value).decode() if "'" in text else text  # shells also quote with '
        flags.append(f"--set {shlex.quote(f'{path}={text}')}")
    return " ".join(flags)


def _kinds_with(source: Mapping[str, Any]) -> list[str]:
    """The kinds of source that have all the given settings."""
    return [kind for kind in source_names() if set(source) <= {each.name for each in fields(load_source(kind))}]


def _listing(written: Mapping[str, Any]) -> ListingSettings:
    """The given `include` and `ignore`, without values of other types."""
    given = [written.get(key) for key in ("include", "ignore")]
    texts = [each if isinstance(each, list) and all(isinstance(one, str) for one in each) else [] for each in given]
    return ListingSettings(include=tuple(texts[0]), ignore=tuple(texts[1]))


def _agreements(settings: Any, written: Any) -> int:
    """The number of settings that are given with the same value; negative if one has another value."""
    if isinstance(settings, Mapping) and isinstance(written, Mapping):
        counts = [_agreements(value, written[key]) for key, value in settings.items() if key in written]
        return min(counts) if counts and min(counts) < 0 else sum(counts)
    return 1 if settings == written else -1


def _without_splits(settings: Mapping[str, Any], written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Recognised settings, without those about splits if the user decides these."""
    splits, labels = _part(written, "splits"), _part(written, "labels")
    given = settings.get("splits", {})
    are_classes = bool(given.get("from_folders")) and set(given["from_folders"]) <= set(labels.get("classes") or ())
    patterns = [[_part(each, "source").get(key) for each in (settings, written)] for key in ("split", "sets")]
    are_other_words = "from_source" in given and any(own not in (None, found) for found, own in patterns)
    if not (are_classes or are_other_words or any(splits.get(key) for key in _OWN_SPLITS)):
        return settings
    kept = {key: value for key, value in settings.items() if key != "splits"}
    if "source" in kept:  # patterns that find words for splits would have no effect
        idle = set(load_source(kept["source"]["kind"]).split_settings)
        kept["source"] = {key: value for key, value in kept["source"].items() if key not in {*idle, "sets"}}
        if isinstance(columns := kept["source"].get("columns"), Mapping):
            kept["source"]["columns"] = {key: value for key, value in columns.items() if key != "split"}
    return kept


def _part(written: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The settings below a key; empty unless they are a mapping."""
    part = written.get(key)
    return part if isinstance(part, dict) else {}


def _has_key(written: Any, path: str) -> bool:
    key, _, below = path.partition(".")
    return isinstance(written, dict) and key in written and (not below or _has_key(written[key], below))


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merges settings key by key; those of `over` win, and an empty mapping there stays empty."""
    merged = {**under, **over}
    for key in under.keys() & over.keys():
        if over[key] and isinstance(under[key], Mapping) and isinstance(over[key], Mapping):
            merged[key] = _merge(under[key], over[key])
    return merged
