"""Why an image is rejected: one exception, with a code from one table."""

import re

REASONS = {
    "empty": "the file has no bytes",
    "too_many_bytes": "the file is larger than max_bytes",
    "unknown_format": "the first bytes are those of no image format that is known here",
    "format_not_allowed": "the format is recognised, but is not among the accepted ones",
    "bad_header": "the header cannot be read, or promises something no decoder can do",
    "too_many_pixels": "the header promises more pixels than max_pixels",
    "side_too_long": "the header promises a side longer than max_side",
    "too_much_work": "the file asks for far more work than its pixels: scans, chunks, strips or comments without end",
    "truncated": "the data end before the image is complete",
    "decode_error": "the pixels cannot be decoded",
}


class BadImage(Exception):  # an outcome for the image, not an error of the program
    """An image that is rejected.

    Attributes:
        code: one of `REASONS`; stable, meant for counting.
        detail: one line for people; the same on every machine and in every run.
    """

    def __init__(self, code: str, detail: str) -> None:
        # Both go to Exception's args, so that the exception survives pickling.
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


def describe(error: BaseException) -> str:
    """One line of at most 200 characters about a decoder's error, without memory addresses."""
    text = re.sub(r" (object )?at 0x[0-9a-fA-F]+", "", str(error))
    return " ".join(f"{type(error).__name__}: {text}".split())[:200]
