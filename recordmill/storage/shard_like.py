"""Recognises TFRecord files by their names, whatever wrote them."""

import re

_SHARD = re.compile(
    r"\.tf_?rec(?:ord)?s?\b"  # a.tfrecord, a.tfrec.gz, a.tfrecord-00000-of-00005
    r"|\.records?\b"
    r"|\d+-?of-?\d+"  # train-00000-of-01024, Inception's; test_01of02
    r"|(?:^|_)shard_\d+(?:\.gz)?$",  # scripts that write one file per process
    re.IGNORECASE,
)


def looks_like_shard(name: str) -> bool:
    """Whether a file of this base name is likely a TFRecord file."""
    return bool(_SHARD.search(name))
