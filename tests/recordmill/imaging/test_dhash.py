import io

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.imaging.geometry import hash_differences, hash_reduction

HASHED = ImageSettings(near_duplicates=True)


def raster(cells):
    """A gray picture of these 8 rows of 9 cells, each of 4 pixels."""
    return np.repeat(np.repeat(np.array(cells, np.uint8), 2, 0), 2, 1)[..., None]


def test_a_bit_says_that_a_cell_is_darker_than_its_right_neighbor():
    rising, falling, flat = range(10, 100, 10), range(90, 0, -10), [7] * 9
    assert hash_differences(raster([rising] * 8)) == 2**64 - 1
    assert hash_differences(raster([falling] * 8)) == 0
    assert hash_differences(raster([flat] * 8)) == 0
    first, last = [0, 9, *[9] * 7], [9, *[9] * 6, 0, 9]
    assert hash_differences(raster([first, *[flat] * 6, last])) == 1 << 63 | 1


def test_color_counts_by_its_brightness():
    gray = raster([range(0, 90, 10)] * 8)
    colored = np.concatenate([gray, gray, gray, np.full_like(gray, 255)], axis=2)
    assert hash_differences(colored) == hash_differences(gray) == 2**64 - 1
    # A byte without meaning.
    colored[..., 3] = np.random.default_rng(0).integers(0, 256, colored.shape[:2])
    assert hash_differences(colored) == 2**64 - 1


@pytest.mark.parametrize(
    ("size", "reduction"),
    [((32, 32), 1), ((143, 500), 1), ((144, 128), 2), ((500, 375), 4), ((4000, 3000), 8)],
)
def test_at_least_four_pixels_a_side_are_left_to_each_cell(size, reduction):
    assert hash_reduction(size) == reduction


def hash_of(data, settings=HASHED):
    return prepare_image(data, settings).difference_hash


def test_it_is_taken_only_where_it_is_asked_for(jpeg):
    assert hash_of(jpeg, ImageSettings()) is None
    assert isinstance(hash_of(jpeg), int)
    untouched = prepare_image(jpeg, ImageSettings())
    hashed = prepare_image(jpeg, HASHED)
    assert (hashed.encoded, hashed.changes, hashed.moments) == (untouched.encoded, (), None)


@pytest.mark.parametrize("reencode", ["when_needed", "always", "never"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_every_way_through_takes_it(photo, save, kind, reencode):
    hashed = hash_of(save(photo, kind), ImageSettings(near_duplicates=True, reencode=reencode))
    assert (hashed ^ hash_of(save(photo, "PNG"))).bit_count() <= 5


@pytest.mark.parametrize(
    "settings", [{}, {"store": "png"}, {"reencode": "always"}, {"reencode": "never"}]
)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("keep_pixels", [False, True])
def test_it_is_the_same_without_encoding(photo, save, kind, settings, keep_pixels):
    settings, data = ImageSettings(near_duplicates=True, **settings), save(photo, kind)
    whole = prepare_image(data, settings, keep_pixels)
    hashed = prepare_image(data, settings, keep_pixels, encode=False)
    assert hashed.difference_hash == whole.difference_hash
    assert hashed.encoded == (b"" if "reencoded" in whole.changes else data)
    assert (hashed.format, hashed.height, hashed.changes) == (
        whole.format,
        whole.height,
        whole.changes,
    )


def variants(photo):
    width, height = photo.size
    return {
        "quality": ("JPEG", photo, {"quality": 30}),
        "half": ("JPEG", photo.resize((width // 2, height // 2)), {"quality": 90}),
        "brighter": ("JPEG", ImageEnhance.Brightness(photo).enhance(1.2), {"quality": 90}),
        "png": ("PNG", photo, {}),
    }


def test_copies_of_photographs_are_near_and_strangers_are_far(shared_data):
    hashes = []
    near = far = 0
    for path in sorted((shared_data / "imagenet-flat").iterdir())[:12]:
        photo = Image.open(path).convert("RGB")
        hashes.append(hash_of(path.read_bytes()))
        for kind, image, options in variants(photo).values():
            stream = io.BytesIO()
            image.save(stream, kind, **options)
            distance = (hash_of(stream.getvalue()) ^ hashes[-1]).bit_count()
            near, far = near + (distance <= 5), far + (distance > 5)
    assert near / (near + far) >= 0.97
    assert (
        min((one ^ other).bit_count() for at, one in enumerate(hashes) for other in hashes[:at]) > 5
    )
