"""Both kinds of stores, empty, as this process sees them."""

import pytest
from apache_beam.io.filesystems import FileSystems

from recordmill.storage.stores import find_store as stores


def place(kind, request, monkeypatch):
    """A store's URL of a folder of the test's own."""
    served = request.getfixturevalue(f"{kind}_store")
    for name, value in served.environment.items():
        monkeypatch.setenv(name, value)
    if kind == "google":
        from apache_beam.internal.gcp import auth

        monkeypatch.setattr(auth._Credentials, "_credentials_init", True)
    stores._make_store.cache_clear()
    FileSystems.set_options(None)
    scheme = {"google": "gs", "amazon": "s3"}[kind]
    return (
        served,
        f"{scheme}://recordmill/{request.node.name.translate(str.maketrans('[]', '()'))}/",
    )


@pytest.fixture
def google(request, monkeypatch):
    return place("google", request, monkeypatch)


@pytest.fixture
def amazon(request, monkeypatch):
    return place("amazon", request, monkeypatch)


@pytest.fixture(params=["google", "amazon"])
def either(request, monkeypatch):
    return place(request.param, request, monkeypatch)
