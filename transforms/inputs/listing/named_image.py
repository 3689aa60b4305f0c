"""Images that other files name: annotations, lists."""

import posixpath

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.listing.safe_paths import key_of, reason_of, resolve_inside, root_of, size_and_version

IMAGE_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
"""How names of images end, where data name images without their endings."""


def find_named_image(file: ImageRef, path: str, below: str) -> ImageRef:
    """The reference of an image that a file names; rejected where it is not there or no file, or outside.

    Args:
        file: a reference to the file, from which the image has its split.
        path: the file's, as `Source.list_references` is given it.
        below: the image's, below the same input.
    """
    ref = file.replace(key=key_of(file.key, path, below), spelling="")
    why = f"named by {posixpath.basename(path)}:"
    try:
        uri = resolve_inside(root_of(file.uri, path), below)
        size, version = size_and_version(uri)
    except Rejected as error:
        return ref.notice("rejected", "outside_root", f"{why} {error.detail}")
    except OSError as error:
        what = (error.strerror or type(error).__name__).lower()
        return ref.notice("rejected", reason_of(error), f"{why} {what}")
    return ref.replace(uri=uri, size=size, version=version)
