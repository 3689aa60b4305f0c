"""A store in memory that counts the requests that a run would make to it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from recordmill.storage.stores.store import Store
from recordmill.storage.stores.versioned_object import VersionedObject

PAGE = 1000
"""Names in an answer to a request for names."""


class CountingStore(Store):
    """Objects by their URLs.

    Attributes:
        objects: the objects.
        requests: how many were made, by kind.
    """

    starts_anywhere = True

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        self.objects = dict(sorted(objects.items()))
        self.requests: Counter[str] = Counter()

    def read(self, uri: str, offset: int, length: int) -> bytes:
        self.requests["read"] += 1
        if uri not in self.objects:
            raise FileNotFoundError(uri)
        end = None if length < 0 else offset + length
        return self.objects[uri][offset:end]

    def describe(self, uri: str) -> VersionedObject | None:
        self.requests["describe"] += 1
        return self._describe(uri) if uri in self.objects else None

    def list_below(self, prefix: str, start: str = "") -> Iterator[VersionedObject]:
        for at, uri in enumerate(self._below(prefix + start)):
            if at % PAGE == 0:
                self.requests["list"] += 1
            yield self._describe(uri)

    def names(self, prefix: str) -> Iterator[str]:
        self.requests["names"] += 1
        parts = [uri[len(prefix) :].partition("/") for uri in self._below(prefix)]
        for at, name in enumerate(sorted({name + slash for name, slash, _ in parts})):
            if at and at % PAGE == 0:
                self.requests["names"] += 1
            yield name

    def open_to_write(self, uri: str) -> BinaryIO:
        raise NotImplementedError

    def delete(self, uris: list[str]) -> None:
        raise NotImplementedError

    def _below(self, prefix: str) -> list[str]:
        return [uri for uri in self.objects if uri.startswith(prefix)]

    def _describe(self, uri: str) -> VersionedObject:
        return VersionedObject(uri, len(self.objects[uri]), 1.0, "etag:1")
