"""The lines of sidecars that tests write: one of a record, and one of a rejected reference."""

import hashlib
from typing import Any


def written(
    key: str, label: str = "cat", width: int = 8, height: int = 6, size: int = 100, **more: Any
) -> dict[str, Any]:
    digest = hashlib.sha256(key.encode()).hexdigest()
    row = {
        "key": key,
        "bytes": size,
        "sha256": digest,
        "class": label,
        "label": 0,
        "height": height,
        "width": width,
    }
    return {**row, "channels": 3, "moments": None, "changes": [], "offset": 0, "length": 9, **more}


def rejected(key: str, reason: str = "empty") -> dict[str, Any]:
    row: dict[str, Any] = {"key": key, "spelling": None, "bytes": 0, "sha256": None, "class": None}
    return {**row, "stage": "decode", "rejected": reason, "detail": "nothing there"}
