import errno
import os

import pytest

from recordmill.storage.output_errors import describe_output_error, explain_output_error


@pytest.mark.parametrize(
    ("code", "why"), [(errno.ENOSPC, "no space left on device"), (errno.EROFS, "read-only file system")]
)
def test_errors_that_a_user_can_fix_are_one_sentence(code, why):
    error = OSError(code, os.strerror(code))
    assert explain_output_error(error, "gs://b/out") == f"the output gs://b/out cannot be written: {why}"


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE, None])
def test_an_outage_of_a_store_is_raised_again(code):
    error = OSError(code, "down")
    with pytest.raises(OSError, match="down") as caught:
        explain_output_error(error, "gs://b/out")
    assert caught.value is error
    assert describe_output_error(error, "gs://b/out") == "the output gs://b/out cannot be written: down"


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), OSError("Rename operation failed\nwith")])
def test_whatever_this_machine_says_is_one_sentence(error):
    why = str(error.strerror or error).lower().replace("\n", " ")
    assert explain_output_error(error, "out") == f"the output out cannot be written: {why}"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (errno.EISDIR, "is a directory (out/labels.txt)"),
        (errno.ENAMETOOLONG, "file name too long (out/labels.txt)"),
        (errno.ENOTDIR, "not a directory (out/labels.txt)"),
    ],
)
def test_a_name_that_cannot_be_used_is_reported(code, why):
    sentence = f"the output out cannot be written: {why}"
    assert explain_output_error(OSError(code, os.strerror(code), "out/labels.txt"), "out") == sentence
    assert explain_output_error(OSError(code, os.strerror(code), "a.part", None, "out/labels.txt"), "out") == sentence
