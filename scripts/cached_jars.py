"""Downloads jars from package registries into a cache, once, and checks their digests."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.local_processes import MissingError, find_program

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recordmill"

BEAM_JOB_SERVER = "2.62.0"
"""The newest release of Beam whose job servers for Flink and Spark can be had with all their jars
from the Maven Central that the tests reach; it runs pipelines of Beam 2.77."""

POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>recordmill</groupId>
  <artifactId>job-server</artifactId>
  <version>1</version>
  <dependencies>
    {dependencies}
  </dependencies>
  <build>
    <directory>${{project.basedir}}</directory>
    <plugins>
      <plugin>
        <artifactId>maven-jar-plugin</artifactId>
        <configuration>
          <archive>
            <manifest>
              <mainClass>{main}</mainClass>
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


@dataclass(frozen=True)
class JobServer:
    """A job server of Beam, with the jars that it needs.

    Attributes:
        artifacts: what Maven is asked for, as `group:artifact:version`.
        main: the class that `java -jar` runs.
        digest: the digest of all jars, see `digest_of`.
    """

    artifacts: Sequence[str]
    main: str
    digest: str

    def fetch(self, folder: Path) -> Path:
        """Returns a jar that `java -jar` runs; its manifest names the jars in `lib` next to it.

        Raises:
            MissingError: Maven is missing or fails, or the jars are not the expected ones.
        """
        if not folder.is_dir():
            maven = find_program("mvn", "Maven")
            with create_folder(folder) as new:
                (new / "pom.xml").write_text(self._pom(), encoding="utf-8")
                goals = ["dependency:copy-dependencies", "-DoutputDirectory=lib", "jar:jar"]
                run(maven, "-B", "-q", *goals, cwd=new)
                check_digest(new / "lib", self.digest)
        return folder / "job-server-1.jar"

    def _pom(self) -> str:
        dependencies = []
        for artifact in self.artifacts:
            values = zip(("groupId", "artifactId", "version"), artifact.split(":"), strict=True)
            inner = "".join(f"<{name}>{value}</{name}>" for name, value in values)
            dependencies.append(f"<dependency>{inner}</dependency>")
        return POM.format(dependencies="\n    ".join(dependencies), main=self.main)


def digest_of(folder: Path) -> str:
    """Returns one SHA-256 of all jars in a folder: of the lines that `sha256sum *.jar` prints."""
    whole = hashlib.sha256()
    for path in sorted(folder.glob("*.jar")):
        with open(path, "rb") as jar:
            digest = hashlib.file_digest(jar, "sha256").hexdigest()
        whole.update(f"{digest}  {path.name}\n".encode())
    return whole.hexdigest()


def check_digest(folder: Path, expected: str) -> None:
    """Checks that downloaded jars are the ones that were tested.

    Raises:
        MissingError: they differ.
    """
    found = digest_of(folder)
    if found != expected:
        raise MissingError(
            f"the downloaded jars have the digest {found}, not {expected}: delete the copies that "
            "Maven and pip keep, and try again"
        )


@contextmanager
def create_folder(folder: Path) -> Iterator[Path]:
    """Yields a temporary folder that is renamed to `folder` when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        yield new
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def run(*command: str, cwd: Path) -> None:
    """Runs a program to its end.

    Raises:
        MissingError: it fails; the text has the end of its output.
    """
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        end = (done.stdout + done.stderr).strip()[-2000:]
        raise MissingError(f"{' '.join(command)} failed with exit code {done.returncode}:\n{end}")


def say(text: str) -> None:
    """Prints what takes long."""
    sys.stderr.write(f"{text}\n")
