"""A run on a store makes at most 100 requests more than without the checks of recognition."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
from counting_store import CountingStore
from paired_inputs import photo

from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.recognize_layout import fill_in
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.source import Input
from recordmill.storage.stores import find_store
from recordmill.transforms.list_images import list_images


def classes(count, below=("",)):
    return {
        f"c{number:02}/{folder}{at:03}.png": photo((number, at), "PNG")
        for number in range(count)
        for folder in below
        for at in range(5)
    }


def texts(count):
    return {f"c00/text{number}.x{number % 7}y": b"words\n" for number in range(count)}


def counted_classes():
    """Classes whose names have the same numbers, so that all are looked at."""
    return {
        f"{kind}/{kind}_{at:03}.png": photo((kind, at), "PNG")
        for kind in (f"{one}{other}x" for one in "abcdefgh" for other in "abcde")
        for at in range(5)
    }


CASES = {
    "classes": ({**classes(40), **texts(200)}, 76),
    "classes of classes": ({**classes(30, ("a/", "b/")), **texts(200)}, 67),
    "names with the same numbers": ({**counted_classes(), **texts(200)}, 76),
    "a folder around all": (
        {f"data/x/{path}": data for path, data in {**classes(12), **texts(200)}.items()},
        38,
    ),
}
"""The files of an input, and the requests that its names and its known files take."""


@pytest.mark.parametrize("inputs", [1, 4])
@pytest.mark.parametrize("name", CASES)
def test_checks_make_at_most_100_requests_in_all(name, inputs, monkeypatch):
    files, most = CASES[name]
    folders = [Input(f"s3://bucket{number}/in", f"{number}") for number in range(inputs)]
    store = CountingStore(
        {f"{each.path}/{path}": data for each in folders for path, data in files.items()}
    )
    monkeypatch.setattr(find_store, "_make_store", lambda *_: store)
    with suppress(UsageError):
        loaded = load_settings(None, (), partial(fill_in, folders, lambda _: None))
        listing = replace(loaded.settings.listing, inputs=inputs)
        for each in folders:
            list(list_images(each, loaded.settings.source, listing))
    assert store.requests.total() <= inputs * most + 100
