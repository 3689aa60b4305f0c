"""What to tell of the classes before anything is converted: those that are hardly the ones that were meant."""

from collections import defaultdict
from itertools import pairwise

from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.label_map import LabelMap, is_integer_label
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.transforms.inputs.listing.folder_sketch import IMAGE_ENDINGS, split_of
from recordmill.transforms.inputs.sources.archives import Archives
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.planning.summary import Summary


def note_classes(summary: Summary, settings: DatasetSettings, label_map: LabelMap) -> list[str]:
    """The notes; the same for the same images, as they become part of the marker."""
    notes = (
        _note_unmet(summary, settings, label_map),
        _note_raised(label_map, settings),
        _note_folders(summary, settings),
        _note_alike(label_map),
        _note_numbers(label_map, settings),
    )
    return [note for note in notes if note]


def _note_unmet(summary: Summary, settings: DatasetSettings, label_map: LabelMap) -> str:
    """The classes that were listed and that nothing has, where labels are known by now."""
    if settings.source.late_labels or summary.boxes or summary.labels <= {""}:
        return ""
    met = {label_map.name_for(label) for label in summary.labels}
    unmet = [name for name in settings.labels.classes if name not in met and name != settings.labels.catch_all]
    if not unmet:
        return ""
    verb = "has" if len(unmet) == 1 else "have"
    return f"{format_count(len(unmet), 'class')} of labels.classes {verb} no {settings.unit}: {show_names(unmet)}"


def _note_raised(label_map: LabelMap, settings: DatasetSettings) -> str:
    """That classes have other ids than the source's numbers."""
    ids = label_map.ids
    moved = [(name, number) for name, number in label_map.numbers.items() if ids.get(name, number) != number]
    if settings.labels.ids != "raised" or not moved:
        return ""
    name, own = moved[0]
    what = f"class {name} has the id {ids[name]}, not {own}, and all others are higher by {ids[name] - own} too"
    layout = ExampleLayout(settings)
    why = f"ids begin at {layout.label_offset} in the convention ({layout.convention.title})"
    return f"{what}: {why}; labels.ids=integers keeps the source's numbers"


def _note_folders(summary: Summary, settings: DatasetSettings) -> str:
    """That a class's folder holds folders, which may be the classes: one level too high is easily named."""
    source = settings.source
    if not isinstance(source, ClassFolders | Archives) or source.class_from != "first_folder":
        return ""
    below: defaultdict[str, set[str]] = defaultdict(set)
    tops = set()
    keys = [ref.key for _, _, ref in summary.sample]
    images = [key for key in keys if key.lower().endswith(IMAGE_ENDINGS)]
    for path in (key.split("/")[:-1] for key in images or keys):  # what is not an image is rejected when it is read
        label = next((each for each in path if each in summary.labels), "")
        at = path.index(label) if label else -1
        below[label].add(path[at + 1] if label and at + 1 < len(path) else "")
        tops.add(at)
    nested = {label: folders for label, folders in below.items() if len(folders) > 1 and "" not in folders}
    if not nested:
        return ""
    label, folders = min(nested.items())
    shown = show_names(sorted(folders))
    advice = "if those are the classes, set source.class_from=last_folder"
    if all(map(split_of, folders)):
        advice = f"if those are splits, put their folders around those of the classes, as in {min(folders)}/{label}"
    if len(summary.labels) == 1:
        if tops == {0} and isinstance(source, ClassFolders):
            advice = f"if those are the classes, let --input end in /{label}"
        return f"there is 1 class, {label}, and below it the folders {shown}: {advice}"
    others = format_count(len(nested) - 1, "other class")
    more = f", as are those of {others}" if len(nested) > 1 else ""
    return f"the images of class {label} are in folders of their own, {shown}{more}: {advice}"


def _note_alike(label_map: LabelMap) -> str:
    """That classes differ in nothing but case and blanks, as folders of several people do."""
    alike: dict[str, list[str]] = {}
    for name in sorted(label_map.ids):
        alike.setdefault(" ".join(name.split()).casefold(), []).append(name)
    found = [names for names in alike.values() if len(names) > 1]
    if not found:
        return ""
    return f"classes differ in case or blanks alone: {show_names([' and '.join(map(repr, names)) for names in found])}"


def _note_numbers(label_map: LabelMap, settings: DatasetSettings) -> str:
    """That classes which are numbers have ids in the order of their texts, where 10 comes before 2."""
    names = list(label_map.ids)
    is_found = settings.labels.ids == "names" and not settings.labels.classes and not label_map.numbers
    if not (is_found and all(map(is_integer_label, names))) or names == sorted(names, key=int):
        return ""
    one, two = next((one, two) for one, two in pairwise(names) if int(one) > int(two))
    order = f"classes are numbers, and are sorted as texts: {one} comes before {two}"
    return f"{order}; labels.ids=integers makes each number the id of its class"
