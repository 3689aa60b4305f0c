"""raw-pixels: the pixels themselves and the label, as readers of CIFAR-10 converted to TFRecords expect them."""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="raw pixels and label, as for CIFAR-10",
    features=(
        Feature("image", "bytes", "encoded", "the pixels: height x width x channels bytes, red first"),
        Feature("label", "int64", "label", "class id, counted from the label map's offset"),
    ),
    stores="raw",
)
