"""Values of settings arrive as they were written, on every way."""

import re
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from yaml_texts import TRAPS, read_with_ruamel, texts

from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.parse_yaml import normalize, parse_yaml
from recordmill.pipeline.configuration.resolve_settings import make_recipe
from recordmill.pipeline.configuration.setting_types import (
    _members_of,
    _words_of,
    fit_to_type,
    read_set_text,
)
from recordmill.pipeline.configuration.written_settings import parse_keywords
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.dataset import DatasetSettings, KeepSettings
from recordmill.schemas.yaml_core import load_yaml, plain_numbers, write_yaml
from recordmill.transforms.inputs.sources.source import load_source, source_names

ROOT = Path(__file__).parents[3]


def settings_of(kind, path=""):
    """Every setting below a class: its key, its type and its default."""
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        below = [one for one in _members_of(hints[each.name]) if is_dataclass(one)]
        if below and each.name not in ("convention", "source"):
            yield from settings_of(below[0], f"{path}{each.name}.")
        elif each.name != "source":
            default = each.default
            if default is MISSING and each.default_factory is not MISSING:
                default = each.default_factory()
            yield f"{path}{each.name}", hints[each.name], default


ALL = {key: (kind, default) for key, kind, default in settings_of(DatasetSettings)}
for name in source_names():
    for key, kind, default in settings_of(load_source(name), "source."):
        ALL[f"{key} ({name})"] = (kind, default)


def arrive(kind, value, text):
    """A value as it arrives through `--set`, a file, and Python."""
    parse = lambda each: parse_yaml(each, "it")  # noqa: E731
    ways = [read_set_text(text, parse), parse(f"key: {text}")["key"] if is_safe(text) else None]
    ways += [parse(write_yaml({"key": value}))["key"]]
    ways += [each.value for each in parse_keywords({"key": value})]
    for each in ways:
        if each is None and text:
            continue
        problems = []
        fitted = plain_numbers(fit_to_type(kind, each, problems))
        assert problems == []
        yield TypeAdapter(kind, config={"arbitrary_types_allowed": True}).validate_python(fitted)


def is_safe(text):
    """Whether a text may stand in a file without quotes."""
    return not re.match(r"""[]{}\[|>@`&*!%#'",?:-]""", text) and not re.search(r": |:$| #", text)


def test_every_word_of_every_setting_arrives_as_it_is():
    tried = 0
    for key, (kind, _) in ALL.items():
        for word in _words_of(_members_of(kind)):
            tried += 1
            assert list(arrive(kind, word, str(word))) == [word] * 4, key
    assert tried > 60


def test_every_truth_value_arrives_and_other_words_for_it_do_not():
    found = [key for key, (kind, _) in ALL.items() if bool in _members_of(kind)]
    assert {"splits.stratify", "images.near_duplicates", "source.transposed (idx)"} < {*found}
    for key in found:
        kind = ALL[key][0]
        for value in (True, False):
            assert list(arrive(kind, value, str(value).lower())) == [value] * 4, key
        for word in ("yes", "no", "on", "off", "Yes", "y"):
            problems = []
            fit_to_type(kind, word, problems, "key")
            assert [str(each).split(", or ")[0] for each in problems] == [
                f"key is '{word}': write true or false"
            ]


def test_every_text_takes_what_was_written():
    found = [
        key for key, (kind, _) in ALL.items() if {*_members_of(kind)} in ({str}, {str, type(None)})
    ]
    assert {"name", "version", "source.separator (manifest)", "shards.name"} < {*found}
    for key in found:
        kind = ALL[key][0]
        for text in (
            "1.10",
            "007",
            "0x1F",
            "1e3",
            "yes",
            "4:2:0",
            "2024-01-01",
            "|",
            "{a}",
            "a # b",
        ):
            assert set(arrive(kind, text, text)) == {text}, key


def documented_rows():
    """Each setting of docs/settings.md and docs/sources.md, by its name in `ALL`, with its row."""
    for page in ("settings", "sources"):
        kinds = [""]
        for line in (ROOT / f"docs/{page}.md").read_text(encoding="utf-8").splitlines():
            if heading := re.fullmatch(r"## ([a-z_]+)", line):
                kinds = [f" ({heading[1]})"]
            elif line == "## Table formats":
                kinds = [" (manifest)", " (table)"]
            elif row := re.fullmatch(r"\| `([a-z_.0-9]+)` \| (?:`(.*)`)? \| (.*) \|", line):
                yield from ((f"{row[1]}{kind}", row[2], row[3]) for kind in kinds)


def documented_values():
    """The default of each documented setting, and the words of its meaning, by key."""
    for key, default, meaning in documented_rows():
        if key in ALL:
            yield key, (default or "").replace("\\|", "|"), re.findall(r"[\w:]*\w", meaning)


def test_every_setting_is_documented():
    on_another_page = {f"keep.{field.name}" for field in fields(KeepSettings)}
    assert {*ALL} - {key for key, *_ in documented_rows()} == on_another_page


def test_every_documented_default_arrives_and_is_the_default():
    found = {key: text for key, text, _ in documented_values() if text}
    assert len(found) > 70
    for key, text in found.items():
        kind, default = ALL[key]
        if default is MISSING or default is None:
            continue
        value = read_set_text(text, lambda each: parse_yaml(each, "it"))
        fitted = plain_numbers(fit_to_type(kind, value, []))
        if isinstance(default, tuple):
            fitted = tuple(fitted)
        assert fitted == default, key


def test_every_documented_word_is_one_of_the_setting():
    for key, _, words in documented_values():
        known = [each for each in _words_of(_members_of(ALL[key][0])) if isinstance(each, str)]
        missing = {each for each in known if each} - {*words}
        assert len(known) < 2 or not missing, (key, missing)


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("splits.stratify=yes", "splits.stratify is 'yes': write true or false"),
        ("report=off", "report is 'off': write true or false"),
        (
            "images.near_duplicates=on",
            "images.near_duplicates is 'on': write true or false, or together",
        ),
        ("limit=true", "limit is true: it should be a whole number"),
        ("max_rejected.share=false", "max_rejected.share is false: it should be a number"),
        ("limit=12:30", "limit is '12:30': it should be a whole number"),
        ("version=1.10", "version is '1.10': write three numbers, such as 1.2.0"),
        (
            "name=2024-01-01 x",
            "name '2024-01-01 x' cannot name files: use letters, digits, - and _",
        ),
    ],
)
def test_a_value_of_another_type_says_what_to_write(override, error):
    with pytest.raises(UsageError) as raised:
        load_settings("configs/class_folders.yaml", [override])
    assert str(raised.value) == f"--set: {error}"


def test_a_value_that_is_not_yaml_is_refused_where_text_will_not_do():
    with pytest.raises(UsageError, match=r"^--set limit=\{: the value cannot be read: "):
        load_settings("configs/class_folders.yaml", ["limit={"])
    with pytest.raises(UsageError, match=r'^--set creator="a b: the value cannot be read: '):
        load_settings("configs/class_folders.yaml", ['creator="a b'])


@pytest.mark.parametrize("word", ["yes", "no"])
def test_infer_takes_yes_and_no_with_and_without_quotes(word, tmp_path):
    truth = {"yes": "true", "no": "false"}[word]
    for text in (word, f"'{word}'", truth):
        config = tmp_path / "table.yaml"
        config.write_text(
            f"source: {{kind: table, infer: {text}, columns: {{a: int}}}}\nconvention: plain\n"
        )
        for path, overrides in (
            (str(config), []),
            ("configs/observations.yaml", [f"source.infer={text}"]),
        ):
            assert load_settings(path, overrides).settings.source.infer == word


def test_keys_arrive_as_they_were_written(tmp_path):
    config = tmp_path / "own.yaml"
    config.write_text(
        "source: {kind: class_folders}\n"
        "splits: {from_folders: {01: train, 1: test, no: val, true: dev, 1.10: eval, "
        "2024-01-01: holdout}}\n"
    )
    given = load_settings(str(config), []).settings.splits.from_folders
    assert list(given.items()) == [
        ("01", "train"),
        ("1", "test"),
        ("no", "val"),
        ("true", "dev"),
        ("1.10", "eval"),
        ("2024-01-01", "holdout"),
    ]


@given(st.dictionaries(texts, texts, max_size=4), texts, st.lists(texts, max_size=4, unique=True))
def test_the_configuration_that_we_write_is_read_back(mapping, text, classes):
    texts_of = [normalize(each) for each in (text, *classes, *mapping, *mapping.values())]
    settings = load_settings("configs/class_folders.yaml", [], None).settings
    given = {"creator": texts_of[0], "labels": {"classes": list(dict.fromkeys(texts_of[1:]))}}
    settings = load_settings("configs/class_folders.yaml", [], keywords=given).settings
    assert settings.creator == given["creator"]
    assert list(settings.labels.classes) == given["labels"]["classes"]
    written = make_recipe(settings).config_text
    assert load_yaml(written) == read_with_ruamel(written) == yaml.safe_load(written)
    assert load_yaml(written)["creator"] == settings.creator


def test_an_earlier_configuration_means_the_same():
    for path in sorted(ROOT.glob("tests/earlier/**/config.yaml")):
        text = path.read_text(encoding="utf-8")
        assert load_yaml(text) == yaml.safe_load(text)
    for path in sorted([*ROOT.glob("configs/*.yaml"), *ROOT.glob("tests/earlier/configs/*.yaml")]):
        text = path.read_text(encoding="utf-8")
        assert load_yaml(text) == yaml.safe_load(text), path


def test_texts_that_an_earlier_version_wrote_without_quotes_stay_texts(tmp_path):
    config = tmp_path / "config.yaml"
    values = {"creator": "1e3", "license": "0o17", "labels": {"classes": ["1E5", "0o7"]}}
    config.write_text(yaml.safe_dump({"source": {"kind": "class_folders"}, **values}))
    assert "creator: 1e3\n" in config.read_text()
    settings = load_settings(str(config), []).settings
    assert (settings.creator, settings.license) == ("1e3", "0o17")
    assert settings.labels.classes == ("1E5", "0o7")


def test_no_trap_is_left_out():
    assert {"yes", "1_000", "0o17", "4:2:0", "~", ".5", "12:30:45"} < {*TRAPS}
    assert get_args(ALL["images.subsampling"][0])
