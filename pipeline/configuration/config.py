"""Turns YAML, `--set` and keywords in Python into `DatasetSettings`, before any work.

All errors are reported at once, each with its origin.
"""

import io
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from recordmill import storage
from recordmill.pipeline.configuration.build_settings import build_settings
from recordmill.pipeline.configuration.check_features import check_what_is_stored
from recordmill.pipeline.configuration.parse_yaml import parse_yaml
from recordmill.pipeline.configuration.resolve_settings import complete_settings
from recordmill.pipeline.configuration.setting_types import fit_to_type
from recordmill.pipeline.configuration.written_settings import (
    FLAG,
    WrittenSettings,
    iter_paths,
    parse_flag,
    parse_keywords,
)
from recordmill.schemas import earlier_names
from recordmill.schemas.errors import SettingError, UsageError
from recordmill.schemas.formatting import printable
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.yaml_core import write_set_flag, write_yaml_line
from recordmill.transforms.inputs.other_classes import OtherClasses

AUTO = "auto"
"""The value of `--config`, or of `layout`, with which the files determine the settings."""

STDIN = "-"
"""The value of `--config` with which the configuration is read from standard input."""

MAX_STDIN_BYTES = 2**20

_MOST_CONFIGURATION_BYTES = 2**26

COMMENT = "# Recognized "
"""How a dataset's configuration begins if its layout was recognized."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A recognized layout.

    Attributes:
        kind: the source.
        why: the files that show it.
        flags: the flags that replace `--config auto` the next time.
        other_classes: folders that may be classes, if it is a table of images.
    """

    kind: str
    why: str
    flags: str
    other_classes: OtherClasses | None = None

    @property
    def shown(self) -> dict[str, str]:
        """What the line on stdout says of it."""
        return {"kind": self.kind, "why": self.why, "flags": self.flags}


Recognizer = Callable[[Mapping[str, Any]], tuple[dict[str, Any], Layout | None]]
"""Fills in settings that the input's files determine, and says which layout they have."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """What a configuration and its overrides say.

    Attributes:
        settings: what the dataset is, before the inputs' files fill in the rest.
        names_convention: whether a convention was given or recognized, rather than left at the
            default.
        comment: the first line of the dataset's `config.yaml` if it says what was recognized and
            why: now, or when the given configuration was written; otherwise None.
        layout: the layout that was recognized now; None if none was, or none was needed.
        is_recognized: whether the inputs' files decided the settings, or no layout was recognized
            and the defaults hold.
        left_by_user: see `RunSettings`.
    """

    settings: DatasetSettings
    names_convention: bool
    comment: str | None
    layout: Layout | None
    is_recognized: bool = False
    left_by_user: frozenset[str] = frozenset()


def load_settings(
    path: str | None,
    overrides: Sequence[str],
    recognizer: Recognizer | None = None,
    keywords: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """Reads a configuration file, and applies overrides.

    Args:
        path: a YAML file, on any of Beam's file systems; or the name of one that Recordmill ships
            (`configs/class_folders.yaml`, wherever the process runs); `-`: standard input; None or
            `auto`: the files determine the settings.
        overrides: `key.path=value`, the value in YAML; later ones win.
        recognizer: called if there is no file and no `source.kind`, or if the file says
            `layout: auto`; None: nothing is recognized.
        keywords: the settings of a call in Python, which go before all others; None if a command
            reads its flags.

    Returns:
        The settings, except for what only the inputs determine. All text is in Unicode's NFC, as
        keys are.

    Raises:
        UsageError: the file cannot be read or is not YAML, a key is unknown, a value is wrong or
            contradicts another.
    """
    flag, start = "--set ", FLAG
    if keywords is not None:
        flag, start = "", ""
    file = None if path == AUTO else path
    text = _read_text(file) if file else ""
    written = _parse_configuration(text, file, start)
    for each in (*map(parse_flag, overrides), *parse_keywords(keywords or {})):
        written.override(each)
    written.rename_earlier([keys for keys, _ in written.overridden])
    values = fit_to_type(DatasetSettings, written.values, [])  # recognizers compare texts
    layout, is_recognized = None, _is_to_be_recognized(values, path) and recognizer is not None
    left_by_user = _find_left_by_user(values)
    if is_recognized and recognizer:
        values, layout = recognizer(values)
    names_convention = values.get("convention") is not None
    problems: list[SettingError] = []
    settings = _build_and_complete(values, flag, problems)
    if settings is None:
        raise UsageError("\n".join(dict.fromkeys(map(written.blame, problems))))
    comment = _comment_on(layout, text.partition("\n")[0])
    return LoadedSettings(settings, names_convention, comment, layout, is_recognized, left_by_user)


def _build_and_complete(
    values: Mapping[str, Any], flag: str, problems: list[SettingError]
) -> DatasetSettings | None:
    """Builds the settings, checks them with each other, and fills in what follows from others.

    Args:
        values: the written and recognized settings.
        flag: what the user writes before a setting.
        problems: gets the errors.

    Returns:
        The settings; None if there are problems.
    """
    settings = build_settings(values, problems)
    try:
        if settings:
            settings = complete_settings(settings)
            check_what_is_stored(settings, values.get("convention") is not None, flag)
    except SettingError as error:
        problems.append(error)
    problems += _find_two_ways_to_split(values, flag)
    if problems:
        return None
    return settings


def _parse_configuration(text: str, path: str | None, fallback: str) -> WrittenSettings:
    """Parses the text of a configuration.

    Args:
        text: YAML.
        path: its file; None if there is none.
        fallback: how an error begins if there is no file.
    """
    name, start = path, fallback
    if path == STDIN:
        name = "standard input"
    if name:
        start = f"{name}: "
    values = parse_yaml(text, f"the configuration {name}")
    if not isinstance(values, dict | None):
        raise UsageError(
            f"the configuration {name} holds a {type(values).__name__}, not keys and values"
        )
    written = WrittenSettings(values or {}, start)
    earlier_names.drop_former_meanings(written.values)
    written.rename_earlier([()])
    return written


def _find_two_ways_to_split(values: Mapping[str, Any], flag: str) -> Iterator[SettingError]:
    """Yields an error if splits are both given and drawn.

    It is about what is written, since the settings have default fractions.

    Args:
        values: the written settings.
        flag: what the user writes before a setting.
    """
    splits = values.get("splits")
    if not isinstance(splits, dict) or "fractions" not in splits:
        return
    given = [key for key in ("from_folders", "from_source") if splits.get(key)]
    for key in given[:1]:
        whole = f"splits={write_yaml_line({key: splits[key]})}"
        if flag:
            whole = f"{flag}{shlex.quote(whole)}"
        yield SettingError(
            f"splits.{key}",
            f"and splits.fractions contradict each other: remove one of them ({whole} replaces "
            "both)",
        )


def _find_left_by_user(plain: Mapping[str, Any]) -> frozenset[str]:
    """Returns the reasons for ignoring files that the written settings give."""
    source, splits = plain.get("source"), plain.get("splits")
    reasons = {
        "not_included": plain.get("include"),
        "not_annotations": isinstance(source, dict) and source.get("split"),
        "unlabeled": isinstance(source, dict) and source.get("label_part"),
        "one_class": isinstance(source, dict) and _names_class(source.get("columns")),
        "unsplit": splits or (isinstance(source, dict) and "split_key" in source),
    }
    return frozenset(reason for reason, is_written in reasons.items() if is_written)


def _names_class(columns: Any) -> bool:
    """Returns whether the written columns of a table name the class."""
    return isinstance(columns, dict) and bool(columns.get("label"))


def _comment_on(layout: Layout | None, first_line: str) -> str | None:
    """Returns the first line of the dataset's `config.yaml`, see `LoadedSettings.comment`."""
    if layout:
        return f"{COMMENT}{layout.kind}: {printable(layout.why)}\n"
    for start in (COMMENT, earlier_names.COMMENT):
        if first_line.startswith(start):
            return f"{COMMENT}{first_line.removeprefix(start)}\n"
    return None


def flags_of(settings: Mapping[str, Any]) -> str:
    """Returns settings, which are two levels deep at most, as flags for a shell."""
    return " ".join(write_set_flag(path, value) for path, value in iter_paths(settings))


def _is_to_be_recognized(plain: dict[str, Any], path: str | None) -> bool:
    """Returns whether the files determine missing settings. Also removes the key `layout`."""
    is_asked_for = "layout" in plain
    layout = plain.pop("layout", AUTO if path in (None, AUTO) else "")
    if layout not in (AUTO, ""):
        raise UsageError(f"layout is {layout!r}: write auto, or remove it")
    source = plain.get("source")
    is_known = isinstance(source, dict) and "kind" in source and not is_asked_for
    return layout == AUTO and not is_known and isinstance(source, dict | None)


def _read_stdin() -> str:
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError("--config is -, and standard input is closed: name a file instead")
    try:
        data = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
        if len(data) > MAX_STDIN_BYTES:
            raise UsageError(
                "the configuration on standard input is larger than 1 MiB: write a smaller one"
            )
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"the configuration on standard input cannot be read: {why}") from None


def _read_text(path: str) -> str:
    if path == STDIN:
        return _read_stdin()
    local = Path(path)
    if storage.is_local(path) and not local.exists() and local.parent.name in ("", "configs"):
        shipped = resources.files("recordmill.configs") / local.name
        if shipped.is_file():
            return shipped.read_text(encoding="utf-8")
    try:
        content = storage.read_whole(path, _MOST_CONFIGURATION_BYTES)
        return io.StringIO(content.decode(), newline=None).read()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"the configuration {path} cannot be read: {why}") from None
