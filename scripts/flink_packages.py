"""Downloads Flink, and Beam's job server for it, into the cache, once.

Flink itself comes from PyPI (`apache-flink-libraries` carries the jars of a release), the job
server from Maven Central.
"""

import sys
import tarfile
from pathlib import Path

from scripts.cached_jars import (
    BEAM_JOB_SERVER,
    CACHE,
    JobServer,
    check_digest,
    create_folder,
    run,
    say,
)

FLINK = "1.19.3"
FLINK_DIGEST = "4f16139807f4b047cd6cedcfc284e11fdf636e05504992c94c69d1f3d672ecbc"

JOB_SERVER = JobServer(
    artifacts=(
        f"org.apache.beam:beam-runners-flink-1.19:{BEAM_JOB_SERVER}",
        "org.slf4j:slf4j-simple:1.7.30",
    ),
    main="org.apache.beam.runners.flink.FlinkJobServerDriver",
    digest="e3756fbe6cbcd86afbdc9edc4e9f7aea7d94d0419933a18a6685f91290722dab",
)

JOB_SERVER_FOLDER = CACHE / f"beam-flink-job-server-{BEAM_JOB_SERVER}"


def job_server_jar() -> Path:
    """Returns a jar that `java -jar` runs, also for `--flink_job_server_jar`."""
    if not JOB_SERVER_FOLDER.is_dir():
        say("fetching Beam's job server for Flink from Maven Central")
    return JOB_SERVER.fetch(JOB_SERVER_FOLDER)


def flink_jars() -> Path:
    """Returns the folder with Flink's jars."""
    folder = CACHE / f"flink-{FLINK}"
    if not folder.is_dir():
        say("fetching Flink from PyPI")
        with create_folder(folder) as new:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            run(*pip, "--no-binary", ":all:", f"apache-flink-libraries=={FLINK}", cwd=new)
            (archive,) = new.glob("*.tar.gz")
            with tarfile.open(archive) as packed:
                for member in packed:
                    if Path(member.name).match("*/deps/lib/*.jar"):
                        member.name = Path(member.name).name
                        packed.extract(member, new, filter="data")
            archive.unlink()
            check_digest(new, FLINK_DIGEST)
    return folder
