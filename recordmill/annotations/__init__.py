"""What annotates an image besides its one class: one module for each kind.

`annotation.py` has the protocol of a kind, and `kinds.py` lists the kinds. The names here are for
steps of a user's pipeline that annotate images.
"""

from recordmill.annotations.annotation import pack_annotations
from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.labels import Labels

__all__ = ["Labels", "boxes_of", "pack_annotations"]
