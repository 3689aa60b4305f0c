from make_settings import make_settings

from recordmill.pipeline.configuration.config import load_settings
from recordmill.schemas.errors import Outcome
from recordmill.transforms.publishing.acted_settings import add_acted, count_acted


def test_on_how_many_images_settings_acted():
    settings = load_settings(
        None,
        [
            "images={quality: 50, reencode: when_needed, resize: {exact: [8, 8], fit: pad}, background: [1, 2, 3]}",
            "limit=9",
            "duplicates=drop",
        ],
    ).settings
    assert count_acted(settings, {"reencoded": 3, "resized": 2}, {"duplicate": 4}) == {
        "images.quality": 3,
        "images.background": 2,
        "images.resize": 2,
        "limit": 0,
        "duplicates": 4,
    }
    assert count_acted(make_settings(), {}, {}) == {}


def test_a_finished_dataset_says_what_acted_on_nothing():
    settings = load_settings(None, ["images={quality: 50, reencode: when_needed}", "limit=9"]).settings
    numbers = {"unit": "image", "ledger": {"written": 301, "left_out": {"limit": 5}}, "changes": {}}
    noted = add_acted(Outcome("kept", "", 0, numbers=numbers, notes=("a",)), settings)
    assert noted.notes == ("a", "images.quality acted on 0 of 301 images")
    assert noted.numbers == {**numbers, "acted": {"images.quality": 0, "limit": 5}}
    failed = Outcome("failed", "", 1)
    assert add_acted(failed, settings) is failed
    plain = Outcome("published", "", 0, numbers=numbers)
    assert add_acted(plain, make_settings()) is plain
