import io

import pytest

from recordmill.schemas.corrections import Correction, Corrections

DIGEST = "ab" * 32


def parse(text):
    return Corrections.parse(io.StringIO(text, newline=""))


def test_lines_are_read_as_a_table_with_tabs():
    text = (
        f"key\tsha256\tclass\na/b.jpg\t{DIGEST.upper()}\tpolar bear\r\n\n"
        f'"a\tb\nc.jpg"\t{DIGEST}\t"the ""best"""\n'
    )
    assert parse(text).by_key == {
        "a/b.jpg": Correction(DIGEST, "polar bear"),
        "a\tb\nc.jpg": Correction(DIGEST, 'the "best"'),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("key,sha256,class\n", "line 1 is ('key,sha256,class',): write key, sha256, class"),
        ("key\tsha256\tclass\na\tb\n", "line 2 has 2 values: write key, sha256, class"),
        ("key\tsha256\tclass\na\tb\tc\n", "line 2 has the sha256 'b': write 64 hex digits"),
        (f"key\tsha256\tclass\na\t{DIGEST}\t\n", "line 2 has no key or no class: write both"),
        (
            f"key\tsha256\tclass\na\t{DIGEST}\tb\na\t{DIGEST}\tc\n",
            "line 3 names the key 'a' again: keep one line",
        ),
        ('key\tsha256\tclass\n"a', "line 2 cannot be read: unexpected end of data"),
    ],
)
def test_malformed_lines_are_refused(text, message):
    with pytest.raises(ValueError, match="line") as error:
        parse(text)
    assert str(error.value).startswith(message)


def test_the_digest_ignores_the_order_of_lines():
    one, two = f"a\t{DIGEST}\tcat\n", f"b\t{DIGEST}\tdog\n"
    head = "key\tsha256\tclass\n"
    assert parse(head + one + two).digest == parse(head + two + one).digest
    assert parse(head + one).digest != parse(head + two).digest


def test_a_line_is_judged_by_key_and_digest():
    corrections = parse(f"key\tsha256\tclass\na\t{DIGEST}\tcat\n")
    fates = [corrections.judge(*each) for each in (("a", DIGEST), ("a", "cd"), ("b", DIGEST))]
    assert fates == ["corrected", "stale", None]
