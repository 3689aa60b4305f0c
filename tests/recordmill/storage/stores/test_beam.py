import io
from importlib.metadata import version

from apache_beam.io.filesystems import FileSystems
from apache_beam.io.localfilesystem import LocalFileSystem
from apache_beam.options.pipeline_options import PipelineOptions

from recordmill.storage.stores.beam import file_system_options, list_pages, record_sink


def test_the_version_whose_insides_these_are():
    assert version("apache-beam").startswith("2.77."), (
        "read the three functions of storage/stores/beam.py against the new one"
    )


def test_options_of_file_systems(monkeypatch):
    options = PipelineOptions([])
    monkeypatch.setattr(FileSystems, "_pipeline_options", None)
    assert file_system_options() is None
    FileSystems.set_options(options)
    assert file_system_options() is options


def test_a_listing(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.jpg").write_bytes(b"123")
    (tmp_path / "c.jpg").write_bytes(b"")
    found = list_pages(LocalFileSystem(PipelineOptions([])), f"{tmp_path}/")
    assert {(file.path, file.size_in_bytes) for file in found} >= {(f"{tmp_path}/c.jpg", 0)}


def test_the_sink_writes_frames():
    written = io.BytesIO()
    record_sink("unused").write_record(written, b"abc")
    assert written.getvalue()[:8] == (3).to_bytes(8, "little")
    assert written.getvalue()[12:15] == b"abc"
    assert len(written.getvalue()) == 19
