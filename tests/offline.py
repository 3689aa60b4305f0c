"""Runs a script as `python script.py flags...` would, but without looking for Google's credentials
first.

`offline.py '' pipeline.pb` runs a staged job instead, as a worker with the code that is installed
beside this Python.
"""

import runpy
import sys
from pathlib import Path

from apache_beam.internal.gcp import auth

auth._Credentials._credentials_init = True  # the lookup asks the network for a quarter of a minute


def run_staged(path: str) -> None:
    """Runs a job's graph with the functions pickled in it, as staged, in this process instead of in
    its containers."""
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.portability import common_urns
    from apache_beam.portability.api import beam_runner_api_pb2
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    job = beam_runner_api_pb2.Pipeline.FromString(Path(path).read_bytes())
    for environment in job.components.environments.values():
        here = beam_runner_api_pb2.Environment(
            urn="beam:env:embedded_python:v1", capabilities=environment.capabilities
        )
        assert environment.urn == common_urns.environments.DOCKER.urn
        environment.CopyFrom(here)
    FnApiRunner().run_via_runner_api(job, PipelineOptions([])).wait_until_finish()


if __name__ == "__main__":
    script, *arguments = sys.argv[1:]
    if script:
        sys.argv = [script, *arguments]
        runpy.run_path(script, run_name="__main__")
    else:
        run_staged(*arguments)
