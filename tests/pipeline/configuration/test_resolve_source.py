from dataclasses import dataclass, replace

import pytest
from recordmill.pipeline.configuration.resolve_source import resolve_source

from recordmill.pipeline.configuration.config import ConfigError, load_settings
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.listing import Input
from recordmill.transforms.inputs.sources import Source


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
    settings = DatasetSettings(source=Seen(), ignore=("*.csv",))
    plain = {"name": "", "source": {"kind": "seen", "names": ()}}
    settled, written = resolve_source(settings, plain, folders, [].append)
    assert settled.source == Seen(names=("one/train/a.txt", "two/train/a.txt"))
    assert written == {"name": "", "source": {"kind": "seen", "names": ("one/train/a.txt", "two/train/a.txt")}}
    assert plain["source"]["names"] == ()


def test_nothing_is_listed_for_a_source_that_needs_nothing():
    settings, plain = load_settings(None, [])
    assert resolve_source(settings, plain, [Input("/nowhere")], [].append) == (settings, plain)


def test_what_the_files_contradict_is_an_error_of_the_configuration(folders, tmp_path):
    (tmp_path / "one" / "bad").write_text("x", encoding="utf-8")
    bad = [Input(folders[0].path)]
    with pytest.raises(ConfigError, match=r"^source.names: bad is there$"):
        resolve_source(DatasetSettings(source=Seen()), {"source": {"kind": "seen"}}, bad, [].append)
