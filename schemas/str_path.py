"""The type of the paths that public functions take."""

import os

StrPath = str | os.PathLike[str]
"""A path on this machine, or a URL as a `str`.

`pathlib.Path` would drop one of the two slashes of `s3://`.
"""
