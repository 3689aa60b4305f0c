import PIL
import simplejpeg
from PIL import features

import recordmill.imaging.pillow_decode as versions_module
from recordmill.imaging import find_missing_decoder, imaging_versions
from recordmill.schemas.settings.images import FORMATS


def test_everything_that_decides_on_pixels_has_a_version():
    versions = imaging_versions()
    assert versions["pillow"] == PIL.__version__
    assert versions["simplejpeg"] == simplejpeg.__version__
    assert {"pillow.libjpeg_turbo", "pillow.libtiff", "pillow.libwebp", "pillow.littlecms2"} <= set(
        versions
    )
    assert all(versions.values())


def test_the_decoders_of_optional_formats_have_a_version_where_they_are_used():
    added = imaging_versions(("JPEG", "AVIF", "JPEG2000")).items() - imaging_versions().items()
    assert dict(added) == {
        "pillow.libavif": features.version("avif"),
        "pillow.openjpeg": features.version("jpg_2000"),
    }


def test_a_missing_decoder_is_named(monkeypatch):
    monkeypatch.setattr(versions_module, "find_spec", lambda name: None)
    assert find_missing_decoder(FORMATS) is None
    assert find_missing_decoder(["AVIF", "JPEG2000"]) is None
    heic = "HEIC needs pillow-heif, which is not installed: pip install '.[heic]' in a clone"
    assert find_missing_decoder(["JPEG", "HEIC"]) == heic
    monkeypatch.setattr(versions_module.features, "check", lambda name: False)
    avif = "AVIF needs a Pillow with libavif, and the one installed lacks it"
    assert find_missing_decoder(["AVIF"]) == avif
