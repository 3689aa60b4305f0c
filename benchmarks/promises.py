"""Shows what the programs of `benchmarks.convert --others` do with awkward input.

    python -m benchmarks.promises

Each program is run, and its records are read. The first input has 300 photographs in three classes:
20 of them are there twice under other names, and one is rotated by its Exif orientation. It is
converted twice. In the second input, one photograph is cut off. With the third, the program is
killed as soon as it has written something.
"""

import base64
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pyarrow.parquet as parquet
from PIL import Image

from benchmarks import frames, measure, photographs
from benchmarks.convert import CASES, OTHERS, OTHERS_PYTHON
from recordmill.schemas.features import Example

COUNT, COPIES, CLASSES = 300, 20, 3
ROTATED, CUT = "class_00/photograph_000000.jpg", "class_01/photograph_000001.jpg"
HERE = ("two_processes", "tensorflow_writer")


class Stored(NamedTuple):
    """A record: its image's bytes or pixels, the number of its class, and its split.

    The file's name gives the split.
    """

    image: bytes
    label: int
    split: str


def make_inputs(work: Path) -> tuple[Path, Path]:
    """The first and the second input."""
    folders = work / "promises", work / "promises-cut"
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        for number in range(COUNT - COPIES):
            path = folder / f"class_{number % CLASSES:02}" / f"photograph_{number:06}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(photographs.photograph(number, 64, 48))
    for path in sorted((folders[0] / "class_02").iterdir())[:COPIES]:
        shutil.copy(path, path.with_stem(f"copy_of_{path.stem}"))
    with Image.open(folders[0] / ROTATED) as image:
        exif = image.getexif()
        exif[0x0112] = 6
        image.save(folders[0] / ROTATED, exif=exif)
    (folders[1] / CUT).write_bytes((folders[1] / CUT).read_bytes()[:800])
    return folders


def read(output: Path) -> Iterator[Stored]:
    """Yields what is in all record files below a folder."""
    for path in record_files(output):
        split = next((name for name in ("train", "test") if name in path.name), "")
        if path.suffix == ".tar" and tarfile.is_tarfile(path):
            with tarfile.open(path) as tar:
                members = {each.name: tar.extractfile(each).read() for each in tar}  # type: ignore[union-attr]
            for name in (name for name in members if name.endswith(".jpg")):
                described = json.loads(members[name.replace(".jpg", ".json")])
                yield Stored(
                    members[name], described.get("label", described.get("image/class/label")), split
                )
            continue
        for record in frames.records(path):
            values = Example.FromString(record).features.feature
            image = next(
                values[key].bytes_list.value for key in ("image/encoded", "image") if key in values
            )[0]
            label = next(
                values[key].int64_list.value
                for key in ("image/class/label", "label")
                if key in values
            )[0]
            yield Stored(
                image if image[:2] == b"\xff\xd8" else base64.urlsafe_b64decode(image), label, split
            )


def record_files(output: Path) -> list[Path]:
    """Returns the record files of an output as readers would find them.

    Files in folders of unfinished work are left out.
    """
    found = {path for pattern in frames.PATTERNS for path in output.rglob(pattern)}
    hidden = (".", "_tmp", "beam-temp", "incomplete")
    return sorted(
        path
        for path in found
        if not any(part.startswith(hidden) for part in path.relative_to(output).parts)
    )


def judge(stored: Sequence[Stored], source: Path) -> dict[str, str]:
    """What happened to the images of the first input."""
    known: dict[str, int] = {}
    for path in source.rglob("*.jpg"):
        with Image.open(path) as image:
            pixels = image.tobytes()
        label = int(path.parent.name.removeprefix("class_"))
        if path != source / ROTATED:
            known |= dict.fromkeys((_digest(path.read_bytes()), _digest(pixels)), label)
    found = [(_digest(each.image), each) for each in stored]
    other = [each for digest, each in found if digest not in known]
    places: dict[str, set[str]] = {}
    for digest, each in found:
        places.setdefault(digest, set()).add(each.split)
    splits = sorted({each.split for each in stored})
    crossing = sum(len(found_in) > 1 for found_in in places.values())
    right = sum(known.get(digest) == each.label for digest, each in found) + sum(
        each.label == 0 for each in other
    )
    return {
        "records": f"{len(stored)} of {COUNT}, {len(places)} images",
        "labels": f"{right} right",
        "rotated": _orientation(other[0].image)
        if len(other) == 1
        else f"{len(other)} images changed",
        "splits": ", ".join(splits) if len(splits) > 1 else "none",
        "copies across splits": f"{crossing} of {COPIES}" if len(splits) > 1 else "",
    }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _orientation(image: bytes) -> str:
    if image[:2] != b"\xff\xd8":
        return "pixels as stored, orientation lost"
    with Image.open(io.BytesIO(image)) as opened:
        if opened.size == (48, 64):
            return "upright"
        return "as stored, orientation " + ("kept" if opened.getexif().get(0x0112) == 6 else "lost")


def probe(
    command: Sequence[str], inputs: tuple[Path, Path], many: Path, work: Path
) -> dict[str, str]:
    """Runs a program on all inputs."""
    output = work / "promised"

    def convert(source: Path) -> subprocess.CompletedProcess[bytes]:
        shutil.rmtree(output, ignore_errors=True)
        words = [*command, "--input", str(source), "--output", str(output)]
        return subprocess.run(words, cwd=measure.ROOT, capture_output=True)

    contents = []
    for _ in range(2):
        if (done := convert(inputs[0])).returncode:
            raise measure.BenchmarkError(done.stderr.decode(errors="replace")[-2000:])
        contents.append(sorted(_digest(path.read_bytes()) for path in record_files(output)))
    said = judge(list(read(output)), inputs[0])
    said["second run"] = "same bytes" if contents[0] == contents[1] else "other bytes"
    done = convert(inputs[1])
    texts = [done.stdout, done.stderr, *(path.read_bytes() for path in output.rglob("*.json*"))]
    texts += [
        str(parquet.read_table(path).to_pylist()).encode() for path in output.rglob("*.parquet")
    ]
    named = "named" if any(Path(CUT).name.encode() in text for text in texts) else "not named"
    kept = (
        f"{sum(1 for path in record_files(output) for _ in frames.records(path))} of "
        f"{COUNT - COPIES} records"
    )
    said["cut photograph"] = f"exit code {done.returncode}, {kept}, {named}"
    said["killed"] = kill(command, many, output)
    shutil.rmtree(output, ignore_errors=True)
    return said


def kill(command: Sequence[str], source: Path, output: Path) -> str:
    """Kills a program once it has written a part of a record file.

    Returns what readers would find.
    """
    shutil.rmtree(output, ignore_errors=True)
    words = [*command, "--input", str(source), "--output", str(output)]
    process = psutil.Popen(
        words, cwd=measure.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not _begun(output):
        time.sleep(0.005)
    has_ended = process.poll() is not None
    for each in [*(process.children(recursive=True) if not has_ended else []), process]:
        if each.is_running():
            each.kill()
    process.wait()
    if has_ended:
        return "ended before it could be killed"
    left = record_files(output)
    return f"incomplete files: {len(left)}" if left else "nothing that readers take"


def _begun(output: Path) -> bool:
    """Whether a record file is being written, wherever."""
    with suppress(FileNotFoundError):  # it has just been renamed
        return any(
            path.stat().st_size for pattern in frames.PATTERNS for path in output.rglob(pattern)
        )
    return True


def main() -> None:
    """Probes all programs."""
    parser = measure.options(__doc__)
    parser.add_argument("--only", action="append", help="a program; may be repeated (all)")
    arguments = parser.parse_args()
    work: Path = arguments.work
    inputs, many = make_inputs(work), photographs.make(2_000, work)
    together = ("--set", "duplicates=together")
    commands: dict[str, Sequence[str]] = {"ours": [*arguments.pipeline, *together]}
    for rival in (*HERE, *OTHERS):
        python = OTHERS_PYTHON if rival in OTHERS else sys.executable
        commands[rival] = [
            str(python),
            "-m",
            f"benchmarks.rivals.{rival}",
            "--mode",
            CASES["default"].mode,
        ]
    found: dict[str, Mapping[str, Any]] = {}
    for name, command in commands.items():
        if not arguments.only or name in arguments.only:
            found[name] = probe(command, inputs, many, work)
            measure.console.log(f"{name}: {found[name]}")
    measure.finish({"machine": measure.machine(), "programs": found}, [], arguments.check)


if __name__ == "__main__":
    main()
