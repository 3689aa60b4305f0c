"""Fills the tables of README.md and docs/ from the code; `--check` says if they are current."""

import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any

import yaml

from recordmill.annotations.kinds import RECORD_FIELDS
from recordmill.schemas.conventions import (
    Convention,
    ConventionFeature,
    convention_names,
    load_convention,
)
from recordmill.schemas.dataset.file_names import PLACEHOLDERS
from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.rejection import IGNORED, LEFT_OUT, REASONS
from recordmill.schemas.settings.dataset import (
    BoxSettings,
    Contract,
    DatasetSettings,
    ShardSettings,
    SplitSettings,
)
from recordmill.schemas.settings.images import CHANGES, ImageSettings, Resize
from recordmill.schemas.settings.rejection_limits import LossLimits, RejectionLimits
from recordmill.transforms.inputs.sources.source import load_source
from recordmill.transforms.inputs.tables.read_table import TableFormat

ROOT = Path(__file__).parent.parent
CONFIGS = ROOT / "configs"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

SECTIONS = {
    "source": None,
    "images": ImageSettings,
    "images.resize": Resize,
    "boxes": BoxSettings,
    "labels": LabelSettings,
    "splits": SplitSettings,
    "shards": ShardSettings,
    "expect": Contract,
    "max_rejected": RejectionLimits,
    "max_rejected.boxes": LossLimits,
    "max_rejected.labels": LossLimits,
    "max_rejected.masks": LossLimits,
    "max_rejected.keypoints": LossLimits,
    "max_rejected.segmentation": LossLimits,
}


TITLES = {
    "images": ("images",),
    "annotations": ("boxes", "labels"),
    "splits and shards": ("duplicates", "splits", "shards", "seed", "limit", "limit_per_class"),
    "limits": ("max_rejected", "expect"),
}
"""The sections of docs/settings.md, with their top-level settings; `general` has the others."""

HEAD = ("| setting | default | meaning |", "|---|---|---|")


def documented_sources() -> list[str]:
    """The sources with a page in README.md or docs/, which names a configuration of theirs.

    A new source works without a page. The tables show it as soon as it has one.
    """
    named = {
        name
        for page in PAGES
        for name in re.findall(r"\bconfigs/(\w+)\.yaml", page.read_text(encoding="utf-8"))
    }
    texts = [
        path.read_text(encoding="utf-8") for path in CONFIGS.glob("*.yaml") if path.stem in named
    ]
    return sorted({yaml.safe_load(text)["source"]["kind"] for text in texts})


def tables() -> dict[str, str]:
    """The text of every generated section by its name."""
    generated = {
        f"features of {name}": "\n".join(_features(load_convention(name)))
        for name in convention_names()
    }
    rows = [
        f"| `{name}` | {each.kind}{'[]' * each.many} | {each.meaning} |"
        for name, each in RECORD_FIELDS.items()
    ]
    generated["fields"] = "\n".join(["| field | type | what it is |", "|---|---|---|", *rows])
    rows = [f"| `{{{name}}}` | {meaning} |" for name, meaning in PLACEHOLDERS.items()]
    generated["placeholders"] = "\n".join(["| placeholder | what it becomes |", "|---|---|", *rows])
    generated["own convention"] = "\n".join([*HEAD, *_own_convention()])
    for title, keys in _sections().items():
        generated[f"settings of {title}"] = "\n".join([*HEAD, *_settings(keys)])
    rows = [
        f"| `source.{key}` | {default} | {text} |" for key, default, text in _fields(TableFormat)
    ]
    generated["settings of table formats"] = "\n".join([*HEAD, *rows])
    for name in documented_sources():
        generated[f"settings of {name}"] = "\n".join([*HEAD, *_source_settings(name)])
    rows = [f"| `{name}` | {_first_line(load_source(name))} |" for name in documented_sources()]
    generated["sources"] = "\n".join(["| `source.kind` | what it reads |", "|---|---|", *rows])
    rows = [
        f"| {stage} | `{code}` | {meaning} |"
        for stage, codes in REASONS.items()
        for code, meaning in codes.items()
    ]
    generated["reasons"] = "\n".join(["| stage | reason | meaning |", "|---|---|---|", *rows])
    rows = [
        f"| {fate} | `{code}` | {meaning} |"
        for fate, codes in (("ignored", IGNORED), ("left out", LEFT_OUT))
        for code, meaning in codes.items()
    ]
    generated["reasons without harm"] = "\n".join(
        ["| what | reason | meaning |", "|---|---|---|", *rows]
    )
    rows = [f"| `{name}` | {meaning} |" for name, meaning in CHANGES.items()]
    generated["changes"] = "\n".join(["| name | what was done |", "|---|---|", *rows])
    return generated


def _first_line(source: type[Any]) -> str:
    return (sys.modules[source.__module__].__doc__ or "").partition("\n")[0].replace("|", "\\|")


def _features(convention: Convention) -> Iterator[str]:
    """The rows of a convention: where each feature comes from."""
    yield from ("| feature | type | field |", "|---|---|---|")
    for each in (*convention.example_features, *convention.attribute_features):
        origin = f"`{each.field}`" if each.field else each.meaning
        yield f"| `{each.key}` | {each.kind}{'[]' * each.many} | {origin} |"


def _own_convention() -> Iterator[str]:
    for key, default, meaning in _fields(Convention):
        if key != "features":
            yield f"| `convention.{key}` | {default} | {meaning} |"
            continue
        yield f"| `convention.features` | | {meaning} |"
        for inner, inner_default, inner_meaning in _fields(ConventionFeature):
            yield f"| `convention.features.NAME.{inner}` | {inner_default} | {inner_meaning} |"


def _sections() -> dict[str, tuple[str, ...]]:
    named = {key for keys in TITLES.values() for key in keys}
    others = (field.name for field in fields(DatasetSettings) if field.name not in named)
    return {"general": tuple(others), **TITLES}


def _settings(keys: tuple[str, ...]) -> Iterator[str]:
    for key, default, meaning in _fields(DatasetSettings):
        if key not in keys:
            continue
        section = SECTIONS.get(key)
        if key == "source":
            yield f"| `source.kind` | `class_folders` | {meaning} See [sources](sources.md). |"
        elif section is None:
            yield f"| `{key}` | {default} | {meaning} |"
        else:
            for inner, inner_default, inner_meaning in _fields(section):
                yield f"| `{key}.{inner}` | {inner_default} | {inner_meaning} |"
                if nested := SECTIONS.get(f"{key}.{inner}"):
                    for last, last_default, last_meaning in _fields(nested):
                        yield f"| `{key}.{inner}.{last}` | {last_default} | {last_meaning} |"


def _source_settings(name: str) -> Iterator[str]:
    """The rows of one source, without those that all sources of tables have."""
    source = load_source(name)
    shared = _names(TableFormat) if issubclass(source, TableFormat) else set()
    for key, default, meaning in _nested_fields(source):
        if key not in shared:
            yield f"| `source.{key}` | {default} | {meaning} |"


def _names(settings: type[Any]) -> set[str]:
    return {field.name for field in fields(settings)}


def _fields(settings: type[Any]) -> Iterator[tuple[str, str, str]]:
    meanings = dict(
        each for part in reversed(settings.__mro__) for each in _meanings(part.__doc__ or "")
    )
    for field in fields(settings):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        yield field.name, _show(default), meanings.get(field.name, "").replace("|", "\\|")


def _nested_fields(settings: type[Any]) -> Iterator[tuple[str, str, str]]:
    """The fields; nested dataclasses are replaced by their own fields."""
    defaults = {
        field.name: field.default_factory()
        for field in fields(settings)
        if field.default_factory is not MISSING
    }
    records = {name: type(default) for name, default in defaults.items() if is_dataclass(default)}
    for name, default, meaning in _fields(settings):
        if name not in records:
            yield name, default, meaning
            continue
        for inner, inner_default, inner_meaning in _fields(records[name]):
            yield f"{name}.{inner}", inner_default, inner_meaning


def _meanings(docstring: str) -> Iterator[tuple[str, str]]:
    # Python 3.13 takes the indentation out of docstrings itself.
    _, _, attributes = cleandoc(docstring).partition("Attributes:\n")
    for match in re.finditer(r"^    (\w+): ((?:.|\n(?=        ))*)", attributes, re.MULTILINE):
        text = " ".join(match[2].split())
        yield match[1], text[0].upper() + text[1:]


def _show(value: Any) -> str:
    if value in (None, MISSING) or value == () or value == "" or value == {} or is_dataclass(value):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    if isinstance(value, dict):
        return f"`{{{', '.join(f'{key}: {each}' for key, each in value.items())}}}`"
    return f"`{value}`".replace("|", "\\|")


def fill(texts: dict[Path, str]) -> dict[Path, str]:
    """The pages with every generated section up to date; each section is on exactly one of them."""
    filled = dict(texts)
    for name, table in tables().items():
        pattern = re.compile(rf"<!-- {re.escape(name)} -->\n(?:\n*(?:\|.*(?:\n|\Z))+)?\n*")
        section = f"<!-- {name} -->\n\n{table}\n"

        def replace(match: re.Match[str], section: str = section) -> str:
            return section + _distance(match)

        places = 0
        for page, text in filled.items():
            filled[page], found = pattern.subn(replace, text)
            places += found
        if places != 1:
            said = f"{places} pages have" if places else "no page has"
            raise SystemExit(f"{said} <!-- {name} -->: there must be one, under a heading in docs/")
    return filled


def _distance(section: re.Match[str]) -> str:
    """The empty line between a section and what follows it."""
    return "\n" if section.end() < len(section.string) else ""


def main() -> None:
    """Writes or checks the pages."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    filled = fill(texts)
    stale = [page.relative_to(ROOT).as_posix() for page in PAGES if texts[page] != filled[page]]
    if "--check" in sys.argv[1:]:
        sys.exit(
            f"the tables of {', '.join(stale)} are out of date: run `make docs`" if stale else 0
        )
    for page in PAGES:
        page.write_text(filled[page], encoding="utf-8")


if __name__ == "__main__":
    main()
