"""Jars are fetched once, under names that only complete downloads have, and compared with a
digest."""

import hashlib
import os
import subprocess
import sys

import pytest

from scripts import cached_jars
from scripts.cached_jars import JobServer, digest_of
from scripts.local_processes import MissingError

MAVEN = """#!/bin/sh
mkdir lib && cp pom.xml lib/a.jar && touch job-server-1.jar && echo >> "$CALLS"
"""


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """A Maven that needs no registry; gives the file with a line per call."""
    (tmp_path / "bin").mkdir()
    maven = tmp_path / "bin/mvn"
    maven.write_text(MAVEN)
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{maven.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def server_with(digest):
    return JobServer(artifacts=("org.example:one:1", "org.example:two:2"), main="A", digest=digest)


def test_jars_are_fetched_once(calls, tmp_path):
    pom = server_with("")._pom().encode()
    assert b"<groupId>org.example</groupId><artifactId>two</artifactId><version>2</version>" in pom
    line = f"{hashlib.sha256(pom).hexdigest()}  a.jar\n"
    server = server_with(hashlib.sha256(line.encode()).hexdigest())
    for _ in range(2):
        assert server.fetch(tmp_path / "cache/jars") == tmp_path / "cache/jars/job-server-1.jar"
    assert digest_of(tmp_path / "cache/jars/lib") == server.digest
    assert calls.read_text() == "\n"


def test_other_jars_than_the_tested_ones_are_refused(calls, tmp_path):
    with pytest.raises(MissingError, match=r"the downloaded jars have the digest .*, not 12ab: "):
        server_with("12ab").fetch(tmp_path / "cache/jars")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_maven_that_fails_is_quoted(calls, tmp_path):
    (tmp_path / "bin/mvn").write_text("#!/bin/sh\necho no route; exit 7\n")
    with pytest.raises(MissingError, match=r"(?s)mvn .* failed with exit code 7:\nno route"):
        server_with("").fetch(tmp_path / "cache/jars")


def test_the_cache_is_where_the_user_says(tmp_path):
    words = [sys.executable, "-c", "from scripts.cached_jars import CACHE; print(CACHE)"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path / "recordmill")
    assert cached_jars.CACHE.name == "recordmill"
