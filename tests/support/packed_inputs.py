"""Archives of small collections."""

import io
import tarfile
import zipfile
from pathlib import Path


def pack(path: Path, files: dict[str, bytes]) -> None:
    """Writes an archive of files; the kind is that of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data in files.items():
                packed.writestr(name, data)
        return
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as packed:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
