"""The lines of sidecars that tests write: one of a record, and one of a rejected reference."""

import hashlib


def written(key, label="cat", width=8, height=6, size=100, **more):
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


def rejected(key, reason="empty"):
    row = {"key": key, "spelling": None, "bytes": 0, "sha256": None, "class": None}
    return {**row, "stage": "decode", "rejected": reason, "detail": "nothing there"}
