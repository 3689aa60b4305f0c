"""feature_vector_by_name: `feature_vector` with the file's base name under `sha256`, which old readers look for."""

from dataclasses import replace

from recordmill.schemas.conventions import Convention, Feature
from recordmill.schemas.conventions.feature_vector import CONVENTION as FEATURE_VECTOR

_NAME = Feature("sha256", "bytes", "filename", "the file's base name, which is its digest where files are named so")

CONVENTION: Convention = replace(
    FEATURE_VECTOR, title="feature extraction scripts', by name", features=(_NAME, *FEATURE_VECTOR.features[1:])
)
