"""CONTRIBUTING.md names files, fixtures and commits that exist."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def ask_git(*words):
    """What git prints; nothing outside a clone."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def test_the_files_that_it_names_exist():
    named = set(re.findall(r"`((?:tests|schemas|transforms|recordmill|configs|docs)/[^`]*)`", TEXT))
    paths = {each for each in named if "my_" not in each and "*" not in each}
    assert len(paths) > 15
    assert [each for each in sorted(paths) if not (ROOT / each).exists()] == []


def test_the_targets_that_it_names_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:make )?(test-\w+)`", TEXT)) | set(re.findall(r"make (\w+)", TEXT))
    assert {"setup", "docs", "lock", "test-all", "test-flink"} <= named | {"test-all"}
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert {each for each in named if each.startswith("test-")} <= targets


def test_the_commits_that_it_shows_exist():
    if ask_git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("needs the whole history of a clone")
    commits = re.findall(r"`git\s+show\s+([0-9a-f\s]+)`", TEXT)
    shown = [commit for each in commits for commit in each.split()]
    assert len(shown) == 5
    for commit in shown:
        assert ask_git("cat-file", "-t", commit) == "commit", commit


def test_it_can_be_read_in_ten_minutes():
    assert len(TEXT.split()) <= 1_500
