"""tpu-imagenet: what the TPU models' `imagenet_to_gcs.py` writes: Inception's, but a synset.

The synset replaces the class text; ImageNet's folders are named after it. Class ids count from 1.
"""

from dataclasses import replace

from recordmill.schemas.conventions.inception import CONVENTION as INCEPTION
from recordmill.schemas.features import Feature

_SYNSET = Feature("image/class/synset", "bytes", "label_text", "class name, which is the synset there", default=b"")

CONVENTION = replace(
    INCEPTION,
    title="the TPU models' imagenet_to_gcs.py",
    features=tuple(_SYNSET if feature.key == "image/class/text" else feature for feature in INCEPTION.features),
)
