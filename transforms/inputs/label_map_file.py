"""`label_map.pbtxt`: the classes of TensorFlow's Object Detection API, as protobuf's text form."""

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""\s+ | \#[^\n]* | [:;,]
    | (?P<open>[{<]) | (?P<close>[}>]) | (?P<word>[A-Za-z_][\w.]*) | (?P<number>[-+]?[0-9][\w.+-]*)
    | (?P<text>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')""",
    re.VERBOSE,
)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_CONTROLS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f"}


def parse_label_map(text: str) -> dict[int, str]:
    """Returns the names of classes by id in the text of a `StringIntLabelMap`.

    A class is called what Examples call it: its `display_name` if it has one, else its `name`.

    Raises:
        ValueError: the text is none, or an item has no id or no name, or the id of another one.
    """
    names: dict[int, str] = {}
    for item in _items(text):
        name = item.get("display_name") or item.get("name", "")
        if not name or not re.fullmatch("[0-9]{1,18}", item.get("id", "")):
            raise ValueError(f"item {len(names) + 1} has no id or no name")
        if int(item["id"]) in names:
            raise ValueError(f"two items have the id {item['id']}")
        names[int(item["id"])] = name
    if not names:
        raise ValueError("it has no item")
    return names


def _items(text: str) -> Iterator[dict[str, str]]:
    """Yields the fields of each item that are texts or numbers; deeper ones are left out."""
    depth, field, item = 0, "", dict[str, str]()
    for kind, token in _tokens(text):
        if kind == "word":
            field = token
        elif kind == "open":
            if not depth and field != "item":
                raise ValueError(f"{field or token} is not an item")
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth < 0:
                raise ValueError("a bracket is closed that is not open")
            if not depth:
                yield item
                item = {}
        elif depth == 1:
            is_text = kind == "text"
            item[field] = item.get(field, "") + _unquoted(token) if is_text else token
    if depth:
        raise ValueError("an item is not closed")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            line = text.count("\n", 0, at) + 1
            raise ValueError(f"line {line} is not protobuf's text form")
        if found.lastgroup:
            yield found.lastgroup, found[0]
        at = found.end()


def _unquoted(token: str) -> str:
    """Returns the text in quotes, whose escapes are bytes of UTF-8."""

    def replace(found: re.Match[bytes]) -> bytes:
        if found[1]:
            return bytes([int(found[1], 16)])
        if found[2]:
            return bytes([int(found[2], 8) % 256])
        return _CONTROLS.get(found[3], found[3])

    return _ESCAPE.sub(replace, token[1:-1].encode()).decode()
