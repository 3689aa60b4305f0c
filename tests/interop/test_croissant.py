"""mlcroissant validates croissant.json and reads its record sets."""

import pytest

mlc = pytest.importorskip(
    "mlcroissant", reason="needs an environment of its own: make test-interop"
)


def test_it_validates_and_reads(dataset):
    described = mlc.Dataset(jsonld=str(dataset.folder / "croissant.json"))
    assert not described.metadata.issues.errors
    labels = {row["labels/name"]: row["labels/id"] for row in described.records("labels")}
    assert {
        (name if isinstance(name, str) else name.decode()): number
        for name, number in labels.items()
    } == dataset.labels
    for split in dataset.marker["splits"]:
        read = [
            {
                key.partition("/")[2]: value.decode() if isinstance(value, bytes) else value
                for key, value in row.items()
            }
            for row in described.records(f"images-{split}")
        ]
        expected = dataset.rows(split)
        assert len([row for row in read if row["offset"] is not None]) >= len(expected)
        by_key = {row["key"]: row for row in read}
        for row in expected:
            assert by_key[row["key"]].items() <= row.items()


def test_only_unknowable_properties_are_missing(convert):
    described = mlc.Dataset(jsonld=str(convert("sample").folder / "croissant.json"))
    missing = sorted(
        warning.split('"')[1].rpartition("/")[2] for warning in described.metadata.issues.warnings
    )
    assert missing == ["citeAs", "datePublished", "license"]


def test_what_the_settings_say_is_read(convert):
    flags = (
        "--set=license=CC0-1.0",
        "--set=creator=Zoo",
        "--set=version=1.2.0",
        "--set=citation='Pets, 2026'",
    )
    described = mlc.Dataset(
        jsonld=str(convert("sample", "default", *flags).folder / "croissant.json")
    ).metadata
    missing = [warning.split('"')[1].rpartition("/")[2] for warning in described.issues.warnings]
    assert (described.issues.errors, missing) == (set(), ["datePublished"])
    assert (described.license, described.version, described.cite_as) == (
        ["CC0-1.0"],
        "1.2.0",
        "Pets, 2026",
    )
    assert [creator.name for creator in described.creators] == ["Zoo"]
