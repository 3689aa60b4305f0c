"""Recognition of tables of images: which tables of an input are read, how, and which are not."""

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any

import orjson

from recordmill.schemas.formatting import show_first
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Question,
    Recognized,
    begins_with_split,
    given_splits,
    split_pattern,
)
from recordmill.transforms.inputs.image_classes import WITH_SEVERAL_LABELS
from recordmill.transforms.inputs.tables.ask_about_columns import (
    MOST_WAYS,
    ask_for_meanings,
    ask_for_second,
    find_mask_column,
    to_ignore,
    to_set,
)
from recordmill.transforms.inputs.tables.class_name_files import NamedClasses, find_class_names
from recordmill.transforms.inputs.tables.known_tables import (
    FoundColumns,
    find_columns,
    named_images,
    sampled_classes,
    split_words,
    why_no_columns,
)
from recordmill.transforms.inputs.tables.names_of_ids import NAMES_OF_IDS, find_names_of_ids
from recordmill.transforms.inputs.tables.outside_images import common_root, is_outside
from recordmill.transforms.inputs.tables.read_table import TABLE_ENDINGS
from recordmill.transforms.inputs.tables.table_heads import head_of
from recordmill.transforms.inputs.unclaimed_files import find_sibling
from recordmill.transforms.inputs.unlikely_classes import are_numbered, are_unlikely_classes

WITHOUT_LABELS = {
    "*submission*.csv": "sample submissions",
    NAMES_OF_IDS: "names of classes",
}
"""Tables that hold no labels, as `siblings`: Kaggle's form for answers, Open Images' names."""

NEXT_TO_BOXES = {
    "*-annotations-human-imagelabels*.csv": "labels of whole images",
    "*-annotations-machine-imagelabels.csv": "labels of whole images",
    "*-annotations-object-segmentation.csv": "masks",
    "*-annotations-vrd.csv": "relations of boxes",
    "*-annotations-point-labels.csv": "points",
    "*-images-with-rotation.csv": "facts about images",
    "*-images-with-labels-with-rotation.csv": "facts about images",
    "image_ids_and_rotation.csv": "facts about images",
    "images.meta": "facts about images",
    "bbox_labels_600_hierarchy.json": "",
}
"""Files of Open Images that are not read where its tables of boxes are, as `siblings`."""

BOXES_OF_OPEN_IMAGES = "-annotations-bbox.csv"
"""How the names of Open Images' tables of boxes end."""


def recognize_tables(sketch: FolderSketch) -> Iterator[Recognized]:
    """Recognizes tables with a column that names images or contains them."""
    tables = [path for path in sketch.heads if path.lower().endswith((*TABLE_ENDINGS, ".txt"))]
    tables = [path for path in tables if not _is_of_others(path, sketch)]
    seen = {path: columns for path in tables if (columns := find_columns(path, sketch))}
    named = _find_named_classes(seen, sketch)
    if named:
        seen.pop(named.path, None)
    found = {path: _without_guess(columns, seen.values()) for path, columns in seen.items()}
    of_classes = {path: columns for path, columns in found.items() if columns.has_classes}
    of_values = {path: columns for path, columns in found.items() if not columns.is_list}
    choice = of_classes or of_values or found
    read = {
        path: columns
        for path, columns in choice.items()
        if not any(_is_test(path, columns, other) for other in choice.values())
    }
    if read:
        yield _as_recognized(_with_roots(_join_outside(read)), found, named, sketch)


def _find_named_classes(
    tables: Mapping[str, FoundColumns], sketch: FolderSketch
) -> NamedClasses | None:
    """Finds the file that names the numbered classes of these tables, if there is one.

    A table of names may look like one of images: their numbers may be images' names, too. But
    tables of the same columns, such as one for each split, say the same of their images.
    """
    headers = {path: head_of(path, sketch).header for path in tables}
    for path, columns in tables.items():
        alike = {other for other, header in headers.items() if header == headers[path]}
        named = find_class_names(sampled_classes(path, columns, sketch), sketch, alike)
        if named:
            return named
    return None


def _is_test(path: str, columns: FoundColumns, other: FoundColumns) -> bool:
    """Returns whether a table is as Kaggle's test.csv.

    Without the class or target that another one has.
    """
    own, others = (
        {*each.columns.values(), *each.others} - {each.columns.get("uri"), *each.index}
        for each in (columns, other)
    )
    is_named = "test" in split_words(posixpath.basename(path))
    return is_named and not columns.has_classes and own < others


def _without_guess(columns: FoundColumns, tables: Iterable[FoundColumns]) -> FoundColumns:
    """Returns the same, without a class that was guessed, if it may be none as another table shows.

    The only column next to that of images in Kaggle's test.csv may be one of several in train.csv.
    """
    label = columns.columns.get("label", "")
    if not any(label in each.others and not each.has_classes for each in tables):
        return columns
    return columns.without_label()


def unused_columns(columns: Iterable[str], source: Mapping[str, Any]) -> list[str]:
    """Returns the columns that no setting of a source names, in YAML's shape."""
    named = {*_named_columns(source)}
    return [
        name
        for name in columns
        if not any(
            name == each or f"{{{name}}}" in each or fnmatchcase(name, each) for each in named
        )
    ]


def _named_columns(source: Mapping[str, Any]) -> Iterator[str]:
    """Yields the columns that settings of a source name: names, patterns and templates."""
    for key in ("columns", "attributes_from", "pairs"):
        yield from _texts_in(source.get(key))
    features, points = source.get("features_from"), source.get("keypoints")
    for feature in features.values() if isinstance(features, Mapping) else ():
        yield from _texts_in(feature, ("column", "columns"))
    for pattern in _texts_in(points, ("x", "y", "visibility", "columns")):
        yield pattern.replace("{name}", "*")


def _texts_in(given: Any, keys: Iterable[str] | None = None) -> Iterator[str]:
    """Yields the texts in a mapping, and in lists in it; by default, those of all keys."""
    if not isinstance(given, Mapping):
        return
    for key in given if keys is None else keys:
        each = given.get(key)
        if isinstance(each, list | tuple):
            yield from map(str, each)
        elif each is not None:
            yield str(each)


def _is_of_others(path: str, sketch: FolderSketch) -> bool:
    """Returns whether a table is that of another source, or one that holds no labels of boxes."""
    name = posixpath.basename(path).lower()
    if name.startswith("metadata.") or find_sibling(name, WITHOUT_LABELS) is not None:
        return True
    is_next_to_boxes = find_sibling(name, NEXT_TO_BOXES) is not None
    return is_next_to_boxes and bool(sketch.all_ending(BOXES_OF_OPEN_IMAGES))


def _join_outside(found: Mapping[str, FoundColumns]) -> Mapping[str, FoundColumns]:
    """Returns the same tables; if all images are outside the input, one root is around them."""
    roots = [columns.root for columns in found.values()]
    root = common_root(roots)
    if root is None or not all(map(is_outside, roots)):
        return found
    return {path: replace(columns, root=root) for path, columns in found.items()}


def _with_roots(found: Mapping[str, FoundColumns]) -> Mapping[str, FoundColumns]:
    """Returns the same tables; if only their folders differ, these are in `root`."""
    alike = {path: columns.with_root() for path, columns in found.items()}
    bare = [replace(columns, root="") for columns in alike.values()]
    differ = any(one != other for one, other in combinations(found.values(), 2))
    return alike if differ and all(each == bare[0] for each in bare) else found


def _as_recognized(
    read: Mapping[str, FoundColumns],
    found: Mapping[str, FoundColumns],
    named: NamedClasses | None,
    sketch: FolderSketch,
) -> Recognized:
    """Returns the settings for tables whose columns were found.

    Args:
        read: the tables to read.
        found: all tables of images.
        named: the names of their numbered classes, if a file has them.
        sketch: the input.
    """
    path, first = next(iter(read.items()))
    source = first.source
    settings: dict[str, Any] = {"source": source}
    unread = _find_unread_tables(read, sketch)
    if len({each.root for each in read.values()}) > 1:
        source["root"] = {each: columns.root for each, columns in read.items()}
    if named and named.is_claimed:
        source["class_names"] = named.in_order
    of_ids = find_names_of_ids((*read, *unread), sketch) if first.class_id else None
    if of_ids:
        source["class_names_file"] = of_ids
    settings |= _find_splits(read, unread, source, sketch)
    others = [each for each in sketch.all_ending(*TABLE_ENDINGS) if each not in {*read, *unread}]
    if not source.get("split") and not unread and others:
        settings["include"] = [f"/{each}" for each in read]
    if first.has_boxes:
        settings["convention"] = "tf_object_detection"
    questions = tuple(_find_questions(read, found, named, sketch))
    needs, keys = next(iter(questions), (None, ()))
    why = f"a table of images, {path}"
    if first.class_id:
        why += f", with ids of classes such as {first.class_id}"
        why += f", named by {of_ids}" if of_ids else ""
    if others and not needs:
        left = [each for each in others if each != _below_input(path, of_ids)]
        why += f", not {show_first(left)}" if left else ""
    return Recognized(
        settings,
        why,
        needs=needs,
        needed_keys=keys,
        questions=questions[1:],
        left_out=tuple(dict.fromkeys((*first.images, *first.others))),
        is_urgent=bool(first.seconds or first.is_spread),
        tables=(*read, *unread) if first.has_classes and "uri" in first.columns else (),
        replaces_folders=_names_classes(path, first, sketch),
    )


def _below_input(path: str, relative: str | None) -> str | None:
    """Returns the path below the input of a file that is named relative to a table's folder."""
    return relative and posixpath.normpath(posixpath.join(posixpath.dirname(path), relative))


def _names_classes(path: str, found: FoundColumns, sketch: FolderSketch) -> bool:
    """Returns whether a table names images and their classes.

    Numbers may be those of class folders.
    """
    if "uri" not in found.columns or not found.has_classes:
        return False
    classes = sampled_classes(path, found, sketch)
    return not classes or not all(each.isdecimal() for each in classes)


def _find_splits(
    read: Mapping[str, FoundColumns],
    unread: Sequence[str],
    source: dict[str, Any],
    sketch: FolderSketch,
) -> dict[str, Any]:
    """Returns the settings of the splits that a column, folders or the tables' names give.

    Args:
        read: the tables to read.
        unread: tables like them that were not looked into.
        source: the settings of the source, to which `split` is added if names give the splits.
        sketch: the input.
    """
    path, first = next(iter(read.items()))
    if first.splits:
        return {"splits": {"from_source": dict(first.splits)}}
    if {posixpath.dirname(each) for each in read} <= set(sketch.split_folders):
        return given_splits("from_folders", sketch.split_folders)
    pattern, words = _find_pattern((*read, *unread))
    are_several = len(read) + len(unread) > 1
    if pattern and (are_several or path.endswith(".txt") or _names_its_split(path, first)):
        source["split"] = pattern
        return given_splits("from_source", words)
    if by_root := _splits_by_root(read):
        source["split"], splits = by_root
        return {"splits": splits}
    return {}


def _find_pattern(paths: Iterable[str]) -> tuple[str, list[str]]:
    """Returns the pattern of tables whose names differ in a split word, and these words."""
    return split_pattern(posixpath.basename(path) for path in paths)


def _names_its_split(path: str, found: FoundColumns) -> bool:
    """Whether a table of boxes and the folder of its images are named after the same split."""
    folder = posixpath.join(found.root, posixpath.dirname(found.columns.get("uri", "")))
    words = split_words(posixpath.basename(path))
    return found.has_boxes and len(words) == 1 and words == split_words(folder)


def _splits_by_root(read: Mapping[str, FoundColumns]) -> tuple[str, dict[str, Any]] | None:
    """Returns a pattern for tables and the splits of their folders.

    Returns None if those are not named so.
    """
    splits = {posixpath.basename(path): split_words(found.root) for path, found in read.items()}
    if len(splits) < len(read) or any(len(words) != 1 for words in splits.values()):
        return None
    given = {name: split for name, (split,) in splits.items()}
    if len({*given.values()}) < 2:
        return None
    return f"(?P<split>{'|'.join(map(re.escape, given))})", {"from_source": given}


def _find_questions(
    read: Mapping[str, FoundColumns],
    found: Mapping[str, FoundColumns],
    named: NamedClasses | None,
    sketch: FolderSketch,
) -> Iterator[Question]:
    """Yields what the user must say or do first, each with the settings that say it.

    What is wrong with the tables comes before what is unclear about one.
    """
    path, first = next(iter(read.items()))
    if fault := next((each.fault for each in found.values() if each.fault), None):
        table = next(each for each in found if found[each].fault)
        has_others = sketch.has_images or len(sketch.all_ending(*TABLE_ENDINGS)) > 1
        leave_out = f", or add {to_ignore([table], sketch)}" if has_others else ""
        yield f"{table} cannot be used: {fault}{leave_out}", ()
    if named and not (named.is_claimed or named.are_labels):
        yield _ask_for_names(named, sketch)
    if unused := _find_unused(read, found, named, sketch):
        yield unused, ()
    if first.seconds:
        yield ask_for_second(first, _column_of(first.columns["uri"]))
    if first.images:
        choices = _choices("source.columns.bytes", first.images)
        way = find_mask_column(first.images)
        yield (
            f"its columns {' and '.join(first.images)} hold images, and one of them is stored: add "
            f"{choices}; the others are not stored{way or ''}",
            ("source.columns.bytes",),
        )
    yield from _ask_for_places(path, first, sketch, is_alone=len(read) == 1)
    if path.endswith(".txt") and not _find_pattern((*read, *_find_unread_tables(read, sketch)))[0]:
        leave_out = to_ignore([path], sketch)
        yield (
            "a list is read where its name has the word for a split: call it train.txt, or leave "
            f"it out with {leave_out}",
            (),
        )
    if column := first.columns.get("labels"):
        flags = [f"source.columns.label={column}", "source.columns.labels="]
        flags += ["source.separator=|"] if first.separator else []
        as_one = to_set(*flags)
        is_one = f", or {as_one} if each cell is one class" if first.is_text_list else ""
        yield (
            f"its column {column} holds several classes of an image, and the usual convention "
            f"stores one: add --set 'convention={WITH_SEVERAL_LABELS}'{is_one}",
            ("convention", "source.columns.label"),
        )
    yield from ask_for_meanings(path, first, sketch)


def _ask_for_names(named: NamedClasses, sketch: FolderSketch) -> Question:
    """What to do about a file that names the classes, and cannot be used without a question."""
    leave_out = to_ignore([named.path], sketch)
    names = orjson.dumps(named.in_order).decode()
    use = f"add {to_set(f'source.class_names={names}')} {leave_out} to use them"
    if not named.in_order:
        use = "write the names into the table, since its numbers do not count from 0"
    return (
        f"{named.path} names its classes: {use}, or add {leave_out} "
        f"{to_set('source.class_names=[]')} to keep the numbers",
        ("source.class_names",),
    )


def _ask_for_places(
    path: str, first: FoundColumns, sketch: FolderSketch, *, is_alone: bool
) -> Iterator[Question]:
    """Yields what to do if it is not clear where the images of a table are."""
    if is_outside(first.root):
        yield (
            "its images are outside its folder, where they are read only if you name a folder "
            f"that holds all of them: add {to_set(f'source.root={first.root}')}",
            ("source.root",),
        )
    elif first.is_spread:
        folders = [posixpath.basename(root) for root in first.roots]
        may_be_classes = not (are_unlikely_classes(folders) or are_numbered(folders))
        as_classes = f", or add {to_ignore([path], sketch)} to take the folders for classes"
        yield (
            f"its images are in several folders ({', '.join(first.roots)}), and no column names "
            "them: move the images into one folder, or write the folders into the table, or add "
            f"{to_ignore([path], sketch)} {to_set('source.class_from=none')} to convert the images "
            f"without labels{as_classes if may_be_classes else ''}",
            (),
        )
    elif first.roots and is_alone:
        ways = [f"{_set_root(root)} to convert those of {root} alone" for root in first.roots]
        yield (
            f"images in {' and '.join(first.roots)} have the names that it gives, so it is not "
            "clear which are meant: write the folders into the table, or add "
            f"{', or '.join(ways)}",
            ("source.root",),
        )
    elif len(endings := _endings_of(path, first, sketch)) > 1:
        key = "source.columns.uri"
        yield (
            f"its images have the extensions {', '.join(endings)}, which it does not name: write "
            f"them into the table, or add --set '{key}={first.columns['uri']}' to read only these",
            (key,),
        )


def _set_root(root: str) -> str:
    """The flags that read the images of one folder, which stay in the split that it names."""
    splits = split_words(posixpath.basename(root))
    if len(splits) != 1:
        return to_set(f"source.root={root}")
    return to_set(f"source.root={root}", f"splits.fractions={{{splits.pop()}: 1}}")


def _column_of(uri: str) -> str:
    """The column that a template such as `images/{id}.jpg` is about, or the column itself."""
    return uri.rpartition("{")[2].partition("}")[0]


def _choices(key: str, values: Iterable[str]) -> str:
    return " or ".join(f"--set {shlex.quote(f'{key}={value}')}" for value in values)


def _find_unused(
    read: Mapping[str, FoundColumns],
    found: Mapping[str, FoundColumns],
    named: NamedClasses | None,
    sketch: FolderSketch,
) -> str | None:
    """What to do if not all tables can be read together, or another file may hold the labels."""
    alike = _group_alike(read)
    if len(alike) > 1:
        of_splits = [each for each in alike if any(map(_has_split_word, each))]
        choices = of_splits if len(of_splits) < len(alike) and of_splits else alike
        ways = []
        for tables in choices[:MOST_WAYS]:
            others = [each for each in read if each not in tables]
            ways.append(f"to read {tables[0]}, add {to_ignore(others, sketch)}")
        names = [tables[0] for tables in alike]
        shown = show_first(names) if len(names) > 2 else " and ".join(names)
        return f"{shown} have different columns: {'; '.join(ways)}"
    kinds = {columns.is_numbered: each for each, columns in read.items()}
    if {True, False} <= kinds.keys():
        return (
            f"the classes are text in {kinds[False]} and numbers in {kinds[True]}: write the same "
            f"into both, or add {to_ignore([kinds[True]], sketch)} to leave that out"
        )
    for each in read:
        if read[each].roots and len(read) > 1:
            return (
                f"several folders hold the images of {each} ({', '.join(read[each].roots)}): write "
                f"them into the table, or add {to_ignore([each], sketch)}"
            )
    return _find_named_twice(read, sketch) or _find_not_understood(read, found, named, sketch)


def _find_not_understood(
    read: Mapping[str, FoundColumns],
    found: Mapping[str, FoundColumns],
    named: NamedClasses | None,
    sketch: FolderSketch,
) -> str | None:
    """Returns what to do about tables that are not read, and may hold the labels."""
    path, first = next(iter(read.items()))
    for each, columns in found.items():
        is_sibling = columns.is_list or _is_test(each, columns, first)
        if each not in read and not is_sibling:
            leave_out = to_ignore([each], sketch)
            return f"{each} is not read, since {path} has the classes: add {leave_out}"
    for each in sketch.heads:
        is_table = each.lower().endswith(TABLE_ENDINGS)
        is_known = each in found or _is_of_others(each, sketch) or (named and each == named.path)
        if is_table and not is_known:
            why = why_no_columns(each, sketch)
            leave_out = to_ignore([each], sketch)
            return f"{each} is not understood as a table of images ({why}): add {leave_out}"
    return None


def _find_named_twice(read: Mapping[str, FoundColumns], sketch: FolderSketch) -> str | None:
    """Returns what to do if two tables name the same image, as two versions of one table do."""
    seen: dict[str, str] = {}
    for path, columns in read.items():
        for image in named_images(path, columns, sketch):
            other = seen.setdefault(image, path)
            if other == path or "uri" not in columns.columns:
                continue
            ways = [
                f"to read {kept}, add {to_ignore([each for each in read if each != kept], sketch)}"
                for kept in (other, path)
            ]
            return f"{other} and {path} both name {image}: {'; '.join(ways)}"
    return None


def _has_split_word(path: str) -> bool:
    return bool(split_words(posixpath.basename(path)))


def _group_alike(read: Mapping[str, FoundColumns]) -> list[list[str]]:
    """The tables in groups of the same columns, whatever the folders of their images are."""
    groups: list[tuple[FoundColumns, list[str]]] = []
    for path, columns in read.items():
        bare = replace(columns, root="")
        for other, paths in groups:
            if other == bare:
                paths.append(path)
                break
        else:
            groups.append((bare, [path]))
    return [paths for _, paths in groups]


def _endings_of(path: str, found: FoundColumns, sketch: FolderSketch) -> list[str]:
    """Returns the extensions of the images that a template in a table may mean.

    The list is empty if `uri` is a column.
    """
    uri = found.columns.get("uri", "")
    folder = posixpath.normpath(
        posixpath.join(posixpath.dirname(path), found.root, posixpath.dirname(uri))
    ).removeprefix(".")
    if "{" not in uri:
        return []
    return sorted({posixpath.splitext(each)[1] for each in sketch.at(folder).images})


def _find_unread_tables(found: Iterable[str], sketch: FolderSketch) -> list[str]:
    """Returns the tables that were not looked into, next to those that were found.

    Lists (`.txt`) count only if they are named after a split.
    """
    places = {(posixpath.dirname(path), posixpath.splitext(path)[1].lower()) for path in found}
    tables = (
        path
        for path in sketch.all_ending(*TABLE_ENDINGS, ".txt")
        if path not in sketch.heads and not _is_of_others(path, sketch)
    )
    alike = (
        path
        for path in tables
        if (posixpath.dirname(path), posixpath.splitext(path)[1].lower()) in places
    )
    return [
        path
        for path in alike
        if not path.endswith(".txt") or begins_with_split(posixpath.basename(path))
    ]
