"""The wheel of this checkout, and an environment in which it is installed as users install it."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

REPO = Path(__file__).parents[2]


def build_wheel(folder: Path) -> Path:
    """Builds the wheel in a folder, from a copy: it would also pack what an earlier build left."""
    ignore = shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "out")
    shutil.copytree(REPO, folder / "copy", symlinks=True, ignore=ignore)
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(folder / "copy"),
    ]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, root: Path) -> Path:
    """Makes an environment with a wheel, and returns its folder `bin`.

    It borrows the packages that we depend on.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
    subprocess.run([*install, "--python", root / "bin/python", wheel], check=True)
    (site,) = root.glob("lib/python*/site-packages")
    # A line of a .pth adds the folder alone, not the .pth files in it, by one of which the clone is
    # installed.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return root / "bin"


def environment_without_the_checkout(**more: str) -> dict[str, str]:
    """The variables of this process, without those by which a Python would find this checkout."""
    return {
        name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    } | more
