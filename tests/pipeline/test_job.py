import pickle

from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.resolve_settings import make_recipe
from recordmill.pipeline.job import Job
from recordmill.schemas.settings.source import Input
from recordmill.transforms.planning.runs import RunSettings


def test_a_job_reaches_workers_as_it_was_built():
    settings = load_settings("configs/filename_labels.yaml", ["seed=3"]).settings
    run = RunSettings(run_id="r", output="o", outcome_file="f")
    job = Job(settings, (Input("photos", "a"),), make_recipe(settings), run)
    assert pickle.loads(pickle.dumps(job)) == job
    assert job.settings.seed == 3
