import pytest

from recordmill.annotations.kinds import RECORD_FIELDS
from recordmill.schemas.conventions import Convention, convention_names, load_convention
from recordmill.schemas.dataset.file_names import check_pattern, fill_pattern

KNOWN_FIELDS = RECORD_FIELDS.keys()
KINDS = {"bytes": bytes, "float": float, "int64": int}
every_convention = pytest.mark.parametrize("name", convention_names())


def test_conventions_are_found_by_their_files():
    assert {"default", "image_tfrecord_builder", "tutorial"} <= set(convention_names())
    assert list(convention_names()) == sorted(convention_names())
    assert "convention" not in convention_names()


@pytest.mark.parametrize("name", ["nonsense", "convention", "", "../default"])
def test_an_unknown_name_raises_and_lists_the_known(name):
    with pytest.raises(
        ValueError, match=f"there is no convention {name!r}: choose one of .*default.*tutorial"
    ):
        load_convention(name)


@every_convention
def test_every_convention_states_distinct_keys_and_defaults_of_their_kind(name):
    convention = load_convention(name)
    assert isinstance(convention, Convention)
    keys = [feature.key for feature in convention.example_features]
    assert len(set(keys)) == len(keys)
    assert keys or name == "plain"
    for feature in convention.example_features:
        assert feature.meaning
        computed = feature.field == feature.key  # by a function under `features:`
        known = computed or feature.constant is not None or feature.field in KNOWN_FIELDS
        assert known, "a misspelled field is left out silently"
        assert feature.default is None or type(feature.default) is KINDS[feature.kind]


@every_convention
def test_every_conventions_file_names_tell_splits_and_shards_apart(name):
    pattern = load_convention(name).shard_name
    check_pattern(pattern, name)
    names = {
        fill_pattern(pattern, name="n", split=split, index=index, count=12, records=7)
        for split in ("train", "test")
        for index in range(12)
    }
    assert len(names) == 24
