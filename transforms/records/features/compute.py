"""Features that functions compute for one record."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recordmill.imaging.pixels import Raster, copy_pixels
from recordmill.schemas.coercion import COERCE, FeatureValueError, Value
from recordmill.schemas.features import Feature
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.transforms.records.features.find_function import FunctionError, call_function


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
        FunctionError: a function failed.
    """
    return {name: _compute(name, each, raster, data, key, uri) for name, each in functions.items()}


def _compute(name: str, settings: FeatureFunction, raster: Raster | None, data: bytes, key: str, uri: str) -> Any:
    arguments: tuple[Any, ...] = (data, uri)
    if settings.takes == "image" and raster is not None:
        # The user's own may write into it, and the next one is given the image again.
        arguments = (raster if settings.is_built_in else copy_pixels(raster),)
    given = call_function(f"features.{name}", settings.function, key, *arguments)
    try:
        return _fit(given, settings.as_feature(name))
    except FeatureValueError as error:
        what = f"what {settings.function} gave for {key} does not fit"
        raise FunctionError(f"features.{name}: {what}: {error}") from None


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
