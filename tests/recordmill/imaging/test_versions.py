import PIL
import simplejpeg

from recordmill.imaging import imaging_versions


def test_everything_that_decides_on_pixels_has_a_version():
    versions = imaging_versions()
    assert versions["pillow"] == PIL.__version__
    assert versions["simplejpeg"] == simplejpeg.__version__
    assert {"pillow.libjpeg_turbo", "pillow.libtiff", "pillow.libwebp", "pillow.littlecms2"} <= set(versions)
    assert all(versions.values())
