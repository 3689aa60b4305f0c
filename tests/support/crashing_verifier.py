"""A child process of the verifier that ends when it decodes an image of a certain length."""

import os
from typing import Any

from recordmill.imaging import prepare_image
from recordmill.reading import verify_images, verify_processes

CRASHING_LENGTH = 7
"""Images whose length this number divides end the process."""


def serve_shards(pipe: int) -> None:
    """Serves as `verify_processes.serve_shards` does, until such an image comes."""

    def prepare(image: bytes, settings: Any) -> Any:
        if len(image) % CRASHING_LENGTH == 0:
            os._exit(7)
        return prepare_image(image, settings)

    vars(verify_images)["prepare_image"] = prepare
    verify_processes.serve_shards(pipe)
