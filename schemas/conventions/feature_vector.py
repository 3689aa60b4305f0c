"""feature_vector: digest, vector and label of each file, as multi-process extraction scripts write them."""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="feature extraction scripts'",
    features=(
        Feature("sha256", "bytes", "file_sha256", "SHA-256 of the file, in hex"),
        Feature("feature", "float", "feature", "what the function of `features.feature` makes of it", many=True),
        Feature("label", "int64", "label", "class id, counted from the label map's offset"),
    ),
    shard_name="{split}_shard_{index}",  # the scripts have no splits, and so no prefix
)
