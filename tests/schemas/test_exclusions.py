import hashlib

import pytest

from recordmill.schemas.exclusions import Exclusions

DIGEST = "ab" * 32
LINES = [
    "# removed on request\n",
    "\n",
    "key:cat/é.jpg\r\n",
    f"sha256: {DIGEST.upper()} \n",
    "key:a:b# c\n",
    "key:a:b# c\n",
]
FOUND = Exclusions(frozenset({"cat/é.jpg", "a:b# c"}), frozenset({DIGEST}))


def test_lines_are_keys_and_digests():
    assert Exclusions.parse(LINES) == FOUND
    assert len(FOUND) == 3


def test_keys_are_in_unicodes_composed_form():
    assert Exclusions.parse(["key:cat/e\u0301.jpg"]).keys == {"cat/é.jpg"}


def test_the_digest_is_of_the_sorted_lines():
    text = f"key:a:b# c\nkey:cat/é.jpg\nsha256:{DIGEST}\n"
    assert FOUND.digest == Exclusions.parse(LINES[::-1]).digest == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "line", ["cat/é.jpg", "key:", "sha256:abc", f"sha256:{'x' * 64}", "keys:a", " key:a", "sha256"]
)
def test_a_malformed_line_is_named(line):
    with pytest.raises(ValueError, match=r"^line 2 is ") as caught:
        Exclusions.parse(["# one\n", f"{line}\n"])
    assert str(caught.value) == f"line 2 is {line.strip()!r}: write key:KEY, or sha256: and 64 hex digits"


@pytest.mark.parametrize(
    ("key", "sha256", "found"),
    [
        ("cat/é.jpg", None, ["key:cat/é.jpg"]),
        ("a:b# c", DIGEST, ["key:a:b# c", f"sha256:{DIGEST}"]),
        ("other", DIGEST, [f"sha256:{DIGEST}"]),
        ("other", "cd", []),
        ("other", None, []),
    ],
)
def test_the_lines_that_an_image_fits(key, sha256, found):
    names = tuple(hashlib.sha256(line.encode()).hexdigest()[:16] for line in found)
    assert FOUND.find(key, sha256) == names
