"""What to tell of the classes before anything is converted: those that are hardly the ones that were meant."""

from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.show_count import show_count
from recordmill.transforms.dataset_settings import DatasetSettings
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.sources.class_folders import ClassFolders

MOST_NAMES = 5
"""Classes or folders that a note names."""


def note_classes(summary: Summary, settings: DatasetSettings, label_map: LabelMap) -> list[str]:
    """The notes; the same for the same images, as they become part of the marker."""
    notes = (_note_unmet(summary, settings, label_map), _note_folders(summary, settings), _note_alike(label_map))
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
    return f"{show_count(len(unmet), 'class')} of labels.classes {verb} no {settings.unit}: {_shown(unmet)}"


def _note_folders(summary: Summary, settings: DatasetSettings) -> str:
    """That the folder of the only class holds folders, which may be the classes: one level too high is easily named."""
    source = settings.source
    if not isinstance(source, ClassFolders) or source.class_from != "first_folder" or len(summary.labels) != 1:
        return ""
    (label,) = summary.labels
    paths = [ref.key.split("/")[:-1] for _, _, ref in summary.sample]
    folders = {path[path.index(label) + 1] for path in paths if label in path[:-1]}
    if len(folders) < 2 or not all(label in path[:-1] for path in paths):
        return ""
    top = all(path[0] == label for path in paths)
    advice = f"let --input end in /{label}" if top else "set source.class_from=last_folder"
    what = f"there is 1 class, {label}, and below it the folders {_shown(sorted(folders))}"
    return f"{what}: if those are the classes, {advice}"


def _note_alike(label_map: LabelMap) -> str:
    """That classes differ in nothing but case and blanks, as folders of several people do."""
    alike: dict[str, list[str]] = {}
    for name in sorted(label_map.ids):
        alike.setdefault(" ".join(name.split()).casefold(), []).append(name)
    found = [names for names in alike.values() if len(names) > 1]
    if not found:
        return ""
    return f"classes differ in case or blanks alone: {_shown([' and '.join(map(repr, names)) for names in found])}"


def _shown(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
