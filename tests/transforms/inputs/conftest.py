import io
import tarfile
import zipfile

import pytest


@pytest.fixture
def make_tar():
    """The bytes of a tar archive of files (names to contents), or of headers to be written as they
    stand."""

    def make(files, mode="w", form=tarfile.PAX_FORMAT, headers=()):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode=mode, format=form) as tar:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            for info in headers:
                tar.addfile(info, io.BytesIO(bytes(info.size)) if info.isreg() else None)
        return stream.getvalue()

    return make


@pytest.fixture
def make_zip():
    """The bytes of a zip archive of files: names, or `ZipInfo`s, to contents."""

    def make(files, method=zipfile.ZIP_DEFLATED):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", method) as archive:
            for name, data in files.items():
                archive.writestr(name, data, method)
        return stream.getvalue()

    return make
