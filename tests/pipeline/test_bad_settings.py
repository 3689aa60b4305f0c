"""Wrong configurations and flags: one sentence, the right exit code, an earlier dataset as it
was."""

import pytest

from recordmill.transforms.inputs.sources.source import source_names

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ALL = {"splits.fractions": {"train": 1.0}}


@pytest.mark.parametrize(
    ("yaml", "sentences"),
    [
        ("images: {qualty: 90}", ["images.qualty is not a setting: did you mean images.quality?"]),
        ("imagez: {}\nseeed: 1", ["imagez is not a setting: did you mean images?",
                                  "seeed is not a setting: did you mean seed?"]),
        ("source: {kind: class_folders, class_form: path}",
         ["source.class_form is not a setting: did you mean source.class_from?"]),
        ("splits: {fractions: {train: 0.9, test: 0.2}}", ["splits.fractions sum to 1.1, which is "
                                                          "over 1: lower them"]),
        ("images: {quality: 200}", ["images.quality is 200: it should be less than or equal to "
                                    "100"]),
        ("images: {resize: {longest: 0}}", ["images.resize.longest is 0: it should be greater than "
                                            "or equal to 1"]),
        ("source: {kind: zip}", ["source.kind: there is no source 'zip': choose one of "
                                 f"{', '.join(source_names())}"]),
    ],
)  # fmt: skip
def test_a_wrong_configuration(convert, earlier, photos, tmp_path, yaml, sentences):
    config = tmp_path / "wrong.yaml"
    config.write_text(yaml)
    assert convert(photos, f"--config={config}").answer == (
        2,
        *(f"{config}: {sentence}" for sentence in sentences),
    )


def test_a_configuration_that_is_not_valid_yaml(convert, earlier, photos, tmp_path):
    config = tmp_path / "wrong.yaml"
    config.write_text("images: {quality: 90\nsplits: [")
    done = convert(photos, f"--config={config}")
    what = "expected ',' or '}', but got ':' (line 2, column 7)"
    assert done.answer == (2, f"the configuration {config} cannot be read: {what}")


def test_a_configuration_that_is_not_there(convert, earlier, photos, tmp_path):
    missing = tmp_path / "missing.yaml"
    assert convert(photos, f"--config={missing}").answer == (
        2,
        f"the configuration {missing} cannot be read: No such file or directory",
    )


@pytest.mark.parametrize("text", ["images.quality", "=90", "images..quality=90"])
def test_a_malformed_set(convert, earlier, photos, text):
    assert convert(photos, f"--set={text}").answer == (
        2,
        f"--set {text}: write key.path=value, such as images.quality=90",
    )


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--ouput=x", "there is no flag --ouput=x: did you mean --output?"),
        ("--thread=3", "there is no flag --thread=3: did you mean --threads?"),
        ("--overwriet", "there is no flag --overwriet: did you mean --overwrite?"),
        ("--zzz", "there is no flag --zzz: see --help"),
        (
            "photos",
            "photos may be an input or the output: write --input photos or --output photos",
        ),
        (
            "1}",
            "there is no flag 1}: quote the argument of --set, as in --set "
            "'splits.fractions={train: 1}'",
        ),
        (
            "dog]",
            "there is no flag dog]: quote the argument of --set, as in --set "
            "'splits.fractions={train: 1}'",
        ),
    ],
)
def test_an_unknown_flag(convert, earlier, photos, flag, sentence):
    assert convert(photos, flag).answer == (2, sentence)


def test_several_inputs_without_names(convert, earlier, photos):
    assert convert(photos, f"--input={photos}").answer == (
        2,
        "several inputs need names, which their images' keys begin with: write --input NAME=DIR",
    )


def test_a_summary_file_that_cannot_be_written(convert, earlier, photos, tmp_path):
    done = convert(photos, "--summary_json=/proc/summary.json", settings=ALL)
    assert (done.code, done.line["exit_code"], done.line["status"]) == (1, 0, "kept")
    assert done.errors == [
        "the summary /proc/summary.json cannot be written: no such file or directory"
    ]


def test_a_summary_file_next_to_an_output_whose_folder_does_not_exist_yet(
    convert, photos, tmp_path
):
    path = tmp_path / "datasets/today.json"
    done = convert(
        photos, f"--summary_json={path}", settings=ALL, output=tmp_path / "datasets/today"
    )
    assert (done.code, path.read_text()) == (0, done.stdout)


def test_an_output_named_like_a_pattern_touches_no_other(convert, photos, state_of, tmp_path):
    neighbor = convert(photos, settings=ALL, output=tmp_path / "set1")
    before = state_of(neighbor.output)
    for seed in (0, 1):
        assert (
            convert(
                photos, "--overwrite", settings={**ALL, "seed": seed}, output=tmp_path / "set*"
            ).code
            == 0
        )
        assert (
            convert(
                photos, "--overwrite", settings={**ALL, "seed": seed}, output=tmp_path / "set[1]"
            ).code
            == 0
        )
    assert state_of(neighbor.output) == before
