import re

import pytest
from make_settings import make_settings

from recordmill.schemas.settings.dataset import ExampleLayout, ShardSettings, SplitSettings
from recordmill.transforms.publishing.companions.tfds_files import (
    NotForTFDSError,
    find_template,
)


def settings(pattern=None, **changed):
    return make_settings(name="pets", shards=ShardSettings(name=pattern), **changed)


@pytest.mark.parametrize(
    ("pattern", "template"),
    [
        (None, "{SPLIT}-{SHARD_X_OF_Y}.tfrecord"),
        ("{split}-{index:05d}-of-{count:05d}", "{SPLIT}-{SHARD_X_OF_Y}"),
        (
            "{name}_{split}_{index:05d}-of-{count:05d}.tfrecord",
            "pets_{SPLIT}_{SHARD_X_OF_Y}.tfrecord",
        ),
        (
            "{name}-{split}.tfrecord-{index:05d}-of-{count:05d}",
            "pets-{SPLIT}.tfrecord-{SHARD_X_OF_Y}",
        ),
        ("{split}.{index:05d}", "{SPLIT}.{SHARD_INDEX}"),
        ("{split}_{count:05d}_{index:05d}", "{SPLIT}_{NUM_SHARDS}_{SHARD_INDEX}"),
        ("{{x}}{split}{index:05d}", "{{x}}{SPLIT}{SHARD_INDEX}"),
    ],
)
def test_a_pattern_that_counts_as_tfds_does_becomes_its_template(pattern, template):
    assert find_template(settings(pattern)) == template


def test_a_template_names_the_files_that_the_pattern_names():
    # What TFDS does with it: core/naming.py, ShardedFileTemplate.relative_filepath.
    pattern = "{{{name}}}{split}-{index:05d}-of-{count:05d}.x"
    for count in (1, 99_999, 100_001):
        digits = max(5, len(str(count)))
        for index in (0, count - 1):
            values = {"SPLIT": "test", "SHARD_X_OF_Y": f"{index:0{digits}d}-of-{count:0{digits}d}"}
            named = ExampleLayout(settings(pattern)).file_name("test", index, count, 1)
            if count < 100_000 or index == count - 1:
                assert find_template(settings(pattern)).format(**values) == named


NO_SUCH = "TFDS has no such names of files as `{}`"


@pytest.mark.parametrize(
    ("pattern", "changed", "reason"),
    [
        (
            "{split}_{number:05d}of{count:05d}",
            {},
            NO_SUCH.format("{split}_{number:05d}of{count:05d}"),
        ),
        ("{split}_{index}", {}, NO_SUCH.format("{split}_{index}")),
        ("{split}_{index:04d}", {}, NO_SUCH.format("{split}_{index:04d}")),
        ("{split}_{index:05d}_{count}", {}, NO_SUCH.format("{split}_{index:05d}_{count}")),
        ("{split}{index:05d}-{records}", {}, NO_SUCH.format("{split}{index:05d}-{records}")),
        (None, {"compression": "gzip"}, "its files are compressed (gzip)"),
        (
            None,
            {"convention": "image_tfrecord_builder"},
            "its files say `training` for the split `train`",
        ),
        (
            "{name}_{split}_{number:02d}of{count:02d}.tfrecord",
            {"convention": "image_tfrecord_builder"},
            NO_SUCH.format("{name}_{split}_{number:02d}of{count:02d}.tfrecord"),
        ),
        (
            None,
            {"splits": SplitSettings(fractions={"a.b": 1.0})},
            "TFDS cannot ask for a split called `a.b`",
        ),
        (
            None,
            {"splits": SplitSettings(fractions={"all": 1.0})},
            "TFDS cannot ask for a split called `all`",
        ),
    ],
)
def test_what_tfds_cannot_read_has_a_reason(pattern, changed, reason):
    with pytest.raises(NotForTFDSError, match=f"^{re.escape(reason)}$"):
        find_template(settings(pattern, **changed))


def test_image_tfrecord_builders_features_under_other_names_are_read():
    named = settings(
        "{split}-{index:05d}-of-{count:05d}.tfrecord", convention="image_tfrecord_builder"
    )
    assert find_template(named) == "{SPLIT}-{SHARD_X_OF_Y}.tfrecord"
