"""Every message of the product in one file, so that a change of words is read as such.

Where a sentence is meant to change, `pytest tests/golden/test_messages.py --update-goldens` writes the file again.
"""

from pathlib import Path

import product_text

MESSAGES = Path(__file__).parent / "messages.txt"


def test_messages(request):
    found = "".join(f"{text}\n" for text in sorted({" ".join(text.split()) for _, text in product_text.messages()}))
    if request.config.getoption("--update-goldens"):
        MESSAGES.write_text(found, encoding="utf-8")
    assert MESSAGES.read_text(encoding="utf-8") == found
