import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run and every machine, and no failure because a machine is slow.
# To search for new ones: pytest --hypothesis-profile=default
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real collections that lie beside the repository on some machines."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("../shared/data is absent")
    return folder


ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def run_command() -> Callable[[str, Path], subprocess.CompletedProcess[str]]:
    """Runs one command of the documentation in a folder, with this interpreter and this checkout."""

    def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        words[0] = sys.executable if words[0].endswith("python") else words[0]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
        return subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    return run


@pytest.fixture(scope="session")
def run_page(run_command) -> Callable[[str, Path], list[subprocess.CompletedProcess[str]]]:
    """Does what a page of the documentation says, in a folder, block after block; each must succeed.

    A `sh` block is run command by command, a `python` block as a script. A block with a file name behind its language
    (`yaml own.yaml`) becomes that file. Blocks without a language, and `console`, are for the eyes only.
    """

    def run(page: str, folder: Path) -> list[subprocess.CompletedProcess[str]]:
        text = (ROOT / page).read_text(encoding="utf-8")
        results = []
        for language, name, block in re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            if name:
                (folder / name).write_text(block, encoding="utf-8")
            elif language == "python":
                (folder / "block.py").write_text(block, encoding="utf-8")
                results.append(run_command("python block.py", folder))
            elif language == "sh":
                for command in re.sub(r"\\\n\s*", "", block).strip().splitlines():
                    if command and not command.startswith("#"):
                        results.append(run_command(command, folder))
            assert not results or results[-1].returncode == 0, f"{block}\n{results[-1].stderr}"
        return results

    return run
