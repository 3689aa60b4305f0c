"""Computes features of one record by the functions that the settings name."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recordmill.imaging.pixels import Raster, copy_pixels
from recordmill.schemas.coercion import COERCE, FeatureValueError, Value
from recordmill.schemas.features import Feature
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.transforms.records.features.find_function import resolve


class FeatureFunctionError(Exception):
    """A function failed, or gave what its feature cannot hold: only its author can fix that, so the run fails.

    The message names the feature, the function, the file and what went wrong.
    """


def compute_features(
    functions: Mapping[str, FeatureFunction], raster: Raster | None, data: bytes, key: str, uri: str
) -> dict[str, Any]:
    """Values by feature.

    Args:
        functions: by feature.
        raster: the decoded image; None where no function takes it.
        data: the file's bytes.
        key: the record's name in the dataset, for people.
        uri: where the file is.

    Raises:
        FeatureFunctionError: a function failed.
    """
    return {name: _compute(name, each, raster, data, key, uri) for name, each in functions.items()}


def _compute(name: str, settings: FeatureFunction, raster: Raster | None, data: bytes, key: str, uri: str) -> Any:
    function, feature = resolve(settings.function), settings.as_feature(name)
    try:
        if settings.takes == "image" and raster is not None:
            # The user's own may write into it, and the next one is given the image again.
            given = function(raster if settings.is_built_in else copy_pixels(raster))
        else:
            given = function(data, uri)
    except Exception as error:  # a user's function may raise whatever it likes
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise FeatureFunctionError(f"features.{name}: {settings.function} failed on {key}: {why}") from error
    try:
        return _fit(given, feature)
    except FeatureValueError as error:
        what = f"what {settings.function} gave for {key} does not fit"
        raise FeatureFunctionError(f"features.{name}: {what}: {error}") from None


def _fit(given: Any, feature: Feature) -> Value | list[Value]:
    coerce = COERCE[feature.kind]
    if isinstance(given, np.ndarray):
        if feature.many and given.ndim != 1:
            raise FeatureValueError(f"its shape is {list(given.shape)}, not that of a list: give it flat")
        given = given.tolist()
    if not feature.many:
        return coerce(given)
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise FeatureValueError("must be a list (with shape: [], one value)")
    return [coerce(each) for each in given]
