"""Whatever is written for a setting gives settings, or a sentence; nothing else."""

import io
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.resolve_settings import make_recipe, resolve_settings
from recordmill.pipeline.configuration.setting_errors import without_none
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.conventions import Convention
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.transforms.inputs.sources.source import load_source, source_names

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def paths(kind: Any, above: str) -> Iterator[str]:
    """The path of every setting of a dataclass, at any depth; entries of mappings are called x."""
    hints = get_type_hints(kind)
    for each in fields(kind):
        hint, path = without_none(hints[each.name]), f"{above}{each.name}"
        yield path
        if get_origin(hint) is Mapping:
            hint, path = get_args(hint)[1], f"{path}.x"
            yield path
        if is_dataclass(hint):
            yield from paths(hint, f"{path}.")


PATHS = {
    "": sorted({*paths(DatasetSettings, ""), *paths(Convention, "convention."), "source.kind"}),
    **{kind: sorted(paths(load_source(kind), "source.")) for kind in source_names()},
}

BITS = (31, 32, 53, 62, 63, 64, 200)
VALUES = (
    *(
        "",
        "null",
        "true",
        "yes",
        "no",
        "[]",
        "{}",
        "[[]]",
        "[null]",
        "{a: null}",
        "{1: 2}",
        "[1, 2]",
        "[65500, 65500]",
    ),
    *(
        "0",
        "-1",
        "1",
        "2",
        "100",
        "65500",
        "65501",
        "-0.0",
        "0.5",
        "1e400",
        "-.inf",
        ".nan",
        "1e308",
    ),
    *(f"{sign}{2**bits + more}" for sign in ("", "-") for bits in BITS for more in (-1, 0, 1)),
    *("9" * 5000, "0x" + "f" * 5000, "'" + "9" * 400 + "GiB'", "1_0", "0b1", "0o17", "12:30:45"),
    *(
        "a",
        "' '",
        "'{'",
        "'('",
        "'..'",
        "'/'",
        "'a/b'",
        '"\\0"',
        '"\\uD800"',
        '"\\U0001F600"',
        "é",
        "a" * 5000,
    ),
    *(
        "2020-02-30",
        "2020-02-20",
        "2020-02-20 10:00:00",
        "!!binary aGk=",
        "!!set {a}",
        "!!int ''",
        "!!float x",
    ),
    *(
        "!!bool maybe",
        "!!timestamp x",
        "!!python/name:os.system",
        "&a [*a]",
        "&a {b: *a}",
        "[" * 60 + "]" * 60,
    ),
    *(
        "[" * 400,
        "{a: " * 400,
        "[*a]",
        "os:system",
        "builtins:len",
        "math:sqrt",
        "no.such:thing",
        "this:",
        ":x",
    ),
    *(
        "'{index:0999999999d}'",
        "'{index.__class__}'",
        "'{split}{count:99999d}'",
        "(?P<label>a)",
        "(?P<split>.*)",
    ),
    *("png", "raw", "mean_std"),
)


@st.composite
def overrides(draw: st.DrawFn) -> list[str]:
    kind = draw(st.sampled_from(["", *source_names()]))
    known = [*PATHS[""], *PATHS[kind]]
    first = [f"source.kind={kind}"] if kind else []
    few = draw(
        st.lists(st.tuples(st.sampled_from(known), st.sampled_from(VALUES)), min_size=1, max_size=3)
    )
    return [*first, *(f"{path}={value}" for path, value in few)]


def load(written: list[str]) -> str:
    """The sentences that refuse settings; those that are not refused can be used and stored."""
    try:
        settings = load_settings(None, written).settings
        settings = resolve_settings(settings, [], "out", [].append)
    except UsageError as error:
        return str(error)
    assert orjson.dumps(make_recipe(settings).values)
    assert ExampleLayout(settings).encoder
    assert settings.listing
    return ""


@given(overrides())
def test_every_value_gives_settings_or_a_sentence(written):
    load(written)


@pytest.fixture(scope="module")
def two_images(class_folders, tmp_path_factory):
    return class_folders(tmp_path_factory.mktemp("two") / "photos", {"cat": 1, "dog": 1})


@given(st.sampled_from(PATHS[""]), st.sampled_from([value for value in VALUES if len(value) < 40]))
def test_every_value_that_is_accepted_makes_a_run_that_knows_how_it_ended(two_images, path, value):
    if load([f"{path}={value}"]):
        return
    errors = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(io.StringIO()),
        redirect_stderr(errors),
    ):
        code = launch(
            [f"--input={two_images}", f"--output={folder}/dataset", "--set", f"{path}={value}"],
            build,
        )
    assert code in (0, 1, 2, 3)
    assert "unexpected" not in errors.getvalue()
    assert "Traceback" not in errors.getvalue()


def test_all_settings_are_tried():
    assert {
        "seed",
        "images.resize.exact",
        "labels.offset",
        "convention.features.x.type",
        "features.x.function",
        "max_rejected.share",
    } <= {*PATHS[""]}
    assert "source.columns.x.enum.x" in PATHS["table"]
    assert load([]) == ""


HIGH = {
    "seed": 2**63 - 1,
    "limit": 2**63 - 1,
    "limit_per_class": 2**63 - 1,
    "images.max_bytes": 2**62,
    "images.max_pixels": 2**62,
    "labels.offset": 2**62,
    "shards.count": 2**63 - 1,
    "max_rejected.count": 2**63 - 1,
}
LOW = {
    "seed": 1 - 2**63,
    "limit": 1,
    "labels.offset": -(2**62),
    "shards.size": "1B",
    "images.resize.exact": [1, 65500],
    "max_rejected.share": 0.0,
    "max_rejected.count": 0,
}


@pytest.mark.runner  # which gets numbers as display data, with bounds of its own
@pytest.mark.parametrize(("bounds", "images", "first"), [(HIGH, 10, 2**62), (LOW, 1, -(2**62))])
def test_a_run_at_the_bounds_of_its_settings(convert, photos, bounds, images, first):
    done = convert(photos, settings={**bounds, "splits.fractions": {"train": 1.0}})
    assert (done.code, done.line["ledger"]["written"]) == (0, images)
    assert done.marker["labels"] == {"cat": first, "dog": first + 1}


def test_a_limit_of_one_byte_rejects_every_image(convert, photos):
    assert convert(photos, settings={"images.max_bytes": 1}).code == 3
