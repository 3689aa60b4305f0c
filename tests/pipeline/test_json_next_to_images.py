"""WebDataset's samples whose JSON holds the label: every printed command ends right."""

import io
import json
import tarfile

import pytest
from paired_inputs import photo
from printed_commands import follow, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def shard(values, images=("jpg",)):
    """A tar of four samples, each with images and JSON."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for at in range(4):
            parts = {f"{at}.{image}": photo(f"{at}{image}") for image in images}
            parts[f"{at}.json"] = json.dumps(values(at)).encode()
            for name, data in parts.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return {"train-0.tar": stream.getvalue()}


@pytest.mark.parametrize(
    ("values", "images", "classes"),
    [
        (lambda at: {"url": "a", "label": "ab"[at % 2]}, ("jpg",), [2, 0]),
        (lambda at: {"cls": at % 2 + 3, "name": "x"}, ("jpg",), [2, 1, 0]),
        (lambda at: {"score": 0.5, "tags": ["a"]}, ("jpg",), [0]),
        (
            lambda at: {"label": "ab"[at % 2]},
            ("left.jpg", "right.jpg"),
            [2, 0, 2, 0],
        ),
    ],
)
def test_each_key_that_may_be_the_label_is_offered(values, images, classes, tmp_path, run_in):
    write_files(tmp_path / "in", shard(values, images))
    assert run_in(["--input", "in"])[0] == 2
    ends = list(follow(["--input", "in"], run_in))
    assert [end.code for end in ends] == [0] * len(classes), ends
    assert [end.marker["classes"] for end in ends] == classes
    assert all(end.marker["ledger"]["written"] == 4 for end in ends)
