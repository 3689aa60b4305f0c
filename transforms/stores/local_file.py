"""Files of this machine."""

import os


def read_local(path: str, offset: int, length: int) -> bytes:
    """Reads by system calls; Beam's open costs four times as much (43 against 10 us for a 100 KB file)."""
    file = os.open(path, os.O_RDONLY)
    try:
        missing = max(os.fstat(file).st_size - offset, 0) if length < 0 else length
        pieces = [os.pread(file, missing, offset)]
        while pieces[-1] and (missing := missing - len(pieces[-1])):  # networks' file systems may give less
            offset += len(pieces[-1])
            pieces.append(os.pread(file, missing, offset))
    finally:
        os.close(file)
    return b"".join(filter(None, pieces))  # a single piece is not copied
