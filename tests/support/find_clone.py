"""Finds a clone of a public repository, or fetches one commit of it."""

import os
import subprocess
from pathlib import Path

import pytest

CLONES = os.environ.get("RECORDMILL_CLONES", "")
"""A folder of local clones, `OWNER+NAME/repo` or `OWNER/NAME`; without it, repositories are
fetched."""
PATIENCE = 120  # seconds to wait for a repository's host


def find_clone(repository: str, commit: str, cache: Path) -> Path:
    """A git directory that has the commit; skips the test where there is none to be had."""
    owner, name = repository.split("/")
    for path in (
        (Path(CLONES, f"{owner}+{name}", "repo"), Path(CLONES, owner, name)) if CLONES else ()
    ):
        if path.exists():
            return path
    clone = cache / f"{owner}+{name}"
    if not clone.exists():
        subprocess.run(["git", "init", "--quiet", "--bare", str(clone)], check=True)
    fetch = [
        "git",
        "-C",
        str(clone),
        "fetch",
        "--quiet",
        "--depth=1",
        f"https://github.com/{repository}",
        commit,
    ]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            fetch, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{repository} does not answer")
    if done.returncode:
        pytest.skip(f"{repository} cannot be reached: {' '.join(done.stderr.split()):.200}")
    return clone


def show_file(clone: Path, commit: str, path: str) -> bytes:
    """Returns a file of a commit."""
    command = ["git", "-C", str(clone), "show", f"{commit}:{path}"]
    return subprocess.run(command, check=True, capture_output=True).stdout
