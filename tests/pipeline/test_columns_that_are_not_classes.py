"""Columns of splits, ids, texts, truth values or numbers with a comma: never classes by guess."""

import pytest
from paired_inputs import photo
from printed_commands import follow, printed_flags, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = range(12)


def table(header, make):
    """A table of twelve images in a folder."""
    rows = "\n".join([header, *map(make, N), ""]).encode()
    return {"labels.csv": rows, **{f"images/{n}.jpg": photo(n) for n in N}}


ALONE = {
    "decimal commas": (
        table("name;label", lambda n: f"{n}.jpg;{n % 3},{n + 1}"),
        "its column label does not look like a class; its cells have decimal commas",
        [0, 0, 0, 0],
    ),
    "quoted decimal commas": (
        table("name,value", lambda n: f'{n}.jpg,"1.{n % 3}00,5"'),
        "its column value does not look like a class; its cells have decimal commas",
        [0, 0, 0, 0],
    ),
    "a partition of numbers": (
        table("name,partition", lambda n: f"{n}.jpg,{n % 3}"),
        "its column partition may say which split an image is in: add --set "
        'source.columns.split=partition --set \'splits.from_source={"0":"0",',
        [0, 0],
    ),
    "a fold of words": (
        table("name,fold", lambda n: f"{n}.jpg,{'ab'[n % 2]}"),
        "its column fold may say which split an image is in",
        [0, 0],
    ),
    "patients": (
        table("name,patient_id", lambda n: f"{n}.jpg,P{n // 4}"),
        "its column patient_id does not look like a class",
        [0, 0, 0],
    ),
    "truth values": (
        table("name,flag", lambda n: f"{n}.jpg,{n % 2 == 0}"),
        "it is not clear which column is the class (flag)",
        [0, 0, 0],
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_the_only_column_is_asked_about(name, tmp_path, run_in):
    files, expected, codes = ALONE[name]
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert (code, expected in err) == (2, True), err
    ends = list(follow(["--input", "in"], run_in))
    assert [end.code for end in ends] == codes, ends
    assert all(end.marker["ledger"]["written"] == 12 for end in ends)


def test_only_columns_that_may_be_classes_are_offered(tmp_path, run_in):
    files = table(
        "name,partition,patient_id,fold,note,flag,kind,size_id",
        lambda n: (
            f"{n}.jpg,{n % 3},P{n // 2},{n % 5},a free text number {n},{n % 2 == 0},"
            f"{'ab'[n % 2]},s{n % 3}"
        ),
    )
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    assert [flags[1::2] for flags in printed_flags(err)] == [
        ["source.columns.label=kind"],
        [
            "source.columns.label=",
            'source.features_from={many_hot: {columns: ["flag"], type: int64}}',
        ],
        ["source.columns.label="],
    ]


def test_several_truth_values_become_one_feature(tmp_path, run_in):
    files = table("name,is_cat,is_dog", lambda n: f"{n}.jpg,{n % 2 == 0},{n % 3 == 0}")
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert (code, "are 0 or 1 (or true or false), as for several labels" in err) == (2, True)
    many_hot, nothing = follow(["--input", "in"], run_in)
    assert (many_hot.code, nothing.code) == (0, 0)
    assert many_hot.arguments[-1] == (
        'source.features_from={many_hot: {columns: ["is_cat","is_dog"], type: int64}}'
    )


def test_boxes_with_decimal_commas_are_rejected_with_the_remedy(tmp_path, run_in):
    files = table("name;xmin;ymin;xmax;ymax;class", lambda n: f"{n}.jpg;1,5;2;9,5;8;cat")
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 3
    assert "'1,5' (str) is not a finite number: write a decimal point, as in 1.5" in err
