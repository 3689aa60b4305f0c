"""The plan: derived from a summary, once for the whole run.

Notes on classes that are probably not the intended ones are made before anything is converted.
"""

import math
import shlex
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any

import orjson

from recordmill.annotations.kinds import list_stored
from recordmill.imaging import imaging_versions
from recordmill.schemas.attribute_words import (
    LONGEST_WORD,
    MOST_ATTRIBUTES,
    MOST_WORDS,
    WordIds,
)
from recordmill.schemas.conventions import Convention, is_shipped
from recordmill.schemas.dataset.json_values import hash_json, to_json
from recordmill.schemas.dataset.marker import PLAN_VERSION, About, PlanEntry, plan_id_of
from recordmill.schemas.features import ATTRIBUTE, EACH_ATTRIBUTE, feature_schema
from recordmill.schemas.formatting import agree, format_count, say_count, show_names
from recordmill.schemas.label_map import (
    LabelMap,
    build_label_map,
    is_integer_label,
    number_renamed,
)
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.schemas.settings.recipe import Recipe
from recordmill.schemas.yaml_core import write_yaml_line
from recordmill.transforms.inputs.folder_sketch import split_for_word
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS
from recordmill.transforms.inputs.listed_pairs import NUMBERS_IN_NAMES
from recordmill.transforms.inputs.sources.source import FindsClassesInFolders
from recordmill.transforms.inputs.unlikely_classes import are_unlikely_classes
from recordmill.transforms.planning.splitting import SplitCutoffs, fill_empty_splits
from recordmill.transforms.planning.summary import HashHistogram, SplitSummary, Summary


def note_classes(summary: Summary, settings: DatasetSettings, label_map: LabelMap) -> list[str]:
    """Returns the notes on classes and splits, which become part of the marker.

    Therefore, they are the same for the same images.
    """
    return [
        *_note_names_without_images(summary, settings),
        *_note_raised(label_map, settings),
        *_note_folders(summary, settings),
        *_note_unused_splits(summary, settings),
        *_note_numbers(label_map, settings),
    ]


def _note_names_without_images(summary: Summary, settings: DatasetSettings) -> Iterator[str]:
    """Notes names in `labels.rename` that no class has."""
    found = {*summary.source_names, *settings.source.classes()}
    for name in sorted(settings.labels.rename.keys() - found):
        yield f"labels.rename renames {name!r:.100}, and no class has this name: correct it"


def _note_raised(label_map: LabelMap, settings: DatasetSettings) -> Iterator[str]:
    """Notes that class ids differ from the source's numbers."""
    ids, layout = label_map.ids, ExampleLayout(settings)
    moved = [
        (name, number)
        for name, number in number_renamed(label_map.numbers, label_map.renamed).items()
        if ids.get(name, number) != number
    ]
    for name, number in moved[:1] if settings.labels.ids == "raised" else ():
        what = f"class {name} has the id {ids[name]}, not {number}, and all others are higher, too"
        why = f"ids begin at {layout.label_offset} in the convention ({layout.convention.title})"
        yield f"{what}: {why}; labels.ids=integers keeps the source's numbers"


def _note_folders(summary: Summary, settings: DatasetSettings) -> Iterator[str]:
    """Notes that all images of a class are in folders of their own, which may be the classes."""
    source = settings.source
    if not isinstance(source, FindsClassesInFolders) or source.class_from != "first_folder":
        return
    below: defaultdict[str, set[str]] = defaultdict(set)
    for _, _, ref in summary.sample:
        _, label, rest = f"/{ref.key}".partition(f"/{ref.label}/")
        # Other files are rejected when they are read.
        if label and rest.lower().endswith(IMAGE_ENDINGS):
            below[ref.label].add(rest.rpartition("/")[0].partition("/")[0])
    nested = {
        label: folders for label, folders in below.items() if len(folders) > 1 and "" not in folders
    }
    for label, folders in sorted(nested.items())[:1]:
        others = set[str]().union(*(each for name, each in below.items() if name != label))
        # The last folder would make one class of folders of one name.
        key = "path" if folders & others else "last_folder"
        advice = f"if those are the classes, set source.class_from={key}"
        if any(map(split_for_word, folders)):
            advice = (
                "if those are splits, put their folders around those of the classes, as in "
                f"{min(filter(split_for_word, folders))}/{label}"
            )
        elif are_unlikely_classes(folders):
            continue
        yield (
            f"the images of class {label} are in folders of their own, "
            f"{show_names(sorted(folders))}: {advice}"
        )


def _note_unused_splits(summary: Summary, settings: DatasetSettings) -> Iterator[str]:
    """Notes that images are in folders named after splits, and that nothing gives their splits."""
    folders = {ref.key.split("/")[0] for _, _, ref in summary.sample if "/" in ref.key}
    splits = {split_for_word(folder) for folder in folders}
    if (
        len(splits) > 1
        and all(splits)
        and not (settings.splits.given or settings.source.labels_from_folders)
    ):
        shown = show_names(sorted(folders))
        yield f"images are in folders named {shown}, and their splits do not follow these folders"


def _note_numbers(label_map: LabelMap, settings: DatasetSettings) -> Iterator[str]:
    """Notes that numeric class names have ids in text order, in which 10 comes before 2."""
    names, labels = list(label_map.ids), settings.labels
    is_found = labels.ids == "names" and not labels.classes and not label_map.numbers
    if is_found and all(map(is_integer_label, names)) and names != sorted(names, key=int):
        order = "classes are numbers, and are sorted as texts"
        yield f"{order}; labels.ids=integers makes each number the id of its class"


MOST_PER_SHARD = 1_000_000
"""References that one shard may hold: they are sorted in memory."""

OUTSIDE_PLAN_ID = frozenset(
    {"max_rejected", "expect", "analyze", "report", *(each.name for each in fields(About))}
)
"""Settings that change no byte of a shard. So a run that exceeded a limit can continue with a
higher one, and a description, or anything computed from the finished dataset, can be added
later."""


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """A dataset to be made.

    Attributes:
        plan_id: identifies the dataset's contents: equal ids, equal bytes.
        selection: how images are assigned to splits.
        starts: the first order hash of each shard, by split.
        label_map: class ids.
        summary: what was listed, without its histograms.
        skeleton: see `Marker.skeleton`; empty if no line joins parts that are stored.
        notes: messages for the user: what was lowered, moved or guessed.
        recipe: everything that the plan id stands for.
        settings: all settings in use.
        config_text: the settings as YAML: the content of `config.yaml`.
        about: a description of the dataset for people.
        estimated_bytes: expected size of the files, by split.
        problem: why no dataset can be made, in a sentence; None if one can.
    """

    plan_id: str = ""
    selection: SplitCutoffs = field(default_factory=SplitCutoffs)
    starts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    label_map: LabelMap = field(default_factory=lambda: LabelMap({}))
    summary: Summary = field(default_factory=Summary)
    skeleton: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    recipe: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    config_text: str = ""
    about: About = field(default_factory=About)
    estimated_bytes: Mapping[str, int] = field(default_factory=dict)
    problem: str | None = None

    @property
    def entry(self) -> PlanEntry:
        """The plan as the marker describes it."""
        return PlanEntry(self.plan_id, self.recipe, self.settings)

    @property
    def shard_count(self) -> int:
        """The number of shards in all splits, including those that turn out to be empty."""
        return sum(map(len, self.starts.values()))


def make_plan(
    summary: Summary,
    selection: SplitCutoffs,
    settings: DatasetSettings,
    recipe: Recipe,
    growth: float,
) -> DatasetPlan:
    """Decides splits, shards, labels and the plan id from what was listed.

    Args:
        summary: what was listed.
        selection: how images are assigned so far; empty splits are filled here.
        settings: what the dataset is.
        recipe: the settings as plain values and as text.
        growth: estimated bytes of records per byte of their sources.

    Returns:
        The plan, with a problem if the listing gives no dataset.
    """
    numbers = class_numbers(summary, settings)
    used = {*summary.classes}.union(*(each.labels for each in summary.annotations.values()))
    label_map = replace(
        build_label_map(
            summary.labels, settings.labels, ExampleLayout(settings).label_offset, numbers, used
        ),
        attributes=number_attributes(summary, settings),
        parts=summary.parts,
    )
    layout = ExampleLayout(settings, label_map.attributes)
    estimated = {name: round(split.bytes * growth) for name, split in summary.splits.items()}
    filled, cuts = _Filling(problem=_find_problem(summary, settings)), _Cuts({})
    if filled.problem is None:
        filled = _fill_splits(summary, settings)
    if filled.problem is None:
        cuts = _cut_splits(summary, settings, estimated)
    notes = [*summary.warnings, *note_classes(summary, settings, label_map), *filled.notes]
    if settings.splits.stratify and filled.problem is None:
        notes += _note_deviations(summary, settings)
    notes += [*_note_losses(summary, layout), *cuts.notes]
    described = describe_settings(layout, recipe, hash_json(label_map.ids), hash_json(cuts.starts))
    references = summary.references + summary.rejected.total() + summary.left_out.total()
    if not summary.have_same_parts():
        described["part_names"] = hash_json(summary.parts)
    described["listing"] = {"references": references, "digest": f"{summary.digest:064x}"}
    return DatasetPlan(
        plan_id=plan_id_of(described),
        selection=replace(selection, moved=filled.moved) if filled.moved else selection,
        starts=cuts.starts,
        label_map=label_map,
        summary=_without_histograms(summary),
        skeleton=find_skeleton(summary, layout),
        notes=tuple(notes),
        recipe=described,
        settings=recipe.settings,
        config_text=recipe.config_text,
        about=settings.about,
        estimated_bytes=estimated,
        problem=filled.problem or cuts.problem,
    )


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Where splits are cut into shards.

    Attributes:
        starts: the first hash of each shard, by split.
        notes: on splits with fewer shards than wanted.
        problem: why a shard would hold too much; None if none does.
    """

    starts: dict[str, list[int]]
    notes: tuple[str, ...] = ()
    problem: str | None = None


def _cut_splits(summary: Summary, settings: DatasetSettings, estimated: Mapping[str, int]) -> _Cuts:
    """Cuts the splits into shards; `estimated` is the expected size of each split's files."""
    # Only rejected things: they need a shard whose sidecar lists them.
    if not summary.references:
        return _Cuts({settings.splits.names[0]: [0]})
    starts, notes, problem = dict[str, list[int]](), list[str](), None
    # Given splits without images get no shard.
    filled = [
        name
        for name in settings.splits.names
        if name in summary.splits or not settings.splits.given
    ]
    for name in filled:
        # A split that was empty now holds one group.
        split = summary.splits.get(name, SplitSummary())
        starts[name], wanted = _cut_split(split, settings, estimated.get(name, 0))
        if len(starts[name]) < wanted and split.references:
            notes.append(
                f"split {name} is written in {len(starts[name])} shards, not {wanted}: the others "
                "would be empty"
            )
        if split.references > MOST_PER_SHARD * len(starts[name]):
            files = f"{split.references:,} {settings.unit}s into {len(starts[name])} files"
            problem = f"split {name} would put {files}: raise shards.count"
    return _Cuts(starts, tuple(notes), problem)


def _cut_split(
    split: SplitSummary, settings: DatasetSettings, estimated: int
) -> tuple[list[int], int]:
    """Returns the first hash of each shard, and how many shards were wanted."""
    is_fixed = settings.shards.cuts == "fixed"
    # Fixed cuts do not depend on the estimate, which changes from one update to the next.
    size = split.bytes if is_fixed else estimated
    wanted = settings.shards.count or max(1, math.ceil(size / settings.shards.target_bytes))
    if not is_fixed:
        return split.histogram.cut(wanted), wanted
    wanted = 1 << (wanted - 1).bit_length()  # the next power of two
    return split.histogram.cut_equally(wanted), wanted


def class_numbers(summary: Summary, settings: DatasetSettings) -> dict[str, int]:
    """Returns the source's class numbers, from its settings and from listed files."""
    return {**settings.source.classes(), **summary.numbers}


def number_attributes(summary: Summary, settings: DatasetSettings) -> dict[str, WordIds]:
    """Returns the ids of the words of each attribute of objects that is stored, by its name."""
    layout, stored = ExampleLayout(settings), dict[str, WordIds]()
    for name, tally in sorted(summary.attributes.items())[:MOST_ATTRIBUTES]:
        if not tally.is_free and _has_place(layout, name):
            stored[name] = tally.number_words()
    return stored


def find_skeleton(summary: Summary, layout: ExampleLayout) -> dict[str, tuple[str, ...]]:
    """Returns the names of the parts that lines join to each part of an object, by its name.

    It has all parts, in the order of Examples. Empty without lines, or if no part is stored.
    """
    kinds = [kind.name for kind in list_stored(layout.fields) if kind.has_lines]
    if not summary.skeleton or not kinds:
        return {}
    names = chain.from_iterable(summary.parts.get(kind, ()) for kind in kinds)
    joined: dict[str, list[str]] = {name: [] for name in names}
    for start, end in sorted(summary.skeleton):
        joined.setdefault(start, []).append(end)
    return {name: tuple(ends) for name, ends in joined.items()}


def _has_place(layout: ExampleLayout, attribute: str) -> bool:
    """Returns whether Examples have a place for an attribute of objects."""
    taken = {feature.key for feature in layout.settings.source.features()}
    return layout.convention.has_place(attribute, taken)


def describe_settings(
    layout: ExampleLayout, recipe: Recipe, label_ids: str = "", cuts: str = ""
) -> dict[str, Any]:
    """Returns everything that decides the dataset's bytes, except for the listing.

    Args:
        layout: what the dataset and its Examples are.
        recipe: the settings that differ from their defaults.
        label_ids: the digest of the class ids, once they are known.
        cuts: the digest of the first hashes of all shards, once they are known.
    """
    settings = layout.settings
    kept = {key: value for key, value in recipe.values.items() if key not in OUTSIDE_PLAN_ID}
    # Lists instead of tuples, as in a marker, to compare with one.
    plain: dict[str, Any] = orjson.loads(orjson.dumps(kept))
    # Only a location: the same images are the same dataset anywhere.
    plain["source"].pop("root", None)
    versions = imaging_versions(settings.images.formats)
    if settings.compression == "gzip":
        versions["zlib"] = zlib.ZLIB_RUNTIME_VERSION
    for kind in list_stored(layout.fields):
        versions.update(kind.find_versions())
    attribute_ids = {}
    if layout.attributes:
        attribute_ids["attribute_ids"] = hash_json(layout.attributes)
    return {
        **plain,
        "split_order": list(settings.splits.names),  # the order decides the ranges of hashes
        "feature_schema": to_json(feature_schema(layout.features)),
        "format_names": dict(layout.convention.format_names),
        "file_names": [layout.file_name(name, 0, 1, 1) for name in settings.splits.names],
        "label_offset": layout.label_offset,
        "label_ids": label_ids,
        "cuts": cuts,
        "plan_version": PLAN_VERSION,
        "versions": versions,
        **attribute_ids,
    }


def describe_before_listing(settings: DatasetSettings, recipe: Recipe) -> PlanEntry:
    """Describes a plan as far as it is known before anything is listed; it has no id yet."""
    return PlanEntry("", describe_settings(ExampleLayout(settings), recipe), recipe.settings)


def _note_losses(summary: Summary, layout: ExampleLayout) -> Iterator[str]:
    """Notes annotations and images that will be in no Example.

    They have no feature, no annotation or no split.
    """
    settings = layout.settings
    for kind, listed in summary.list_unstored(layout):
        if note := kind.note_unstored(listed, layout.convention.title):
            yield note
    labeled = summary.classes.total() - summary.classes[""]
    if labeled and isinstance(settings.convention, str) and not layout.stores_classes:
        yield (
            f"not stored: the classes of {format_count(labeled, settings.unit)}: the convention "
            f"({layout.convention.title}) has no place for them; --set convention=tfds stores them"
        )
    yield from _note_attributes(summary, layout)
    if kinds := [f"{kind} ({count:,})" for kind, count in sorted(summary.not_stored.items())]:
        remedy = settings.remedy_for(summary.not_stored)
        yield "; ".join(filter(None, [f"not stored: {show_names(kinds, 10)}", remedy]))
    if summary.respelled:
        what = f"{say_count(summary.respelled, 'image', 'is')} named otherwise in the annotations"
        yield f"{what}, such as {summary.respelled_examples['']}: no other can be meant"
    for noted, count in sorted(summary.noted.items()):
        if noted == NUMBERS_IN_NAMES:  # worth a look, if there are no other labels
            continue
        unit = settings.unit
        yield noted.replace("{images have}", say_count(count, unit, "has")).replace(
            "{images}", format_count(count, unit)
        )
    if count := summary.ignored["without_annotation"]:
        yield (
            f"{say_count(count, 'image', 'has')} no usable annotation, and "
            f"{agree(count, 'is')} ignored"
        )
    if unsplit := summary.left_out["fraction"]:
        total, of = (
            sum(settings.splits.fractions.values()),
            format_count(summary.references + unsplit, settings.unit),
        )
        yield (
            f"splits.fractions sum to {total:.6g}: {unsplit:,} of {of} "
            f"{agree(unsplit, 'is')} in no split"
        )


def _note_attributes(summary: Summary, layout: ExampleLayout) -> Iterator[str]:
    """Notes attributes of objects that are not stored, if others may be."""
    if not layout.convention.attribute_features:
        return
    tallies = sorted(summary.attributes.items())
    lost = {name: tally for name, tally in tallies if name not in layout.attributes}
    free = [f"{name} ({tally.count:,})" for name, tally in lost.items() if tally.is_free]
    if free:
        why = f"a text has more than {LONGEST_WORD} characters, or more than {MOST_WORDS:,} differ"
        yield f"not stored: attributes of free text, {show_names(free, 10)}: {why}"
    no_place = [
        f"{name} ({tally.count:,})" for name, tally in lost.items() if not _has_place(layout, name)
    ]
    if no_place:
        where = f"the convention ({layout.convention.title}) has no place for them"
        yield f"not stored: attributes {show_names(no_place, 10)}: {where}"
    if len(tallies) > MOST_ATTRIBUTES:
        yield f"not stored: attributes after the first {MOST_ATTRIBUTES} by name"


def _find_lacking_attribute(summary: Summary, settings: DatasetSettings) -> str | None:
    """Says which attribute of objects a user's convention stores and no object has, if there is."""
    convention = settings.convention
    if not isinstance(convention, Convention):
        return None
    known = show_names(sorted(summary.attributes), 10) or "none"
    for each in convention.attribute_features:
        name = each.field.removeprefix(ATTRIBUTE)
        is_lacking = each.field != EACH_ATTRIBUTE and name not in summary.attributes
        if is_lacking and not is_shipped(each):
            return (
                f"convention.features.{each.key} stores the attribute {name!r:.100} of objects, "
                f"and no object has it, only {known}: correct its field"
            )
    return None


def _find_problem(summary: Summary, settings: DatasetSettings) -> str | None:
    """Says why no dataset can be made from the listing; None if one can."""
    unit, source = settings.unit, settings.source
    if summary.problems:
        more = f" (and {summary.problems_found - 1} more)" if summary.problems_found > 1 else ""
        return f"{summary.problems[0]}{more}"
    if settings.limit_per_class is not None:
        for name, listed in summary.list_classified():
            if listed.total:
                what = f"needs images with one label each, and there are {listed.total:,} {name}"
                return f"limit_per_class {what}: remove it"
    if summary.references or summary.rejected:
        return _find_lacking_attribute(summary, settings)
    if summary.left_out:
        return (
            f"all {summary.left_out.total():,} {unit}s are left out: raise limit or the fractions"
        )
    problem = f"no {unit}s were found in the input"
    if summary.listed:
        reasons = ", ".join(
            f"{count:,} {reason}" for reason, count in sorted(summary.ignored.items())
        )
        problem += f": everything found ({summary.listed:,}) is ignored ({reasons})"
    if source.files and not settings.include:
        problem += f"; the source reads {', '.join(source.files)}"
    return problem


def _advise_on_empty(summary: Summary, settings: DatasetSettings, key: str) -> str:
    """Says what to do if all images of a given split were rejected."""
    takes_classes = isinstance(settings.source, FindsClassesInFolders)
    if takes_classes and set(summary.rejected) == {"no_class"}:
        return "to convert all images without labels, add --set source.class_from=none"
    given = settings.splits.given
    left = {word: name for word, name in given.items() if name in summary.splits}
    flag = shlex.quote(f"{key}={write_yaml_line(left)}")
    return f"correct that, or leave the split out with --set {flag}"


@dataclass(frozen=True, slots=True)
class _Filling:
    """How empty splits are filled.

    Attributes:
        moved: the splits of the hashes that fill them, see `SplitCutoffs.moved`.
        notes: on splits that were, or stay, empty.
        problem: why they cannot be filled; None if they can.
    """

    moved: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problem: str | None = None


def _fill_splits(summary: Summary, settings: DatasetSettings) -> _Filling:
    """Fills empty splits, or says why that is impossible."""
    names, unit = settings.splits.names, settings.unit
    empty = [name for name in names if name not in summary.splits]
    if not empty or not summary.references:
        return _Filling()
    if settings.splits.given:
        return _explain_given(empty, summary, settings)
    counts = {name: split.references for name, split in summary.splits.items()}
    moved = fill_empty_splits(counts, summary.nearest, settings.splits)
    for name in empty:
        if name not in moved.values():
            few = f"there are too few {unit}s ({summary.references:,})"
            one = write_yaml_line({names[0]: 1.0})
            advice = f"to have one split, add --set {shlex.quote(f'splits.fractions={one}')}"
            problem = f"{few} for the splits {', '.join(names)}: {name} would be empty: {advice}"
            return _Filling(problem=problem)
    notes = (
        f"split {name} would have been empty: it was given the nearest {unit}s" for name in empty
    )
    return _Filling(moved, tuple(notes))


def _explain_given(empty: Sequence[str], summary: Summary, settings: DatasetSettings) -> _Filling:
    """Says that given splits stay empty, which is a problem if their images may be rejected."""
    key = "splits.from_folders" if settings.splits.from_folders else "splits.from_source"
    unit = settings.unit
    if summary.rejected:
        rejected = (
            f"{summary.rejected.total():,} rejected, such as "
            f"{min(summary.rejected_examples.values())}"
        )
        problem = (
            f"no {unit} was found for split {empty[0]}, and {rejected}: "
            f"{_advise_on_empty(summary, settings, key)}"
        )
        return _Filling(problem=problem)
    notes = (f"no {unit} was found for split {name}, which {key} names" for name in empty)
    return _Filling(notes=tuple(notes))


def _note_deviations(summary: Summary, settings: DatasetSettings) -> Iterator[str]:
    """Notes that a stratified split misses a class's share by more than two images.

    The reason is that groups are kept whole.
    """
    fractions = settings.splits.fractions
    whole = {label: count / sum(fractions.values()) for label, count in summary.classes.items()}
    off = [
        (abs(count - whole[label] * share), label, name, count, round(whole[label] * share))
        for name, share in fractions.items()
        for label, count in summary.splits.get(name, SplitSummary()).classes.items()
    ]
    for distance, label, name, count, share in sorted(off, reverse=True)[:1]:
        if distance > 2:
            has = (
                f"split {name} has {count:,} {settings.unit}s of class {label}, whose share is "
                f"{share:,}"
            )
            yield f"groups are kept whole: {has}"


def _without_histograms(summary: Summary) -> Summary:
    splits = {
        name: replace(split, histogram=HashHistogram()) for name, split in summary.splits.items()
    }
    return replace(summary, sample=[], nearest={}, splits=splits)
