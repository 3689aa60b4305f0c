"""What is Google's own; what all stores do is in test_store.py."""

import pytest

pytest.importorskip("apache_beam.io.gcp.gcsio", reason="no apache-beam[gcp] here: make test-stores")

from google.api_core.exceptions import Forbidden, RetryError, ServiceUnavailable
from google.auth.exceptions import RefreshError

from recordmill.storage.stores.google_store import _os_errors


@pytest.mark.parametrize(
    ("error", "kind"),
    [(Forbidden("no"), PermissionError), (RefreshError("no login"), PermissionError)],
)
def test_denied_is_denied(error, kind):
    with pytest.raises(kind) as caught, _os_errors("gs://b/a"):
        raise error
    assert (caught.value.filename, caught.value.__cause__) == ("gs://b/a", error)


@pytest.mark.parametrize("error", [ServiceUnavailable("later"), RetryError("gave up", None)])
def test_an_outage_is_reported(error):
    with pytest.raises(OSError, match=r"later|gave up") as caught, _os_errors("gs://b/a"):
        raise error
    assert type(caught.value) is OSError


def test_connections_are_kept_for_all_readers(google):
    from recordmill.storage.stores.find_store import find_store
    from recordmill.storage.stores.store import CONNECTIONS

    _, folder = google
    session = find_store(folder)._client._http
    for address in ("https://storage.googleapis.com", "http://localhost"):
        assert session.get_adapter(address)._pool_maxsize == CONNECTIONS
