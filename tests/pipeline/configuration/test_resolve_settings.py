import re
from dataclasses import dataclass, replace

import pytest
import yaml
from make_settings import make_settings

from recordmill.pipeline.configuration.resolve_settings import make_recipe, resolve_settings
from recordmill.schemas.conventions import Convention, ConventionFeature
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.dataset import ExampleLayout, ShardSettings, SplitSettings
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.schemas.settings.images import ImageSettings
from recordmill.schemas.settings.source import Input
from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.sources.table import Table
from recordmill.transforms.inputs.tables.cells import ColumnSettings

OWN_IMAGE = {"img": ConventionFeature(field="encoded", type="bytes")}
ONE_SPLIT = SplitSettings(fractions={"train": 1.0})
A_AND_A1 = SplitSettings(fractions={"a": 0.5, "a1": 0.5})
FOLDERS_A_AND_A1 = SplitSettings(from_folders={"x": "a", "y": "a1"})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: make_settings(index_files=True, compression="gzip"),
            "index_files needs compression: none, since readers seek in the files",
        ),
        (
            lambda: make_settings(shards=ShardSettings(name="{split}.tfrecord")),
            "shards.name '{split}.tfrecord' gives several files one name: add {split} and {index}",
        ),
        (
            lambda: make_settings(shards=ShardSettings(name="{index}.tfrecord")),
            "gives several files one name",
        ),
        (
            lambda: make_settings(shards=ShardSettings(name="data.record", count=1)),
            "gives several files one name",
        ),
        (
            lambda: make_settings(
                splits=ONE_SPLIT, shards=ShardSettings(name="data.record", count=2)
            ),
            "gives several files one name",
        ),
        (
            lambda: make_settings(splits=ONE_SPLIT, shards=ShardSettings(name="data")),
            "gives several files one name",
        ),
        (
            lambda: make_settings(
                splits=A_AND_A1, shards=ShardSettings(name="{split}{index}.record")
            ),
            "shards.name '{split}{index}.record' gives several files one name: add {split} and "
            "{index}",
        ),
        (
            lambda: make_settings(
                splits=FOLDERS_A_AND_A1, shards=ShardSettings(name="{split}{index}.record")
            ),
            "gives several files one name",
        ),
        (
            lambda: make_settings(
                convention=Convention(features=OWN_IMAGE, shard_name="{split}.tfrec")
            ),
            "convention.shard_name '{split}.tfrec' gives several files one name: add {split} and "
            "{index}",
        ),
        (
            lambda: make_settings(splits=SplitSettings(fractions={"s" * 240: 1.0})),
            "shards.name '{split}-{index:05d}-of-{count:05d}.tfrecord' gives the name 'sssss",
        ),
        (
            lambda: make_settings(splits=SplitSettings(group="(?P<patient>x)")),
            "splits.group '(?P<patient>x)' has no group (?P<group>...): add it",
        ),
        (
            lambda: make_settings(splits=SplitSettings(group="(")),
            "splits.group '(' is not a regular expression",
        ),
        (lambda: make_settings(name="a/b"), "name 'a/b' cannot name files"),
        (
            lambda: make_settings(convention="plain"),
            "has no features: name functions under features",
        ),
        (lambda: make_settings(convention="x"), "there is no convention 'x': choose one of "),
    ],
)
def test_impossible_settings_raise_and_name_their_key(build, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        build()


def test_a_format_that_cannot_be_decoded_here_is_refused(monkeypatch):
    monkeypatch.setattr("recordmill.imaging.pillow_decode.find_spec", lambda name: None)
    message = (
        "images.formats: HEIC needs pillow-heif, which is not installed: pip install '.[heic]' "
        "in a clone"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        make_settings(images=ImageSettings(formats=("JPEG", "HEIC")))


@pytest.mark.parametrize(
    "key", ["image/filename", "label", "encoded", "format", "sha256", "xmin", "labels"]
)
def test_a_sources_feature_cannot_take_the_name_of_another(key):
    # It would be filled from the wrong field, or written twice.
    source = FilenameLabels(pattern=r"(?P<x>\w)_(?P<label>\d)", features_from={key: "x"})
    with pytest.raises(ValueError, match=f"source.*{key}.* taken"):
        make_settings(source=source)


def test_a_convention_fills_its_feature_from_a_sources_field_of_the_same_kind():
    source = FilenameLabels(pattern=r"(?P<x>\w)_(?P<label>\d)", features_from={"who": "x"})
    own = Convention(
        features={
            "image": ConventionFeature(field="encoded", type="bytes"),
            "person": ConventionFeature(field="who", type="bytes"),
        }
    )
    settings = make_settings(source=source, convention=own)
    assert [feature.key for feature in ExampleLayout(settings).features] == ["image", "person"]
    own = Convention(features={"person": ConventionFeature(field="who", type="int64")})
    with pytest.raises(
        ValueError, match="convention: person is int64, and the source's 'who' is bytes"
    ):
        make_settings(source=source, convention=own)


NO_IMAGE = Convention(features={"name": ConventionFeature(field="filename", type="bytes")})


def test_analysis_takes_moments():
    assert make_settings(analyze=True).images == replace(make_settings().images, moments=True)
    assert make_settings().images.moments is False


@pytest.mark.parametrize(
    ("images", "word"),
    [
        ({}, "when_needed"),
        ({"quality": 94}, "always"),
        ({"subsampling": "4:2:0"}, "always"),
        ({"reencode": "never"}, "never"),
    ],
)
def test_the_word_for_auto_is_written_out(images, word):
    settings = make_settings(images=ImageSettings(**images))
    assert (settings.images.reencode, settings.images.reencoding) == (word, word)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"images": ImageSettings(check="header")},
            "analyze needs every image's pixels: remove images.check: header",
        ),
        (
            {"images": ImageSettings(reencode="never")},
            "remove images.reencode: never, or set images.formats: .JPEG, PNG.",
        ),
        (
            {"decode": "none", "convention": NO_IMAGE},
            "analyze needs encoded images: set decode: images",
        ),
        (
            {"convention": NO_IMAGE},
            "analyze needs encoded images: set decode: images, and a convention that stores",
        ),
        ({"splits": SplitSettings(fractions={"a": 1.0})}, "analyze needs a split train"),
    ],
)
def test_analysis_needs_pixels_that_tensorflow_sees_and_a_split_to_learn_from(settings, problem):
    make_settings(**settings)
    with pytest.raises(ValueError, match=problem):
        make_settings(analyze=True, **settings)


def test_images_stored_as_they_are_can_be_analyzed_where_tensorflow_decodes_them():
    images = ImageSettings(reencode="never", formats=("PNG", "JPEG"))
    assert make_settings(analyze=True, images=images).images.moments


@pytest.mark.parametrize(
    ("convention", "store", "expected"),
    [
        ("default", "auto", "auto"),
        ("default", "raw", "raw"),
        ("raw_pixels", "auto", "raw"),
        ("raw_pixels", "png", "png"),
        ("tfrecorder", "auto", "raw"),
    ],
)
def test_images_are_stored_as_the_convention_has_them_unless_the_user_says(
    convention, store, expected
):
    assert (
        make_settings(convention=convention, images=ImageSettings(store=store)).images.store
        == expected
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"convention": "raw_pixels", "images": ImageSettings(reencode="never")},
            "images.reencode is never, and the convention (raw pixels and label, as for CIFAR-10) "
            "stores raw pixels",
        ),
        (
            {"convention": "tfrecorder", "images": ImageSettings(store="png")},
            "images.store is png, and the convention (TensorFlow Recorder) holds pixels: set it to "
            "raw",
        ),
        (
            {
                "convention": Convention(
                    features={"x": ConventionFeature(field="pixels_base64", type="bytes")}
                )
            },
            "images.store is auto, and the convention (the user's own) holds pixels: set it to raw",
        ),
        ({"convention": "raw_pixels", "analyze": True}, "analyze needs encoded images"),
    ],
)
def test_a_form_that_contradicts_the_rest_raises(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make_settings(**settings)


DIGEST = {"digest": FeatureFunction(function="file_sha256")}


def test_files_are_compressed_as_the_convention_has_it_unless_the_user_says():
    assert (make_settings().compression, make_settings(convention="tfrecorder").compression) == (
        "none",
        "gzip",
    )
    assert make_settings(convention="tfrecorder", compression="none").compression == "none"
    assert ExampleLayout(make_settings(convention="tfrecorder", name="x")).file_name(
        "train", 0, 1, 1
    ) == ("train-00000-of-00001.tfrecord.gz")


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("out/photos", "photos"),
        ("gs://b/my set/", "my_set"),
        ("/", "dataset"),
        ("...", "dataset"),
        ("é", "dataset"),
    ],
)
def test_a_dataset_takes_its_folders_name_where_file_names_need_one(output, name):
    settings = make_settings(convention="image_tfrecord_builder")
    assert resolve_settings(settings, [], output, [].append).name == name


def test_a_folders_name_that_is_too_long_for_files_is_one_sentence():
    settings = make_settings(shards=ShardSettings(name="{name:s}-{split}-{index}"))
    assert resolve_settings(settings, [], "out/photos", [].append).name == "photos"
    with pytest.raises(UsageError, match=r"^shards.name .* gives the name .* at most 240 bytes"):
        resolve_settings(settings, [], "o" * 240, [].append)


def test_a_name_of_its_own_is_kept_and_none_is_given_where_none_is_needed():
    named = make_settings(convention="image_tfrecord_builder", name="mine")
    assert resolve_settings(named, [], "out", [].append).name == "mine"
    assert resolve_settings(make_settings(), [], "out", [].append) == make_settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen(Source):
    """Its setting is what its files are called."""

    names: tuple[str, ...] = ()

    def settle(self, files, note):
        names = tuple(file.key for file in files)
        if "bad" in names:
            raise ValueError("source.names: bad is there")
        return replace(self, names=names)


@pytest.fixture
def folders(tmp_path):
    for name in ("one/train/a.txt", "one/.hidden", "one/b.csv", "two/train/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    return [Input(str(tmp_path / name), name) for name in ("one", "two")]


def test_a_source_sees_each_file_that_is_not_left_out(folders):
    settings = make_settings(source=Seen(), ignore=("*.csv",))
    resolved = resolve_settings(settings, folders, "out", [].append)
    assert resolved.source == Seen(names=("one/train/a.txt", "two/train/a.txt"))
    assert make_recipe(resolved).values["source"] == {
        "kind": "test_resolve_settings",
        "names": ("one/train/a.txt", "two/train/a.txt"),
    }
    assert settings.source == Seen()


def test_nothing_is_listed_for_a_source_that_needs_nothing():
    assert (
        resolve_settings(make_settings(), [Input("/nowhere")], "out", [].append) == make_settings()
    )


def test_what_the_files_contradict_is_an_error_of_the_configuration(folders, tmp_path):
    (tmp_path / "one" / "bad").write_text("x", encoding="utf-8")
    with pytest.raises(UsageError, match=r"^source.names: bad is there$"):
        resolve_settings(make_settings(source=Seen()), [Input(folders[0].path)], "out", [].append)


def test_a_setting_that_cannot_act_is_refused_and_an_unused_one_is_a_note():
    with pytest.raises(
        UsageError, match=r"^splits.stratify has no effect, since there is one split"
    ):
        resolve_settings(
            make_settings(splits=replace(ONE_SPLIT, stratify=True)), [], "out", [].append
        )
    notes = []
    source = Table(columns={"a": ColumnSettings(type="int")}, infer="no", split="b")
    resolve_settings(make_settings(source=source, convention="plain"), [], "out", notes.append)
    assert notes == ["source.split is not used, since splits.from_source is not set"]


def test_the_recipe_and_the_text_hold_the_settings_as_they_are_written():
    recipe = make_recipe(make_settings(seed=3, include=("*.jpg",)), "# why\n")
    assert recipe.config_text.startswith("# why\nname: ''\nsource:\n  kind: class_folders\n")
    assert yaml.safe_load(recipe.config_text)["include"] == ["*.jpg"]
    assert recipe.values == {
        "source": {"kind": "class_folders"},
        "include": ("*.jpg",),
        "seed": 3,
    }
    assert yaml.safe_load(recipe.config_text) == recipe.settings
    assert recipe.settings["images"]["quality"] == 95


def test_a_function_has_the_digest_of_its_code_in_the_recipe():
    settings = make_settings(features={"color": FeatureFunction(function="mean_std")})
    recipe = make_recipe(settings)
    assert recipe.values["features"] == {"color": {"function": "mean_std"}}
    assert recipe.values["functions"] == {"color": ""}
