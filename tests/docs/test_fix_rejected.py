"""docs/fix_rejected.md: its example runs as printed, and it has a remedy for each reason."""

import re
import subprocess
from pathlib import Path

import pytest
from documented_inputs import draw_collections

from recordmill.pipeline.configuration.config import load_settings
from recordmill.schemas.rejection import REASONS
from scripts.count_code import modules

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/fix_rejected.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"^ *```console\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)
REMEDIES = {
    reason: remedy
    for reasons, remedy in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.+) \|$", TEXT, re.MULTILINE)
    for reason in re.findall(r"\w+", reasons)
}
ALL_REASONS = {reason for reasons in REASONS.values() for reason in reasons}


def steps():
    """The commands of the page, each with the lines that it prints; `...` stands for any lines."""
    for session in SESSIONS:
        lines = [line.removeprefix("   ") for line in session.splitlines()]
        for part in re.split(r"^\$ ", "\n".join(lines), flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed.strip()


def test_the_example_prints_what_is_shown(run_command, tmp_path):
    folder, codes = draw_collections(tmp_path), []
    for command, printed in steps():
        if not command.startswith("recordmill"):
            subprocess.run(["sh", "-ec", command], cwd=folder, check=True)
            continue
        done = run_command(command, folder)
        codes.append(done.returncode)
        pattern = ".*".join(map(re.escape, printed.split("...")))
        assert re.fullmatch(pattern, done.stderr.strip(), re.DOTALL), done.stderr
    assert codes == [3, 0, 0]


def test_each_flag_that_is_printed_is_the_next_command():
    (_, message), without, accepted = (each for each in steps() if each[0].startswith("record"))
    assert re.search(r"leave it out with (--set '[^']+')", message)[1] in without[0]
    assert re.search(r"accept the loss with (--set \S+)", message)[1] in accepted[0]


def test_each_reason_has_a_remedy():
    assert REMEDIES.keys() == ALL_REASONS


def test_the_code_raises_each_reason_and_no_other():
    code = "\n".join(
        path.read_text(encoding="utf-8") for path in modules() if path.name != "rejection.py"
    )
    assert {reason for reason in ALL_REASONS if f'"{reason}"' not in code} == set()
    raised = re.findall(r'Rejected\(\s*"\w+",\s*"(\w+)"', code)
    noticed = re.findall(r'notice\(\s*"rejected",\s*"(\w+)"', code)
    assert {*raised, *noticed} <= ALL_REASONS
    assert len({*raised, *noticed}) > 20


def test_settings_that_remedies_name_are_there():
    settings = load_settings(None, ()).settings
    for remedy in REMEDIES.values():
        for path in re.findall(r"`((?:images|boxes|labels|splits)\.\w+)`", remedy):
            section, _, name = path.partition(".")
            assert hasattr(getattr(settings, section), name), path
