"""Drawn pictures, folders of them, and the settings that most tests start from."""

import io
import json
import os
import random
from contextlib import contextmanager, suppress
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.pvalue import AsSingleton
from eager_beam import new_pipeline
from PIL import Image

from recordmill import storage
from recordmill.pipeline.configuration.resolve_settings import make_recipe
from recordmill.reading.report.draw_samples import draw_samples
from recordmill.reading.report.write_report import write_report
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.source import Input
from recordmill.transforms.claim_output import ClaimOutput
from recordmill.transforms.convert_shards import ConvertShards
from recordmill.transforms.find_split_cutoffs import FindSplitCutoffs
from recordmill.transforms.list_images import ListReferences
from recordmill.transforms.plan_shards import PlanShards, ShuffleReferences
from recordmill.transforms.planning.run_plan import dataset_to_convert
from recordmill.transforms.planning.runs import RunSettings
from recordmill.transforms.publish_dataset import PublishDataset
from recordmill.transforms.publishing.companions.run_reports import Reporters
from recordmill.transforms.summarize_images import SummarizeImages


def draw_picture(seed, size=(8, 6), kind="JPEG", mode="RGB") -> bytes:
    picture = (
        Image.frombytes("RGB", (4, 3), random.Random(f"{seed}").randbytes(36))
        .resize(size)
        .convert(mode)
    )
    stream = io.BytesIO()
    picture.save(stream, kind)
    return stream.getvalue()


@pytest.fixture(scope="session")
def draw():
    """`draw(seed, size, kind, mode)`: the bytes of a small picture, another one for each seed."""
    return draw_picture


@pytest.fixture
def pictures(tmp_path):
    """`pictures(count)`: references to so many JPEGs of two classes, `cat/0.jpg`, `dog/1.jpg`,
    ..."""

    def write(count: int, folder: str = "photos") -> list[ImageRef]:
        refs = []
        for number in range(count):
            label = ("cat", "dog")[number % 2]
            path = tmp_path / folder / label / f"{number}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            data = draw_picture(number)
            path.write_bytes(data)
            # Long ago: the file is known to be finished.
            os.utime(path, (1_700_000_000, 1_700_000_000))
            status = path.stat()
            key = f"{label}/{number}.jpg"
            refs.append(ImageRef(key, str(path), len(data), str(status.st_mtime_ns), label=label))
        return refs

    return write


@pytest.fixture
def run(tmp_path) -> RunSettings:
    """A run that writes to `tmp_path/out`."""
    return RunSettings(
        run_id="run",
        output=str(tmp_path / "out"),
        outcome_file=str(tmp_path / "outcome.json"),
        inputs={"": str(tmp_path / "photos")},
        threads=1,
        facts={"runner": "FnApiRunner"},
    )


@pytest.fixture
def run_steps():
    """`run_steps(settings, run)`: all steps of a conversion on Beam's in-process runner; gives the
    outcome file."""

    def go(settings: DatasetSettings, run: RunSettings) -> dict:
        with new_pipeline() as root:
            inputs = [Input(path, name) for name, path in run.inputs.items()]
            refs = (
                root
                | beam.Create(inputs, reshuffle=False)
                | ListReferences(settings.source, settings.listing)
            )
            selection = AsSingleton(refs | FindSplitCutoffs(settings))
            summary = refs | SummarizeImages(settings, selection)
            claimed = (
                summary
                | PlanShards(settings, make_recipe(settings), run, selection)
                | ClaimOutput(run)
            )
            plan = AsSingleton(claimed)
            dataset = AsSingleton(claimed | beam.Map(dataset_to_convert))
            shards = refs | ShuffleReferences(settings, dataset)
            _ = (
                shards
                | ConvertShards(settings, run, plan)
                | PublishDataset(settings, run, plan, Reporters(write_report, draw_samples))
            )
        return json.loads(Path(run.outcome_file).read_bytes())

    return go


class CutError(Exception):
    """The process ended here."""


@pytest.fixture
def cut_after():
    """`with cut_after(k):` the k-th change of a file and all later ones do not happen; gives what
    did, by name.

    Changes are what a system call does: a file created, renamed or deleted, a folder deleted.
    """

    @contextmanager
    def arrange(most: int):
        done = []

        def guarded(real):
            def call(*arguments, **options):
                if len(done) >= most:
                    raise CutError
                done.append(real.__name__)
                return real(*arguments, **options)

            return call

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(storage, "open_to_write", guarded(storage.open_to_write))
            for name in ("replace", "unlink", "rmdir"):
                patch.setattr(os, name, guarded(getattr(os, name)))
            with suppress(CutError):
                yield done

    return arrange
