import pickle

import pytest

from recordmill.transforms.planning.run_settings import RunSettings


def test_it_travels_to_workers_and_has_quiet_defaults():
    run = RunSettings(run_id="r", output="o", outcome_file="f")
    assert pickle.loads(pickle.dumps(run)) == run
    assert (run.overwrite, run.preview, run.threads, run.inputs, run.facts) == (False, False, 0, {}, {})


def test_its_fields_are_named():
    with pytest.raises(TypeError):
        RunSettings("r", "o", "f")
