"""Settings as a configuration would give them."""

from typing import Any

from recordmill.pipeline.configuration.resolve_settings import complete_settings
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.inputs.sources.class_folders import ClassFolders


def make_settings(**settings: Any) -> DatasetSettings:
    """Complete settings, of class folders unless `source` says otherwise."""
    return complete_settings(DatasetSettings(**{"source": ClassFolders(), **settings}))
