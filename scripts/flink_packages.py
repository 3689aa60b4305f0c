"""Downloads the parts of a local Flink cluster from package registries into a cache, once.

Flink itself comes from PyPI (`apache-flink-libraries` carries the jars of a release), Beam's job
server from Maven Central. The workers' environment is like a user's: the archive that Beam's
`--setup_file` ships is installed in it.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FLINK = "1.19.3"
BEAM_JOB_SERVER = "2.62.0"
"""The newest job server for Flink 1.19 whose jars are all on Maven Central; it runs pipelines of
Beam 2.77."""

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recordmill"

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>recordmill</groupId>
  <artifactId>job-server</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.beam</groupId>
      <artifactId>beam-runners-flink-1.19</artifactId>
      <version>{BEAM_JOB_SERVER}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.30</version>
    </dependency>
  </dependencies>
  <build>
    <directory>${{project.basedir}}</directory>
    <plugins>
      <plugin>
        <artifactId>maven-jar-plugin</artifactId>
        <configuration>
          <archive>
            <manifest>
              <mainClass>org.apache.beam.runners.flink.FlinkJobServerDriver</mainClass>
              <addClasspath>true</addClasspath>
              <classpathPrefix>lib/</classpathPrefix>
            </manifest>
          </archive>
        </configuration>
      </plugin>
    </plugins>
  </build>
</project>
"""


class MissingError(Exception):
    """Something that is needed is missing; the text says what to do."""


def job_server_jar() -> Path:
    """Returns a jar that `java -jar` runs, also for `--flink_job_server_jar`.

    Its manifest names the jars next to it.
    """
    folder = CACHE / f"beam-flink-job-server-{BEAM_JOB_SERVER}"
    if not folder.is_dir():
        _say("fetching Beam's job server from Maven Central: two minutes")
        maven = find_program("mvn", "Maven")
        with _create_folder(folder) as new:
            (new / "pom.xml").write_text(POM, encoding="utf-8")
            goals = ["dependency:copy-dependencies", "-DoutputDirectory=lib", "jar:jar"]
            _run(maven, "-B", "-q", *goals, cwd=new)
    return folder / "job-server-1.jar"


def flink_jars() -> Path:
    """The folder with Flink's jars."""
    folder = CACHE / f"flink-{FLINK}"
    if not folder.is_dir():
        _say("fetching Flink from PyPI: half a minute")
        with _create_folder(folder) as new:
            pip = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--no-binary",
                ":all:",
            ]
            _run(*pip, f"apache-flink-libraries=={FLINK}", cwd=new)
            (archive,) = new.glob("*.tar.gz")
            with tarfile.open(archive) as packed:
                for member in packed:
                    if Path(member.name).match("*/deps/lib/*.jar"):
                        member.name = Path(member.name).name
                        packed.extract(member, new, filter="data")
            archive.unlink()
    return folder


def worker_environment(run: Path) -> Path:
    """Makes an environment with Recordmill as `--setup_file` ships it; returns its `bin` folder.

    It is built each time from the current checkout. The lock file only constrains versions: the
    archive decides what is installed.
    """
    environment, shipped = run / "workers", run / "shipped"
    for folder in (environment, shipped):
        shutil.rmtree(folder, ignore_errors=True)
    _say("installing the workers' environment")
    uv = [str(Path(sys.executable).with_name("uv")), "--quiet"]
    with tempfile.TemporaryDirectory() as temporary:
        # From a copy: building leaves an egg-info, and one left by an earlier build adds files that
        # are gone.
        copy = Path(temporary, "copy")
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "out")
        )
        # The command by which Beam builds what --setup_file names.
        _run(
            sys.executable,
            "-m",
            "build",
            "--no-isolation",
            "--sdist",
            "--outdir",
            str(shipped),
            cwd=copy,
        )
    (archive,) = shipped.glob("*.tar.gz")
    _run(*uv, "venv", "--python", sys.executable, str(environment), cwd=run)
    constraints = run / "constraints.txt"
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pinned = [line.removesuffix("\\").strip() for line in lines if line and line[0] not in " #"]
    constraints.write_text("\n".join(pinned) + "\n", encoding="utf-8")
    python = str(environment / "bin/python")
    _run(
        *uv,
        "pip",
        "install",
        "--python",
        python,
        "--constraint",
        str(constraints),
        str(archive),
        cwd=run,
    )
    return environment / "bin"


@contextmanager
def _create_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to `folder` when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        yield new
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def find_program(name: str, title: str) -> str:
    """The path of a program.

    Raises:
        MissingError: it is not on PATH.
    """
    found = shutil.which(name)
    if not found:
        raise MissingError(f"{title} is needed and {name} is not on PATH: install it")
    return found


def _run(*command: str, cwd: Path) -> None:
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        end = (done.stdout + done.stderr).strip()[-2000:]
        raise MissingError(f"{' '.join(command)} failed with exit code {done.returncode}:\n{end}")


def _say(text: str) -> None:
    sys.stderr.write(f"scripts/flink: {text}\n")
