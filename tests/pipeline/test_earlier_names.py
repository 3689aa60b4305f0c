"""Names of earlier versions, in British spelling: accepted, or written next to the present ones."""

import json

import pytest

import recordmill
from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.diff import main as diff
from recordmill.schemas.dataset.marker import About

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def test_licence_is_another_name_of_the_setting(tmp_path):
    (tmp_path / "own.yaml").write_text("licence: CC0-1.0\n", encoding="utf-8")
    path = str(tmp_path / "own.yaml")
    assert load_settings(path, []).settings.license == "CC0-1.0"
    assert load_settings(None, ["licence=CC0-1.0"]).settings.license == "CC0-1.0"
    for name in ("license", "licence"):  # a flag replaces the file's value, as always
        assert load_settings(path, [f"{name}=MIT"]).settings.license == "MIT"
    assert load_settings(None, ["licence=A", "license=A"]).settings.license == "A"


def test_license_and_licence_may_not_differ(photos, tmp_path, convert):
    (tmp_path / "own.yaml").write_text("{license: A, licence: B}", encoding="utf-8")
    path = str(tmp_path / "own.yaml")
    sentence = "license is 'A' and licence is 'B', which are one setting: remove licence"
    assert convert(photos, f"--config={path}").answer == (2, f"{path}: {sentence}")
    flags = ("--set=license=A", "--set=licence=B")
    assert convert(photos, *flags).answer == (2, f"--set: {sentence}")
    with pytest.raises(recordmill.ConversionError) as error:
        recordmill.convert(photos, tmp_path / "out", license="A", licence="B", quiet=True)
    assert str(error.value) == f"argument {sentence}"


def test_errors_name_the_setting_by_its_present_name(photos, convert, tmp_path):
    (tmp_path / "own.yaml").write_text("licence: [A]\n", encoding="utf-8")
    assert convert(photos, f"--config={tmp_path}/own.yaml").answer == (
        2,
        f"{tmp_path}/own.yaml: license is ['A']: it should be text, in quotes",
    )


def test_python_takes_both_names(photos, tmp_path):
    made = [
        recordmill.convert(photos, tmp_path / name, quiet=True, **{name: "CC0-1.0"})
        for name in ("license", "licence")
    ]
    assert [each.marker.about.license for each in made] == ["CC0-1.0"] * 2


def test_a_dataset_whose_marker_says_licence_is_kept_without_a_note(convert, photos):
    about = {"license": "CC0-1.0", "version": "1.2.0"}
    path = convert(photos, settings=about).output / "recordmill.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"license":', '"licence":'))
    assert json.loads(path.read_bytes())["about"]["licence"] == "CC0-1.0"
    assert recordmill.open_dataset(path.parent).marker.about == About(**about)
    for flags in ([], ["--overwrite"]):
        kept = convert(photos, *flags, settings=about)
        assert (kept.line["status"], kept.line["notes"]) == ("kept", [])


MANIFEST = "source={kind: manifest, columns: {uri: path, label: class}}"


def test_unlabelled_is_another_name_of_the_setting_of_a_source(tmp_path):
    (tmp_path / "own.yaml").write_text(
        "source: {kind: manifest, columns: {uri: a}, unlabelled: keep}\n", encoding="utf-8"
    )
    path = str(tmp_path / "own.yaml")
    assert load_settings(path, []).settings.source.unlabeled == "keep"
    for name in ("unlabeled", "unlabelled"):
        flag = f"source.{name}=reject"
        assert load_settings(path, [flag]).settings.source.unlabeled == "reject"
    assert load_settings(None, [MANIFEST, flag]).settings.source.unlabeled == "reject"


@pytest.mark.parametrize(
    "flags",
    [
        [MANIFEST, "source.unlabelled=keep", "source.unlabeled=reject"],
        ["source={kind: manifest, unlabeled: reject, unlabelled: keep}"],
    ],
)
def test_unlabeled_and_unlabelled_may_not_differ(photos, convert, flags):
    assert convert(photos, *(f"--set={flag}" for flag in flags)).answer == (
        2,
        "--set: source.unlabeled is 'reject' and source.unlabelled is 'keep', "
        "which are one setting: remove source.unlabelled",
    )


def test_plans_and_configurations_of_both_names_are_the_same(convert, photos, tmp_path):
    rows = "".join(
        f"{path.relative_to(photos)},{path.parent.name}\n" for path in photos.rglob("*.jpg")
    )
    (photos / "all.csv").write_text(f"path,class\n{rows}", encoding="utf-8")
    made = [
        convert(
            photos / "all.csv",
            f"--set={MANIFEST}",
            f"--set=source.{name}=keep",
            output=tmp_path / name,
        )
        for name in ("unlabeled", "unlabelled")
    ]
    assert made[0].code == 0
    assert made[0].marker["plan"] == made[1].marker["plan"]
    configurations = {(each.output / "config.yaml").read_text(encoding="utf-8") for each in made}
    assert [text.count("unlabeled: keep") for text in configurations] == [1]


def test_the_line_of_a_run_has_the_layout_under_both_names(convert, photos):
    line = convert(photos).line
    assert line["recognized"]["kind"] == "class_folders"
    assert line["recognised"] == line["recognized"]


def test_differences_of_classes_are_given_under_both_names(convert, photos, tmp_path, capsys):
    before = convert(photos)
    (photos / "cat/00.jpg").rename(photos / "dog/00-cat.jpg")
    after = convert(photos, output=tmp_path / "after")
    capsys.readouterr()
    assert diff([str(before.output), str(after.output), "--json"]) == 1
    line = json.loads(capsys.readouterr().out)
    assert (line["relabeled"], line["relabelled"]) == (1, 1)
    assert line["examples"]["relabeled"] == ["dog/00-cat.jpg: cat -> dog"]
    assert line["examples"]["relabelled"] == line["examples"]["relabeled"]


def test_the_comment_of_an_earlier_configuration_stays(tmp_path):
    (tmp_path / "own.yaml").write_text("# Recognised idx: why\nseed: 1\n", encoding="utf-8")
    assert load_settings(str(tmp_path / "own.yaml"), []).comment == "# Recognized idx: why\n"
