"""Text from anywhere, made safe for a terminal."""


def printable(text: str) -> str:
    r"""The text with control characters, direction marks and what is no UTF-8 written as `\x1b`, `\u202e`, ..."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
