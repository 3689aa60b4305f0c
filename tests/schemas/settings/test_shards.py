import re

import pytest

from recordmill.schemas.settings.dataset import ShardSettings


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("128MiB", 2**27),
        ("1.5 GB", 1_500_000_000),
        ("100kb", 100_000),
        ("7B", 7),
        ("128b", 128),
        ("4096 KB", 4_096_000),
        ("1KiB", 1024),
        (" 2 B ", 2),
    ],
)
def test_sizes_are_read_with_their_units(size, expected):
    assert ShardSettings(size=size).target_bytes == expected


@pytest.mark.parametrize(
    "size", ["", "12 parsecs", "MiB", "-1MB", "1e6", "0", "0.1B", "\uff11MB", "128", 128, 4096, 0]
)
def test_an_invalid_size_raises_and_names_the_key(size):
    with pytest.raises(ValueError, match=re.escape(f"shards.size is {size!r}: ")):
        ShardSettings(size=size)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: ShardSettings(name="{split}-{shard}"),
            "shards.name '{split}-{shard}' is not a valid pattern ('shard'): it may",
        ),
        (
            lambda: ShardSettings(name="a/{split}-{index}"),
            "shards.name 'a/{split}-{index}' gives the name 'a/s-0'",
        ),
    ],
)
def test_impossible_settings_raise_and_name_their_key(build, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        build()
