"""Archives of small collections."""

import io
import tarfile
import zipfile
from pathlib import Path


def pack(path: Path, files: dict[str, bytes]) -> None:
    """Writes an archive of files; the kind is that of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed(files, path.suffix))


def packed(files: dict[str, bytes], suffix: str) -> bytes:
    """Returns an archive of files: `.zip`, `.tar`, or `.gz` for a packed tar."""
    stream = io.BytesIO()
    if suffix == ".zip":
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode="w:gz" if suffix == ".gz" else "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()
