"""Conversions whose results are known: plan ids, shards, sidecars, markers, and the files that
other tools read.

`expected/NAME.txt` has what a conversion of `tests/support/golden_cases.py` must give, a fact a
line. After a change of bytes that is meant, `pytest tests/golden --update-goldens` writes these
files anew; see CONTRIBUTING.md.
"""

import hashlib
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
import yaml
from apache_beam.options.pipeline_options import PipelineOptions
from eager_beam import new_pipeline
from engines import ENGINES, marks_of
from golden_cases import CASES
from golden_inputs import FOLDERS, folder_names
from stored_records import read_records

import recordmill
from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.conventions import convention_names
from recordmill.schemas.features import Example
from recordmill.schemas.settings.recipe import DIGESTED
from recordmill.storage.tfrecord_file import looks_like_records
from recordmill.transforms.inputs.sources.source import Source, load_source

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync", "ended_launches")

EXPECTED = Path(__file__).parent / "expected"
CONFIGS = Path(__file__).parents[2] / "configs"
TIME = 1_700_000_000
FLAGS = {
    "without a runner": (),
    "one process": (),
    "worker processes": ("--processes=2",),
    "two processes": ("--direct_running_mode=multi_processing", "--direct_num_workers=2"),
}
WANTED_ENGINES = [name for name, engine in ENGINES.items() if engine.is_wanted]
MARKS = {
    "one process": pytest.mark.runner,
    **{name: marks_of(name) for name in ENGINES},
}


def is_one_in_ten(case):
    """Chooses the cases that run in every way, by a digest of their names: a new case leaves the
    choice of all others as it is."""
    return hashlib.sha256(case.name.encode()).digest()[0] % 10 == 0


ONE_IN_TEN = [case for case in CASES if is_one_in_ten(case)]
"""Cases that `make test-all` and `make test-prism` run on every runner."""

ON_CLUSTERS = ("config_coco", "splits_stratify_group")
"""Those of them that clusters run, on which a job takes longer: one with boxes, and one with all
groupings of the main job."""

ON_DIRECT_RUNNER = (*ON_CLUSTERS, "labelme_masks")
"""Those of them that `make test` runs on DirectRunner, with Beam's writer, with earlier images and
in another pipeline."""


def engines_of(case):
    """The engines that are asked for and make a case."""
    if not is_one_in_ten(case):
        return []
    return [name for name in WANTED_ENGINES if name == "prism" or case.name in ON_CLUSTERS]


CHANGES_WITH_TIME_AND_WORDS = ("run", "notes", "remarks")
FILES_WITH_WORDS = ("README.md", "config.yaml", "croissant.json", "dataset_info.json")
LONGEST_VALUE = 300


NOT_WITH_BEAM = (
    "images.moments",
    "images.near_duplicates",
    "index_files",
    "analyze",
    "corrections",
    "exclude",
    "shards",
)
"""Settings without which `--writer=beam` is tried; it needs `shards.count`, and has no sidecars."""

ALL_THE_SAME = (
    "unit",
    "classes",
    "ledger",
    "named",
    "boxes",
    "dropped_boxes",
    "labels_of_images",
    "changes",
)


def ways_to_run(case, everything):
    """The ways in which our own writer makes a case."""
    if everything:
        more = ["worker processes", "two processes"] if is_one_in_ten(case) else []
        return ["one process", *more, *engines_of(case)]
    more = ["one process"] if case.name in ON_DIRECT_RUNNER else []
    return ["without a runner", *more, *engines_of(case)]


def ways_to_run_beams_writer(case, everything):
    """The ways in which Beam's writer makes a case."""
    if everything:
        more = ["two processes"] if is_one_in_ten(case) else []
        return ["one process", *more, *engines_of(case)]
    return [*(["one process"] if case.name in ON_DIRECT_RUNNER else []), *engines_of(case)]


def pytest_generate_tests(metafunc):
    ways_of = ways_to_run_beams_writer if "beams_way" in metafunc.fixturenames else ways_to_run
    way = next((each for each in ("way", "beams_way") if each in metafunc.fixturenames), None)
    if way is None:
        return
    everything = metafunc.config.getoption("--on-runner")
    pairs = [
        pytest.param(case, each, id=f"{case.name}-{each}", marks=MARKS.get(each, ()))
        for case in CASES
        for each in ways_of(case, everything)
    ]
    metafunc.parametrize(("case", way), pairs)


@pytest.fixture(scope="session")
def input_of(tmp_path_factory):
    """Writes the input of a case, once; gives its folder and what it holds, as a digest."""
    written = {}

    def write(case):
        if case.files not in written:
            root = tmp_path_factory.mktemp("input")
            digest = hashlib.sha256()
            for name, content in sorted(case.files().items()):
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                os.utime(path, (TIME, TIME))
                digest.update(f"{name} {len(content)} ".encode() + content)
            written[case.files] = root, digest.hexdigest()
        return written[case.files]

    return write


def flags_of(case, root, output):
    for each in case.inputs:
        name, equals, place = each.rpartition("=")
        yield f"--input={name}{equals}{root / place}"
    if case.config:
        yield f"--config={CONFIGS / case.config}.yaml"
    for setting in (*case.settings, "report=false"):
        yield f"--set={setting.replace('=FILES/', f'={root}/')}"
    yield f"--output={output}"


def digest_of(content):
    return hashlib.sha256(content).hexdigest()


def digest_of_rows(path, *left_out):
    """The digest of JSON lines without some keys; that of the file itself where no line has
    them."""
    kept = hashlib.sha256()
    for line in path.read_bytes().splitlines(keepends=True):
        row = json.loads(line)
        if not row.keys().isdisjoint(left_out):
            line = json.dumps(
                {key: value for key, value in row.items() if key not in left_out}
            ).encode()
        kept.update(line)
    return kept.hexdigest()


def in_a_line(value):
    """A value as JSON, or its digest where that is long."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"sha256 {digest_of(text.encode())}"


def describe(output):
    """All that a dataset's name and contents are, as facts by name."""
    marker = json.loads((output / "recordmill.json").read_bytes())
    # All settings, to which each new setting adds one: they are compared with `config.yaml` only.
    settings = marker["plan"].pop("settings")
    written = yaml.safe_load((output / "config.yaml").read_bytes())
    for name in DIGESTED:  # the plan has the digest of the list, and the configuration its place
        assert bool(settings.pop(name)) == bool(written.pop(name))
    assert settings == written
    facts = {}
    for split in marker["splits"].values():
        for shard in split["shards"]:
            assert shard["sha256"] == digest_of((output / shard["name"]).read_bytes())
            assert shard.pop("sidecar_sha256") == digest_of(
                (output / shard["sidecar"]).read_bytes()
            )
            facts[shard["name"]] = shard["sha256"]
            facts[shard["sidecar"]] = digest_of_rows(output / shard["sidecar"], "detail")
    for name in marker["files"]:
        if name == "rejected.jsonl":
            facts[name] = digest_of_rows(output / name, "detail", "uri")
        elif name not in FILES_WITH_WORDS:
            facts[name] = digest_of((output / name).read_bytes())
    return facts | {
        f"marker {path}": in_a_line(value)
        for key, part in marker.items()
        if key not in CHANGES_WITH_TIME_AND_WORDS
        for path, value in flatten(key, part)
    }


def list_values(output):
    """Each feature of each record, as facts by shard, position and key."""
    facts = {}
    for path in sorted(output.glob("*.tfrecord")):
        for position, record in enumerate(read_records(str(path))):
            features = Example.FromString(bytes(record)).features.feature
            for key, feature in features.items():
                values = getattr(feature, feature.WhichOneof("kind") or "bytes_list").value
                facts[f"{path.name} record {position} {key}"] = in_a_line(
                    [as_printable(value) for value in values]
                )
    return facts


def as_printable(value):
    """A number or text as it is, and other bytes as their digest."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"sha256 {digest_of(value)}"


def flatten(path, value):
    """Paths and values of the marker: the recipe and the splits key by key, all else as it is."""
    if path in ("plan", "plan.recipe", "splits"):
        for key, part in sorted(value.items()):
            yield from flatten(f"{path}.{key}", part)
    else:
        yield path, value


@pytest.fixture(autouse=True)
def _functions_of_users(monkeypatch):
    """Lets new processes find the functions that the cases name."""
    folders = (str(CONFIGS.parents[0] / each) for each in ("", "tests/support"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))


def facts_of(case, digest, folder):
    """What a conversion of a case has given, with the digest of its input."""
    found = {"input": digest} | describe(folder)
    if case.lists_values:
        found |= list_values(folder)
    return found


def as_text(facts):
    return "".join(f"{name}: {fact}\n" for name, fact in sorted(facts.items()))


def as_facts(text):
    return dict(line.split(": ", 1) for line in text.splitlines())


def differences(expected, found):
    """What has changed, a fact a line, in full: pytest would shorten it."""
    changed = sorted(
        name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
    )
    return "".join(
        f"\n{name}\n  was {expected.get(name)}\n  is  {found.get(name)}" for name in changed
    )


@pytest.fixture
def beam_flags(start_engine):
    """`beam_flags(way)`: the flags of a way to run, with its engine started."""

    def find(way):
        if way in ENGINES:
            return start_engine(way).flags()
        return FLAGS[way]

    return find


def test_golden(case, way, input_of, beam_flags, tmp_path, capsys, request):
    root, digest = input_of(case)
    terminated = signal.getsignal(signal.SIGTERM)
    try:
        flags = [*flags_of(case, root, tmp_path / "dataset"), *beam_flags(way)]
        assert launch(flags, build) == 0, capsys.readouterr().err
    finally:
        signal.signal(signal.SIGTERM, terminated)
    found = facts_of(case, digest, tmp_path / "dataset")
    path = EXPECTED / f"{case.name}.txt"
    if request.config.getoption("--update-goldens"):
        path.write_text(as_text(found), encoding="utf-8")
    expected = as_facts(path.read_text(encoding="utf-8"))
    assert found["input"] == expected["input"], (
        "its generator has changed, or a library encodes it differently"
    )
    assert found == expected, differences(expected, found)


PIPELINES = [
    *(
        pytest.param(
            case,
            "without a runner",
            id=case.name,
            marks=() if case.name in ON_DIRECT_RUNNER else pytest.mark.slow,
        )
        for case in ONE_IN_TEN
    ),
    *(
        pytest.param(case, way, id=f"{case.name}-{way}", marks=MARKS.get(way, ()))
        for case in ONE_IN_TEN
        for way in engines_of(case)
    ),
]
"""Cases, and the pipelines of one's own in which they are made."""


@pytest.mark.parametrize(("case", "way_of_pipeline"), PIPELINES)
def test_a_conversion_within_another_pipeline_gives_the_same_dataset(
    case, way_of_pipeline, input_of, beam_flags, tmp_path
):
    root, digest = input_of(case)
    settings = {}
    for each in (*case.settings, "report=false"):
        key, _, value = each.partition("=")
        settings[key] = yaml.safe_load(value)
    named = [each.rpartition("=") for each in case.inputs]
    inputs = [f"{name}{equals}{root / place}" for name, equals, place in named]
    config = f"{CONFIGS / case.config}.yaml" if case.config else None
    step = recordmill.Convert(inputs, tmp_path / "dataset", config=config, **settings)
    pipeline = new_pipeline()
    if way_of_pipeline in ENGINES:
        pipeline = beam.Pipeline(options=PipelineOptions(list(beam_flags(way_of_pipeline))))
    with pipeline:
        pipeline | step
    found = facts_of(case, digest, tmp_path / "dataset")
    expected = as_facts((EXPECTED / f"{case.name}.txt").read_text(encoding="utf-8"))
    assert found == expected, differences(expected, found)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if case.name in ON_DIRECT_RUNNER else pytest.mark.slow)
        for case in ONE_IN_TEN
    ],
    ids=lambda case: case.name,
)
def test_reusing_the_images_of_an_earlier_dataset_gives_the_same_dataset(
    case, input_of, tmp_path, capsys
):
    root, digest = input_of(case)
    terminated = signal.getsignal(signal.SIGTERM)
    try:
        for folder, more in (
            ("earlier", ()),
            ("", (f"--reuse={tmp_path / 'earlier' / 'dataset'}",)),
        ):
            (tmp_path / folder).mkdir(exist_ok=True)
            flags = [*flags_of(case, root, tmp_path / folder / "dataset"), *more]
            assert launch(flags, build) == 0, capsys.readouterr().err
    finally:
        signal.signal(signal.SIGTERM, terminated)
    expected = as_facts((EXPECTED / f"{case.name}.txt").read_text(encoding="utf-8"))
    found = facts_of(case, digest, tmp_path / "dataset")
    assert found == expected, differences(expected, found)
    run = json.loads((tmp_path / "dataset" / "recordmill.json").read_bytes())["run"]
    config = str(CONFIGS / f"{case.config}.yaml") if case.config else None
    source = load_settings(config, list(case.settings)).settings.source
    # Labels that are read with an image do not say whether its record has changed.
    has_images = found["marker unit"] == '"image"'
    assert bool(run["images_reused"]) == (has_images and not source.late_labels)


@pytest.fixture
def records_of(capsys):
    """The line of JSON of a conversion, and all records that it wrote, sorted."""

    def run(output, *flags):
        terminated = signal.getsignal(signal.SIGTERM)
        try:
            assert launch([*flags, f"--output={output}"], build) == 0, capsys.readouterr().err
        finally:
            signal.signal(signal.SIGTERM, terminated)
        line = json.loads(capsys.readouterr().out)
        files = [
            path for path in output.iterdir() if path.is_file() and looks_like_records(str(path))
        ]
        assert len(files) == sum(split["shards"] for split in line["splits"].values())
        return line, sorted(bytes(record) for file in files for record in read_records(str(file)))

    return run


def test_beams_writer_writes_the_same_examples(
    case, beams_way, input_of, beam_flags, tmp_path, records_of, choose_runner, request
):
    root, _ = input_of(case)
    settings = [each for each in case.settings if not each.startswith(NOT_WITH_BEAM)]
    settings += (
        ["images.near_duplicates=false"]
        if any("near_duplicates: true" in each for each in settings)
        else []
    )
    flags = list(flags_of(replace(case, settings=(*settings, "shards.count=2")), root, tmp_path))[
        :-1
    ]
    choose_runner(request.config.getoption("--on-runner"))
    ours, our_records = records_of(tmp_path / "ours", *flags)
    choose_runner(True)
    beams, beam_records = records_of(
        tmp_path / "beams", *flags, "--writer=beam", *beam_flags(beams_way)
    )
    assert beam_records == our_records
    assert {key: beams.get(key) for key in ALL_THE_SAME} == {
        key: ours.get(key) for key in ALL_THE_SAME
    }
    counts = [
        {name: split["images"] for name, split in line["splits"].items()} for line in (ours, beams)
    ]
    assert counts[0] == counts[1]
    assert (tmp_path / "beams/labels.txt").read_bytes() == (
        tmp_path / "ours/labels.txt"
    ).read_bytes()


def test_each_configuration_and_each_convention_has_a_golden():
    configs = {path.stem for path in CONFIGS.glob("*.yaml")}
    assert configs == {case.config for case in CASES if case.name == f"config_{case.config}"}
    written = {
        as_facts(path.read_text(encoding="utf-8"))["marker convention"].strip('"')
        for path in EXPECTED.iterdir()
    }
    assert set(convention_names()) <= written


@pytest.mark.parametrize("name", folder_names())
def test_a_source_that_recognizes_layouts_recognizes_its_folder(
    name, tmp_path, capsys, monkeypatch
):
    kind = load_settings(str(CONFIGS / f"{name}.yaml"), []).settings.source.kind
    source = load_source(kind)
    if source.recognize.__func__ is Source.recognize.__func__:
        pytest.skip(f"{kind} recognizes nothing")
    monkeypatch.chdir(tmp_path)
    flags = [f"--input={FOLDERS / name}", "--output=out", "--plan"]
    assert launch(flags, build) == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["recognized"]["kind"] == kind


def test_each_golden_has_a_conversion():
    assert sorted(path.stem for path in EXPECTED.iterdir()) == sorted(case.name for case in CASES)
