import io
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from PIL import Image

from recordmill.schemas.pillow_warnings import ignore_pillow_warnings


@pytest.fixture(autouse=True)
def pillow_warnings_are_ignored() -> Iterator[None]:
    """As in a conversion."""
    with warnings.catch_warnings():
        ignore_pillow_warnings()
        yield


@pytest.fixture(scope="session")
def photo() -> Image.Image:
    """A smooth color picture, 96 wide and 64 high."""
    y, x = np.mgrid[0:64, 0:96]
    channels = [
        128 + 100 * np.sin(x / 17),
        128 + 100 * np.cos(y / 13),
        128 + 90 * np.sin((x + y) / 23),
    ]
    return Image.fromarray(np.stack(channels, axis=-1).astype(np.uint8))


@pytest.fixture(scope="session")
def save() -> Callable[..., bytes]:
    """Encodes an image: save(image, "PNG", **options)."""

    def save(image: Image.Image, file_format: str, **options: object) -> bytes:
        target = io.BytesIO()
        image.save(target, file_format, **options)
        return target.getvalue()

    return save


@pytest.fixture(scope="session")
def jpeg(photo, save) -> bytes:
    return save(photo, "JPEG", quality=90)
