"""The main job on every engine: the bytes of DirectRunner's."""

import os
import shutil

from cluster_runs import SETTINGS, assert_same

from tests.pipeline.conftest import OWN_CODE


def test_an_update(flags, run_to_its_end, convert, reference, collection, picture, tmp_path):
    root = shutil.copytree(collection, tmp_path / "photos")
    output = shutil.copytree(reference.output, tmp_path / "old")
    (root / "cat" / "new.jpg").write_bytes(picture("new"))
    os.utime(root / "cat" / "new.jpg", (1_700_000_000, 1_700_000_000))
    rebuilt = convert(root, settings=SETTINGS, output=tmp_path / "rebuilt")
    code, line, stderr = run_to_its_end(root, output, *flags, "--update")
    assert (code, line["status"]) == (0, "published"), stderr
    marker = assert_same(output, rebuilt)
    assert marker["run"]["images_reused"] == marker["ledger"]["written"] - 1


def test_look_alikes_and_functions(engine, convert, convert_in_child, look_alikes, tmp_path):
    one = convert(look_alikes, settings=OWN_CODE, output=tmp_path / "direct")
    flags = engine.flags()
    other = convert_in_child(look_alikes, *flags, settings=OWN_CODE, output=tmp_path / "engine")
    assert (one.code, other.code, other.errors) == (0, 0, [])
    assert one.marker["ledger"]["left_out"] == {"too_small": 8}
    assert one.marker["changes"]["prepared"] == one.marker["ledger"]["written"] == 40
    assert_same(tmp_path / "engine", one)
