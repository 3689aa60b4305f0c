"""The image of an Example that exists already: its encoded bytes, or pixels that were stored raw or in base64."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recordmill.schemas.content import Pixels
from recordmill.transforms.inputs.tfrecord_input.example_fields import bad_example


def read_image_of(fields: Mapping[str, Any], is_raw: bool, shape: Sequence[int]) -> tuple[bytes, bytes | Pixels]:
    """The bytes that hold the image, and the image.

    Args:
        fields: of the Example, by the convention's fields.
        is_raw: whether pixels are stored instead of an encoded image: height x width x channels bytes, red first.
        shape: height, width and channels of raw pixels where the Example does not say.

    Raises:
        Rejected: raw pixels have no shape, or another number of bytes.
    """
    if "pixels_base64" in fields:
        try:
            data = base64.b64decode(fields["pixels_base64"], altchars=b"-_", validate=True)
        except binascii.Error as error:
            raise bad_example(f"its image is not url-safe base64 ({error})") from None
    else:
        data = fields["encoded"]
        if not is_raw:
            return data, data
    stated = [fields.get(side) for side in ("height", "width", "channels")]
    height, width, channels = stated if None not in stated else (tuple(shape) or (None, None, None))
    if height is None or width is None or channels is None:
        raise bad_example("its image is raw pixels of unknown height, width and channels: set source.shape")
    if channels not in (1, 3):
        raise bad_example(f"its image has {channels} channels, where 1 or 3 can be stored")
    if min(height, width) < 1 or height * width * channels != len(data):
        raise bad_example(f"its image has {len(data)} bytes, where {height} x {width} x {channels} are declared")
    return data, np.frombuffer(data, np.uint8).reshape(height, width, channels)
