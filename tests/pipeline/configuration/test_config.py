import io
import unicodedata
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from make_settings import make_settings

from recordmill.annotations.boxes import BOXES
from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.resolve_settings import make_recipe
from recordmill.pipeline.configuration.written_settings import DEFAULT_KIND
from recordmill.schemas.conventions import convention_names, load_convention
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.recipe import list_settings
from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
from recordmill.transforms.inputs.sources.source import load_source

CONVENTIONS = Path(__file__).parents[3] / "schemas" / "conventions"


def errors_of(overrides=(), path=None):
    with pytest.raises(UsageError) as raised:
        load_settings(path, overrides)
    return str(raised.value).splitlines()


def test_without_a_file_the_defaults_hold():
    assert load_settings(None, []).settings == make_settings()


def test_plain_values_give_the_same_settings_again(tmp_path):
    settings = load_settings(
        "configs/filename_labels.yaml", ["images.resize.longest=64", "limit=5"]
    ).settings
    (tmp_path / "stored.yaml").write_text(make_recipe(settings, "# Recognized this\n").config_text)
    stored = load_settings(str(tmp_path / "stored.yaml"), [])
    assert (stored.settings, stored.comment) == (settings, "# Recognized this\n")
    assert make_recipe(stored.settings) == make_recipe(settings)


@pytest.mark.parametrize("path", ["configs/filename_labels.yaml", "filename_labels.yaml"])
def test_shipped_configurations_are_found_from_anywhere(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    assert isinstance(load_settings(path, []).settings.source, FilenameLabels)


@pytest.mark.parametrize("name", convention_names())
def test_a_shipped_convention_is_a_configuration_to_copy(name):
    convention = load_convention(name)
    if not BOXES.fields.keys().isdisjoint(convention.fields):
        given = ["source.kind=coco", "masks=png"]
    elif "segmentation" in convention.fields:
        given = ["source={kind: manifest, columns: {uri: image, mask: mask}}"]
    else:
        given = ["features.feature=mean_std"]
    assert load_settings(str(CONVENTIONS / f"{name}.yaml"), given).settings.convention == convention


def test_a_file_of_ones_own_goes_before_a_shipped_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "class_folders.yaml").write_text("seed: 42")
    assert load_settings("class_folders.yaml", []).settings.seed == 42


def test_an_empty_file_is_the_defaults(tmp_path):
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert load_settings(str(tmp_path / "empty.yaml"), []).settings == make_settings()


def test_overrides_reach_any_depth_and_the_last_wins():
    overrides = [
        "images.resize.exact=[32, 48]",
        "images.quality=1",
        "images.quality=2",
        "labels.classes=[a, b]",
    ]
    settings = load_settings(None, overrides).settings
    assert (settings.images.resize.exact, settings.images.quality) == ((32, 48), 2)
    assert settings.labels.classes == ("a", "b")


def test_an_override_of_one_entry_keeps_the_others():
    assert load_settings(None, ["splits.fractions.train=0.8"]).settings.splits.fractions == {
        "train": 0.8,
        "test": 0.1,
    }
    assert load_settings(
        None, ["source.kind=arrays", "source.images.train=x"]
    ).settings.source.images == {
        "train": "x",
        "test": "x_test",
    }
    (line,) = errors_of(["splits.fractions.val=0.2"])
    assert line == "--set: splits.fractions sum to 1.2, which is over 1: lower them"


def test_an_override_of_one_entry_keeps_the_others_of_the_file(tmp_path):
    (tmp_path / "own.yaml").write_text("splits: {fractions: {a: 0.5, b: 0.5}}\nimages:\n")
    settings = load_settings(
        str(tmp_path / "own.yaml"), ["splits.fractions.a=0.25", "images.quality=9"]
    ).settings
    assert (settings.splits.fractions, settings.images.quality) == ({"a": 0.25, "b": 0.5}, 9)


@pytest.mark.parametrize(
    ("value", "word"), [("yes", "yes"), ("no", "no"), ("true", "yes"), ('"yes"', "yes")]
)
def test_yes_and_no_may_be_written_without_quotes(tmp_path, value, word):
    (tmp_path / "own.yaml").write_text(
        f"source: {{kind: table, columns: {{a: int}}, infer: {value}}}\nconvention: plain"
    )
    assert load_settings(str(tmp_path / "own.yaml"), []).settings.source.infer == word
    override = [
        "source={kind: table, columns: {a: int}}",
        "convention=plain",
        f"source.infer={value}",
    ]
    assert load_settings(None, override).settings.source.infer == word


def test_a_wrong_source_is_the_only_error():
    assert errors_of(["source={kind: table, infer: maybe}", "convention=plain"]) == [
        "--set: source.infer is 'maybe': it should be 'auto', 'yes' or 'no'"
    ]


def test_an_empty_value_is_an_empty_text():
    settings = load_settings("configs/coco.yaml", ["source.images=", "name="]).settings
    assert (settings.source.images, settings.name) == ("", "")
    assert load_settings(None, ["limit=", "splits.group="]).settings == make_settings()


def test_an_error_blames_where_the_value_comes_from(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("seed: many\nsource: {kind: voc, images: 3}\nimages: {max_side: 0}")
    assert errors_of(["limit=few", "splits.stratify=5", "source.images=[]"], str(path)) == [
        "--set: source.images is []: it should be text, in quotes",
        f"{path}: images.max_side is 0: it should be greater than or equal to 1",
        "--set: splits.stratify is 5: it should be true or false",
        f"{path}: seed is 'many': it should be a whole number",
        "--set: limit is 'few': it should be a whole number",
    ]


def test_an_error_in_a_keyword_names_its_path_and_no_flag(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("seed: many\nimages: {max_side: 0}")
    with pytest.raises(UsageError) as raised:
        load_settings(
            str(path), [], keywords={"images": {"quality": 0}, "splits": {"group": "("}, "limit": 0}
        )
    assert str(raised.value).splitlines() == [
        f"{path}: images.max_side is 0: it should be greater than or equal to 1",
        "argument images.quality is 0: it should be greater than or equal to 1",
        f"{path}: seed is 'many': it should be a whole number",
        "argument limit is 0: it should be greater than or equal to 1",
    ]
    with pytest.raises(UsageError) as raised:
        load_settings(None, [], keywords={"splits": {"group": "("}})
    assert str(raised.value) == (
        "argument splits.group '(' is not a regular expression: missing ): ("
    )


def test_an_error_of_two_settings_blames_the_one_that_it_begins_with(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("images: {reencode: never}")
    assert errors_of(["images.store=png"], str(path)) == [
        "--set: images.store needs re-encoding, and images.reencode is never: remove one of them"
    ]
    path.write_text("images: {store: png}")
    assert errors_of(["images.reencode=never"], str(path)) == [
        f"{path}: images.store needs re-encoding, and images.reencode is never: remove one of them"
    ]


def test_the_word_auto_is_never_blamed():
    assert errors_of(["imagez=1"], "auto") == [
        "--set: imagez is not a setting: did you mean images?"
    ]


def test_keywords_below_a_value():
    with pytest.raises(UsageError) as raised:
        load_settings(None, [], keywords={"seed": 1, "seed.x": 2})
    assert str(raised.value) == "argument seed.x: seed is 1, which has no keys below it"


@pytest.mark.parametrize(
    ("override", "error"),
    [
        *((f"{key}={2**63 - 1}", f"{key} is {2**63 - 1}: it should be less than or equal to "
                                 f"{2**62}")
          for key in ("images.max_bytes", "images.max_pixels", "labels.offset")),
        ("images.resize.exact=[65500, 65500]",
         "images.resize.exact: an image has at most 89,478,485 pixels: give smaller sides"),
        ("features={x: 'os:system'}",
         "features.x.function 'os:system' is Python's own: name a function in a module of your "
         "own"),
        ("features={x: 'builtins:len'}",
         "features.x.function 'builtins:len' is Python's own: name a function in a module of your "
         "own"),
        ("shards.size='" + "9" * 400 + "B'",
         "shards.size is '" + "9" * 79 + ": write a number and a unit, such as 128MiB"),
        ("shards.name='{index:0999999999d}'", "shards.name '{index:0999999999d}' gives names that "
                                              "are too long: "
                                              "use format codes of fewer digits"),
    ],
)  # fmt: skip
def test_a_value_beyond_all_bounds_is_one_sentence(override, error):
    assert errors_of([override]) == [f"--set: {error}"]


def test_an_override_may_hold_equals_signs():
    settings = load_settings(
        None, ["source={kind: filename_labels, pattern: '(?P<label>a=b)'}"]
    ).settings
    assert settings.source.pattern == "(?P<label>a=b)"


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("imagez=1", "imagez is not a setting: did you mean images?"),
        (
            "images.resize={longest: 5, widest: 3}",
            "images.resize.widest is not a setting: write one of images.resize.",
        ),
        (
            "splits.fraction.train=1",
            "splits.fraction is not a setting: did you mean splits.fractions?",
        ),
        (
            "source.kind=zip",
            "there is no source 'zip': choose one of archives, arrays, class_folders, coco",
        ),
        ("source=zip", "source is 'zip': write source: {kind: class_folders} and its settings"),
        ("source.class_from=middle", "source.class_from is 'middle': "),
        ("images=5", "images is 5: "),
        ("images.quality=high", "images.quality is 'high': "),
        ("images.quality=101", "images.quality is 101: it should be less than or equal to 100"),
        ("images.formats=[JPG]", "images.formats.0 is 'JPG': it should be 'JPEG', 'PNG', "),
        (
            "images.resize.longest=0",
            "images.resize.longest is 0: it should be greater than or equal to 1",
        ),
        (
            "splits.fractions={train: 0.9, test: 0.2}",
            "splits.fractions sum to 1.1, which is over 1: lower them",
        ),
        ("splits.fractions={train: 0}", "splits.fractions.train is 0"),
        ("splits.fractions={a/b: 1}", "'a/b' cannot be a split's name"),
        ("splits.group=(", "splits.group '(' is not a regular expression"),
        ("shards.count=0", "shards.count is 0: it should be greater than or equal to 1"),
        ("shards.size=12 parsecs", "shards.size is '12 parsecs'"),
        ("shards.name=x", "shards.name 'x' gives several files one name"),
        ("shards.name=../{split}-{index}", "gives the name"),
        ("convention=none_such", "there is no convention 'none_such': choose one of deeplab, "),
        ("limit=0", "limit is 0: it should be greater than or equal to 1"),
        (
            "source.kind=yolo",
            "convention is not set: source.kind gives boxes, and the default convention stores "
            "none: "
            "add --set convention=tf_object_detection or --set convention=tfds; --set "
            "convention=default leaves the boxes out",
        ),
        (
            "max_rejected.boxes.share=2",
            "max_rejected.boxes.share is 2: it should be less than or equal to 1",
        ),
        (
            "max_rejected.labels.count=-1",
            "max_rejected.labels.count is -1: it should be greater than or equal to 0",
        ),
        ("max_rejected.share=2", "max_rejected.share is 2: it should be less than or equal to 1"),
        ("labels={ids: integers, offset: 1}", "labels.ids: integers takes each label as its id"),
        ("name=a/b", "name 'a/b' cannot name files"),
        ("compression=zip", "compression is 'zip': "),
    ],
)
def test_a_wrong_value_is_named_with_its_path(override, error):
    (line,) = errors_of([override])
    assert error in line
    assert "resize.resize" not in line


def test_all_errors_are_reported_at_once():
    assert (
        len(errors_of(["imagez=1", "seeed=2", "source.class_form=path", "images.quality=high"]))
        == 4
    )


@pytest.mark.parametrize("text", ["[1, 2]", "words", "5"])
def test_a_file_that_holds_no_keys(tmp_path, text):
    (tmp_path / "odd.yaml").write_text(text)
    (line,) = errors_of(path=str(tmp_path / "odd.yaml"))
    assert line.endswith("not keys and values")


def test_a_file_that_is_not_text(tmp_path):
    (tmp_path / "odd.yaml").write_bytes(b"\xff\xfe\x00")
    (line,) = errors_of(path=str(tmp_path / "odd.yaml"))
    assert "cannot be read" in line


def test_a_folder_is_not_a_configuration(tmp_path):
    (line,) = errors_of(path=str(tmp_path))
    assert line == f"the configuration {tmp_path} cannot be read: Is a directory"


def test_a_number_as_a_key(tmp_path):
    (tmp_path / "odd.yaml").write_text("1: 2\nseed: 3")
    (line,) = errors_of(path=str(tmp_path / "odd.yaml"))
    assert line == f"{tmp_path / 'odd.yaml'}: 1 is not a setting: docs/settings.md lists all"


@pytest.mark.parametrize(
    ("text", "key", "place"),
    [
        ("seed: 1\nlimit: 5\nseed: 2\n", "seed", "line 3, column 1"),
        (
            "splits:\n  fractions: {train: 0.9,\n    test: 0.1, train: 1}\n",
            "train",
            "line 3, column 16",
        ),
        ("source:\n  kind: idx\nseed: 3\n'source': {kind: arrays}\n", "source", "line 4, column 1"),
        ("features:\n  - {caf\u00e9: 1, cafe\u0301: 2}\n", "caf\u00e9", "line 2, column 15"),
    ],
)
def test_a_key_that_is_given_twice(tmp_path, text, key, place):
    path = tmp_path / "twice.yaml"
    path.write_text(text, encoding="utf-8")
    assert errors_of(path=str(path)) == [
        f"the configuration {path} cannot be read: {key} is given twice: remove one of them "
        f"({place})"
    ]


def test_an_override_below_a_value(tmp_path):
    assert errors_of(["seed=1", "seed.x=2"]) == [
        "--set seed.x=2: seed is 1, which has no keys below it"
    ]


def test_settings_are_plain_values_in_the_shape_of_the_yaml():
    source = FilenameLabels(features_from={})
    plain = list_settings(make_settings(source=source))
    assert plain["source"] == {
        "kind": "filename_labels",
        "pattern": source.pattern,
        "features_from": {},
    }
    assert plain["splits"]["fractions"] == {"train": 0.9, "test": 0.1}
    assert orjson.loads(orjson.dumps(plain))["images"]["quality"] == 95


def test_the_default_source_goes_by_its_name():
    assert isinstance(make_settings().source, load_source(DEFAULT_KIND))
    assert make_settings().source.kind == DEFAULT_KIND


def test_checking_a_source_leaves_its_class_as_it_was():
    kind = load_source("class_folders")
    before = set(vars(kind))
    assert errors_of(["source.x=1"]) == [
        "--set: source.x is not a setting: write one of source.class_from, source.split, "
        "source.pairs_of, source.pairs"
    ]
    assert type(load_settings(None, ["source.class_from=path"]).settings.source) is kind
    assert set(vars(kind)) == before


CAFE = unicodedata.normalize("NFD", "café")


@pytest.mark.parametrize("where", ["file", "--set", "escape"])
def test_text_is_in_nfc_as_keys_are(tmp_path, where):
    word = CAFE.encode("unicode_escape").decode() if where == "escape" else CAFE
    classes, folders = f'["{word}", dog]', f'{{"{word}": train}}'
    (tmp_path / "own.yaml").write_text(
        f"labels: {{classes: {classes}}}\nsplits: {{from_folders: {folders}}}"
    )
    overrides = [f"labels.classes={classes}", f"splits.from_folders={folders}"]
    settings = load_settings(
        str(tmp_path / "own.yaml") if where == "file" else None, overrides
    ).settings
    assert settings.labels.classes == ("caf\u00e9", "dog")
    assert settings.splits.from_folders == {"caf\u00e9": "train"}


def test_a_key_in_an_override_is_text_too():
    settings = load_settings(None, [f"splits.from_folders.{CAFE}=train"]).settings
    assert settings.splits.from_folders == {"caf\u00e9": "train"}


GIVEN = "splits.from_folders={train: train, val: validation}"


@pytest.mark.parametrize(
    "config", [None, "configs/class_folders.yaml", "configs/filename_labels.yaml"]
)
def test_given_splits_need_no_fractions(config, tmp_path):
    settings = load_settings(config, [GIVEN]).settings
    assert settings.splits.names == ("train", "validation")
    assert "fractions" not in list_settings(settings)["splits"]
    (tmp_path / "stored.yaml").write_text(make_recipe(settings).config_text)
    assert load_settings(str(tmp_path / "stored.yaml"), []).settings == settings


def test_given_splits_and_fractions_contradict_each_other(tmp_path):
    (tmp_path / "own.yaml").write_text("splits: {fractions: {train: 1.0}}")
    (line,) = errors_of([GIVEN], str(tmp_path / "own.yaml"))
    assert line.endswith(
        "splits.from_folders and splits.fractions contradict each other: remove one of them "
        "(--set 'splits={from_folders: {train: train, val: validation}}' replaces both)"
    )
    advised = load_settings(
        str(tmp_path / "own.yaml"), ["splits={from_folders: {train: train}}"]
    ).settings
    assert advised.splits.names == ("train",)


@pytest.mark.parametrize("name", ["-", "own.yaml"])
def test_standard_input_is_a_configuration(tmp_path, monkeypatch, name):
    text = "source: {kind: class_folders}\nversion: 1.10.0\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    (tmp_path / "own.yaml").write_text(text)
    path = name if name == "-" else str(tmp_path / name)
    assert load_settings(path, ["seed=7"]).settings == replace(
        load_settings("configs/class_folders.yaml", []).settings, version="1.10.0", seed=7
    )


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"see", "the configuration standard input holds a str, not keys and values"),
        (b"\xff", "the configuration on standard input cannot be read: 'utf-8' codec"),
        (b"a: [", "the configuration standard input cannot be read: expected the node content"),
        (b"seed: x", "standard input: seed is 'x': it should be a whole number"),
        (
            b"#" * 2**20 + b"\n",
            "the configuration on standard input is larger than 1 MiB: write a smaller one",
        ),
    ],
)
def test_a_faulty_standard_input_is_named(monkeypatch, data, error):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    (line,) = errors_of(path="-")
    assert line.startswith(error)


def test_an_endless_standard_input_is_not_read_to_the_end(monkeypatch):
    with open("/dev/zero", encoding="utf-8") as zeros:
        monkeypatch.setattr("sys.stdin", zeros)
        (line,) = errors_of(path="-")
    assert line == "the configuration on standard input is larger than 1 MiB: write a smaller one"


def test_a_closed_standard_input_is_named(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    (line,) = errors_of(path="-")
    assert line == "--config is -, and standard input is closed: name a file instead"
