"""Leaves out the images that `exclude` names, by themselves or by a file that annotates them."""

import hashlib
from collections.abc import Mapping

from recordmill.schemas.dataset.side_files import Row
from recordmill.schemas.image_ref import UNKNOWN_SIZE, ImageRef, Notice, SourceFile
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Exclusions, LeftOut, Rejected
from recordmill.transforms.inputs.tables.other_files import read_other_file
from recordmill.transforms.records.convert_image import ConvertedImage, reject_image


def exclude_image(
    ref: ImageRef,
    image: ConvertedImage,
    exclusions: Exclusions,
    label_map: LabelMap,
    max_bytes: int,
) -> ConvertedImage:
    """Leaves an image out, written or rejected, if `exclude` names it.

    Its row then has neither key nor digest.

    Raises:
        OSError: the store of a file that annotates it failed.
    """
    digests = list_digests(image.row)
    lines = find_lines(ref, image.row.sha256, exclusions, max_bytes, digests)
    if not lines:
        return image
    nameless, why = (
        ref.replace(key="", spelling="", label="", size=UNKNOWN_SIZE, length=-1),
        LeftOut("excluded", ""),
    )
    why.stage = "list" if isinstance(ref, Notice) else "encode"
    left_out = reject_image(nameless, why, label_map)
    left_out.excluded = lines
    return left_out


def find_lines(
    ref: ImageRef,
    sha256: str | None,
    exclusions: Exclusions,
    max_bytes: int,
    digests: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Identifies the lines that name an image, or a file that annotates it; see `Exclusions.find`.

    The latter is read only if there are digests among the lines.

    Args:
        ref: the image.
        sha256: the digest of its source, if it is known.
        exclusions: the lines.
        max_bytes: the most that is read of a file that annotates it; a longer one has no digest.
        digests: the known digests of files that annotate it, by key.

    Raises:
        OSError: the store of a file that annotates it failed.
    """
    lines = list(exclusions.find(ref.key, sha256))
    for file in ref.files:
        digest = (digests or {}).get(file.key)
        if exclusions.digests and digest is None:
            digest = digest_file(file, max_bytes)
        lines += exclusions.find(file.key, digest)
    return tuple(dict.fromkeys(lines))


def list_digests(row: Row) -> dict[str, str]:
    """Returns the digests of the files that a row's annotations were read from, by key."""
    kinds = (row.annotations or {}).values()
    return {file["key"]: file["sha256"] for kind in kinds for file in kind.get("files", ())}


def digest_file(file: SourceFile, max_bytes: int) -> str | None:
    """Returns the SHA-256 of a file; None if it cannot be read."""
    try:
        return hashlib.sha256(read_other_file(file, max_bytes)).hexdigest()
    except Rejected:
        return None
