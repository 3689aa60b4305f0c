"""The server of the page: four routes on this machine, for one browser.

The address that the command prints has a random token, which works once: the browser gets a cookie
for it. Every other request must have the cookie, and the host's own name and origin, so that no
other page, program of another user or rebound name can ask. No request names a file.
"""

import hmac
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson

from recordmill.schemas.dataset.json_values import MisfitError, from_json
from recordmill.schemas.errors import RecordmillError
from recordmill.schemas.formatting import load_template
from recordmill.schemas.rejection import Rejected
from recordmill.viewing.marks import MarkRequest
from recordmill.viewing.pictures import draw_icon
from recordmill.viewing.viewer import Viewer

HOST = "127.0.0.1"

MOST_BODY = 2**23
"""The longest request to mark images: of a million, the page sends the selection instead."""

MOST_QUERY = 16_384
"""The longest query of a request."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_FORBIDDEN = (
    "This address works once. Open the one that recordmill view printed in the browser that you "
    "want to use, or start the command again.\n"
)


def make_policy(nonce: str) -> str:
    """Returns the Content-Security-Policy of the page."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """What a request is answered with.

    Attributes:
        status: the HTTP status.
        media_type: of the content.
        content: the bytes.
        headers: further headers.
    """

    status: HTTPStatus
    media_type: str
    content: bytes
    headers: Mapping[str, str]


def answer_json(value: object, status: HTTPStatus = HTTPStatus.OK) -> ServedAnswer:
    """Returns an answer with JSON."""
    return ServedAnswer(status, "application/json", orjson.dumps(value), {})


def answer_text(text: str, status: HTTPStatus) -> ServedAnswer:
    """Returns an answer with one line for people."""
    return ServedAnswer(status, "text/plain; charset=utf-8", text.encode(), {})


class BadRequestError(Exception):
    """A request is not one that the page makes."""


class ViewServer(ThreadingHTTPServer):
    """Serves one dataset on this machine.

    Attributes:
        viewer: answers questions about the dataset.
    """

    daemon_threads = True

    def __init__(self, viewer: Viewer, port: int = 0) -> None:
        """Starts to listen; `serve_forever` answers.

        Args:
            viewer: answers questions about the dataset.
            port: where to listen; 0 for any free port.

        Raises:
            OSError: the port is in use.
        """
        super().__init__((HOST, port), _Handler)
        self.viewer = viewer
        self._token: str | None = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        # Cookies are not separated by ports: another viewer has one of another name.
        self.cookie_name = f"recordmill_{self.server_port}"

    @property
    def address(self) -> str:
        """The address that the first browser opens."""
        return f"http://{HOST}:{self.server_port}/?token={self._token}"

    def exchange(self, token: str) -> str | None:
        """Returns the cookie for a token, once; None for a wrong or used one."""
        if self._token is None or not hmac.compare_digest(token, self._token):
            return None
        self._token = None
        return f"{self.cookie_name}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"

    def knows(self, cookies: str) -> bool:
        """Returns whether the header of cookies has the right one."""
        try:
            found = SimpleCookie(cookies).get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value, self._cookie)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports a fault in one line; browsers that close a connection early are none."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            sys.stderr.write(f"error: a request failed ({error!r}): please report it\n")


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: ViewServer
    body: bytes = b""
    protocol_version = "HTTP/1.1"
    server_version = "recordmill"
    sys_version = ""
    timeout = 60
    routes: ClassVar[Mapping[str, str]] = {
        "/": "_page",
        "/rows": "_rows",
        "/picture": "_picture",
        "/marks": "_marks",
    }

    def do_GET(self) -> None:
        """Answers a request to read."""
        self._send(self._answer(self.routes))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Answers a request to mark images."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BODY:
            self.close_connection = True
            self._send(answer_text("The request is too long.\n", HTTPStatus.BAD_REQUEST))
            return
        self.body = self.rfile.read(int(length))
        self._send(self._answer({"/marks": "_mark"}))

    def _answer(self, routes: Mapping[str, str]) -> ServedAnswer:
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query[:MOST_QUERY]).items()}
        if self.headers.get("Host") not in self.server.hosts:
            return answer_text("This page is for this machine alone.\n", HTTPStatus.FORBIDDEN)
        origin = self.headers.get("Origin")
        own = {f"http://{host}" for host in self.server.hosts}
        if origin not in own and (origin is not None or self.command == "POST"):
            return answer_text("This page is for itself alone.\n", HTTPStatus.FORBIDDEN)
        if url.path == "/" and "token" in query:
            return self._exchange(query)
        if not self.server.knows(self.headers.get("Cookie", "")):
            return answer_text(_FORBIDDEN, HTTPStatus.FORBIDDEN)
        if url.path not in routes:
            return answer_text("There is no such page.\n", HTTPStatus.NOT_FOUND)
        answer: Callable[[Mapping[str, str]], ServedAnswer] = getattr(self, routes[url.path])
        return _answer_errors(answer, query)

    def _exchange(self, query: Mapping[str, str]) -> ServedAnswer:
        """Gives the browser its cookie, and lets it open the page without the token.

        A redirection would count as a part of the request from another site, such as a notebook
        that shows the address, and would not send the cookie.
        """
        rest = urlencode({name: value for name, value in query.items() if name != "token"})
        cookie = self.server.exchange(query["token"])
        headers = {"Content-Security-Policy": "default-src 'none'"}
        if cookie is not None:
            headers["Set-Cookie"] = cookie
        elif not self.server.knows(self.headers.get("Cookie", "")):
            return answer_text(_FORBIDDEN, HTTPStatus.FORBIDDEN)
        page = load_template(__package__, "page/open.html.jinja").render(query=rest)
        return ServedAnswer(HTTPStatus.OK, "text/html; charset=utf-8", page.encode(), headers)

    def _page(self, query: Mapping[str, str]) -> ServedAnswer:
        nonce = secrets.token_urlsafe(16)
        files = resources.files(__package__) / "page"
        page = load_template(__package__, "page/view.html.jinja").render(
            nonce=nonce,
            title=self.server.viewer.viewed.title,
            style=(files / "view.css").read_text("utf-8"),
            script=(files / "view.js").read_text("utf-8"),
        )
        headers = {"Content-Security-Policy": make_policy(nonce)}
        return ServedAnswer(HTTPStatus.OK, "text/html; charset=utf-8", page.encode(), headers)

    def _rows(self, query: Mapping[str, str]) -> ServedAnswer:
        viewer, part = self.server.viewer, query.get("part")
        if part == "about":
            return answer_json(viewer.about())
        if part == "image":
            return answer_json(viewer.show_image(_number(query, "image")))
        if part == "findings":
            return answer_json(viewer.findings())
        if part == "sizes":
            return answer_json(viewer.object_sizes(query.get("class", "")))
        if part == "images":
            first, count = _number(query, "first"), _number(query, "count")
            found = viewer.list_images(query.get("q", ""), query.get("sort", ""), first, count)
            return answer_json(found)
        raise BadRequestError

    def _picture(self, query: Mapping[str, str]) -> ServedAnswer:
        if "icon" in query:
            return ServedAnswer(HTTPStatus.OK, "image/png", draw_icon().data, {})
        viewer = self.server.viewer
        if "reason" in query:
            picture = viewer.rejected_picture(query["reason"], _number(query, "place"))
            return ServedAnswer(HTTPStatus.OK, picture.media_type, picture.data, {})
        number = _number(query, "image")
        if "source" in query:
            picture = viewer.source_picture(number)
        elif "large" in query:
            picture = viewer.large_picture(number)
        else:
            picture = viewer.small_picture(number)
        # Pictures do not change while the server runs.
        headers = {"Cache-Control": "private, max-age=3600"}
        return ServedAnswer(HTTPStatus.OK, picture.media_type, picture.data, headers)

    def _marks(self, query: Mapping[str, str]) -> ServedAnswer:
        return answer_json(self.server.viewer.marks())

    def _mark(self, query: Mapping[str, str]) -> ServedAnswer:
        try:
            request = from_json(MarkRequest, orjson.loads(self.body))
        except (MisfitError, orjson.JSONDecodeError):
            raise BadRequestError from None
        return answer_json(self.server.viewer.mark(request))

    def _send(self, answer: ServedAnswer) -> None:
        self.send_response(answer.status)
        sent = {
            **_HEADERS,
            "Content-Type": answer.media_type,
            "Content-Length": str(len(answer.content)),
            **answer.headers,
        }
        for name, value in sent.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: requests do not matter to people at a terminal."""


def _answer_errors(
    answer: Callable[[Mapping[str, str]], ServedAnswer], query: Mapping[str, str]
) -> ServedAnswer:
    """Answers a request, or says in one sentence why not."""
    try:
        return answer(query)
    except BadRequestError:
        return answer_json({"error": "the request is malformed"}, HTTPStatus.BAD_REQUEST)
    except RecordmillError as error:
        return answer_json({"error": str(error)}, HTTPStatus.BAD_REQUEST)
    except Rejected as rejected:
        message = f"{rejected.reason.replace('_', ' ')}: {rejected.detail}"
        return answer_json({"error": message}, HTTPStatus.UNPROCESSABLE_ENTITY)
    except OSError as error:
        message = f"{error.filename or 'a file'} cannot be read: {error.strerror or error}"
        return answer_json({"error": message}, HTTPStatus.SERVICE_UNAVAILABLE)


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise BadRequestError
    return int(text)
