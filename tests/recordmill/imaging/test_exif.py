import pytest
from PIL import Image

from recordmill.imaging.exif import find_orientation, has_position, orientation_only


def exif_of(tags, gps=None, order="<"):
    exif = Image.Exif()
    exif.endian = order
    for tag, value in tags.items():
        exif[tag] = value
    if gps is not None:
        exif.get_ifd(0x8825).update(gps)
    return exif.tobytes()


@pytest.mark.parametrize("order", "<>")
def test_the_orientation_is_read(order):
    assert find_orientation(exif_of({0x0112: 6, 0x010F: "maker"}, order=order), b"") == 6
    assert find_orientation(exif_of({0x010F: "maker"}, order=order), b"") == 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_shortest_exif_is_read_by_pillow_and_by_us(orientation):
    exif = Image.Exif()
    exif.load(b"Exif\0\0" + orientation_only(orientation))
    assert dict(exif) == {0x0112: orientation}
    assert find_orientation(orientation_only(orientation), b"") == orientation
    assert not has_position(orientation_only(orientation))


POSITION = {1: "N", 2: (48.0, 8.0, 0.0), 3: "E", 4: (11.0, 34.0, 0.0)}


def test_a_latitude_is_a_position():
    assert has_position(exif_of({0x010F: "maker"}, POSITION))
    assert has_position(exif_of({}, {2: (48.0, 8.0, 0.0)}))


def test_the_version_of_a_directory_alone_is_not_a_position():
    assert not has_position(exif_of({}, {0: b"\2\3\0\0"}))
    assert not has_position(exif_of({0x010F: "%\x88 \x88%"}))
    assert not has_position(b"")


def test_a_damaged_directory_counts_as_a_position():
    damaged = exif_of({}, POSITION)
    assert has_position(damaged[: damaged.index(b"\x25\x88") + 12])


def test_xmp_with_a_latitude_is_a_position():
    assert has_position(b'<rdf:Description exif:GPSLatitude="48,8.5N"/>')


@pytest.mark.parametrize(
    "data", [b"", b"II*\0", b"MM\0*\xff\xff\xff\xff", b"Exif\0\0", b"II*\0\x08\0\0\0"]
)
def test_data_without_a_directory_have_nothing(data):
    assert find_orientation(data, b"") == 1
    assert not has_position(data)
