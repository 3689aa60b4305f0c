"""The entry points: `recordmill`, and in a clone `python -m pipeline.run`.

Beam and the steps are imported where they are used, so that `--help` does not wait a second or two
for them.
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apache_beam as beam

    from recordmill.pipeline.job import Job
    from recordmill.schemas.dataset.outcome import Outcome


def build(root: "beam.Pipeline", job: "Job") -> "beam.PCollection[Outcome]":
    """Builds the pipeline of a command, which is a `Convert` of the job."""
    from recordmill.pipeline.convert_transform import Convert

    return root | Convert.of_job(job)


def main(prog: str = "recordmill") -> None:
    """Runs the command `recordmill`, and exits with the code of its subcommand.

    Args:
        prog: what the user typed to start it.
    """
    _use_one_thread_for_algebra()
    from recordmill.pipeline.command import run_command

    sys.exit(run_command(sys.argv[1:], build, prog))


def _use_one_thread_for_algebra() -> None:
    """Stops OpenBLAS, which comes with numpy, from starting a thread per processor on import.

    The threads would waste 0.1 s of processor time, and would exist when processes are forked. Sums
    would depend on their number.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


if __name__ == "__main__":
    _use_one_thread_for_algebra()
    from recordmill.pipeline.launch import launch

    sys.exit(launch(sys.argv[1:], build))
