import pytest

from recordmill.schemas.features import Feature
from recordmill.schemas.settings.feature_function import BUILT_IN, FeatureFunction


def test_a_feature_is_as_declared():
    own = "own_functions:embed"
    meaning = "computed by `own_functions:embed`"
    assert FeatureFunction(function=own).as_feature("x") == Feature(
        "x", "float", "x", meaning, many=True
    )
    stated = FeatureFunction(function=own, type="int64", shape=(), of="file", meaning="a count")
    assert stated.as_feature("n") == Feature("n", "int64", "n", "a count")
    assert (stated.signature.of, FeatureFunction(function=own).signature.of) == ("file", "image")
    known = FeatureFunction(function="file_sha256")
    assert known.as_feature("h") == Feature("h", "bytes", "h", BUILT_IN["file_sha256"].meaning)
    assert known.signature.of == "file"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"function": "mean"},
            "function is 'mean', which does not exist: write one of mean_std, color_histogram, ",
        ),
        (
            {"function": "mean_std", "type": "float"},
            "type, shape and of are fixed for mean_std: remove them",
        ),
    ],
)
def test_invalid_settings_of_a_function_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        FeatureFunction(**settings)
