"""Pillow's warnings, in processes that convert or verify images.

Pillow warns about odd metadata of each file: on a million images that drowns everything else, and
no pixel depends on it.
"""

import warnings


def ignore_pillow_warnings() -> None:
    """Ignores Pillow's warnings about files, in all threads of this process.

    For a block, call it within `warnings.catch_warnings` around all threads that decode.
    """
    # The second is the class of `PIL.Image.DecompressionBombWarning`.
    for category in (UserWarning, RuntimeWarning):
        warnings.filterwarnings("ignore", category=category, module=r"PIL\.")
