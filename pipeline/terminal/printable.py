"""Makes untrusted text safe for a terminal."""


def printable(text: str) -> str:
    r"""The text with control characters, direction marks and invalid UTF-8 escaped as `\x1b`, `\u202e`, ..."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def last_line(error: Exception) -> str:
    """The end of an error's text, where runners put the reason; its class if there is no text."""
    last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
    return last if len(last) < 300 else f"{last[:300]}..."
