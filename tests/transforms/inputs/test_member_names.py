import io
import struct
import zipfile
import zlib

import pytest

from recordmill.transforms.inputs.member_names import (
    check_encoding,
    decode_name,
    decode_names,
    explain_names,
)

DOS, UNIX, MACOS = 0, 3, 19


def infos_of(*names, system=DOS, extra=b"", flagged=()):
    """The directory of a zip with these raw names, as Python reads it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number, name in enumerate([*names, *flagged]):
            text = name if isinstance(name, str) else f"{number}".rjust(len(name), "_")
            info = zipfile.ZipInfo(text)
            info.create_system, info.extra = system, extra
            archive.writestr(info, b"")
    content = stream.getvalue()
    for number, name in enumerate(names):
        content = content.replace(f"{number}".rjust(len(name), "_").encode(), name)
    return zipfile.ZipFile(io.BytesIO(content)).infolist()


def surrogates(data):
    return data.decode("ascii", "surrogateescape")


CYRILLIC, FRENCH, CHINESE = "кошка/1.jpg", "chêne/1.jpg", "猫/1.jpg"


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        (CYRILLIC, "cp866"),
        (FRENCH, "cp850"),
        (FRENCH, "cp437"),
        (FRENCH, "cp1252"),
        (CHINESE, "gbk"),
        ("狗/1.jpg", "big5"),
        ("ねこ/1.jpg", "shift_jis"),
        ("고양이/1.jpg", "euc_kr"),
        (CYRILLIC, "utf-8"),
    ],
)
def test_names_of_windows_are_read_in_the_encoding_that_is_set_and_else_unknown(name, encoding):
    data = name.encode(encoding)
    infos = infos_of(data, b"cat/1.jpg")
    assert decode_names(infos, encoding) == [name, "cat/1.jpg"]
    assert decode_names(infos) == [surrogates(data), "cat/1.jpg"]


@pytest.mark.parametrize("system", [UNIX, MACOS])
def test_names_of_unix_are_utf8(system):
    assert decode_names(infos_of(CYRILLIC.encode(), system=system)) == [CYRILLIC]


def test_a_name_that_could_be_utf8_is_not_if_another_one_is_not():
    names = [CHINESE.encode("gbk"), "狗/1.jpg".encode("gbk"), b"cat/1.jpg"]
    assert names[0].decode() == "è/1.jpg"  # by chance
    found = decode_names(infos_of(*names, system=UNIX))
    assert found == [*map(surrogates, names[:2]), "cat/1.jpg"]


def test_marked_names_are_utf8_whatever_the_setting():
    for encoding in ("", "cp866", "gbk"):
        assert decode_names(infos_of(flagged=[CYRILLIC]), encoding) == [CYRILLIC]


def unicode_path(name, raw, version=1):
    data = struct.pack("<BI", version, zlib.crc32(raw)) + name.encode()
    return struct.pack("<HHH", 0x9999, 2, 0) + struct.pack("<HH", 0x7075, len(data)) + data


def test_the_extra_field_with_a_name_in_unicode_wins_if_it_is_for_this_name():
    raw = FRENCH.encode("cp850")
    assert decode_names(infos_of(raw, extra=unicode_path(FRENCH, raw))) == [FRENCH]
    for other in (unicode_path(FRENCH, b"other"), unicode_path(FRENCH, raw, 2), b"\x75\x70\xff"):
        assert decode_names(infos_of(raw, extra=other)) == [surrogates(raw)]


def test_a_name_that_is_not_in_the_encoding_is_unknown():
    data = b"caf\x81\xff/1.jpg"
    assert decode_name(data, "shift_jis") == surrogates(data)
    assert decode_names(infos_of(data), "shift_jis") == [surrogates(data)]


@pytest.mark.parametrize("name", ["", "utf-8", "UTF8", "cp866", "cp437", "gbk", "Shift_JIS"])
def test_encodings_that_contain_ascii_are_accepted(name):
    check_encoding(name)


@pytest.mark.parametrize("name", ["utf-16", "cp037", "no such", "hex", "rot13", "a\0b"])
def test_other_encodings_are_refused(name):
    with pytest.raises(ValueError, match=r"^source\.names_encoding is .*: write an encoding that"):
        check_encoding(name)


def test_the_sentence_shows_a_name_in_likely_encodings():
    data = CYRILLIC.encode("cp866")
    shown = [f"{CYRILLIC!r} in cp866", f"{data.decode('cp850')!r} in cp850"]
    sentence = explain_names(2, surrogates(data), "")
    assert sentence.startswith(
        f"2 names are not marked as UTF-8, such as one that is {', '.join(shown)}"
    )
    assert sentence.endswith(": set source.names_encoding to the encoding in which they are right")
    assert explain_names(1, surrogates(b"\x81\xff"), "cp866").startswith("1 name is not cp866")
