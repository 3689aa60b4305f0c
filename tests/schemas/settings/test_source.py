from dataclasses import dataclass

import pytest

from recordmill.schemas.settings.source import SourceSettings
from recordmill.transforms.inputs.sources.source import Source, load_source, source_names


@pytest.mark.parametrize("name", source_names())
def test_a_source_is_called_as_its_module(name):
    source = load_source(name)
    assert (source.kind, SourceSettings in source.__mro__) == (name, True)


@dataclass(frozen=True, slots=True)
class Nothing(Source):
    """Every file is ignored."""

    def list_references(self, path, file):
        yield file.notice("ignored", "nothing")


def test_unless_a_source_says_otherwise_it_has_images_with_labels_and_nothing_else():
    source = Nothing()
    assert (source.contents, source.files, source.gives_labels, source.may_give_pixels) == (
        "images",
        (),
        True,
        False,
    )
    assert (source.features(), source.annotations(), source.classes(), source.idle_settings()) == (
        (),
        {},
        {},
        {},
    )
    assert source.settle(iter(()), print) is source
