import hashlib
import struct

from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.digests import HASH_RANGE, hash_key, order_of


def test_the_numbers_never_change():
    # Any other value moves every user's images to other splits and shards. Computed by hand from
    # SHA-256.
    assert hash_key(0, "cat/1.jpg") == (
        8855849637602541184,
        6864573481527514897,
        6405903732665570365,
    )
    assert hash_key(0, "cat/1.jpg", "patient") == (
        8855849637602541184,
        3318077744334288380,
        6405903732665570365,
    )
    assert hash_key(7, "ü/1.jpg") == (2929654346415458198, 9000913688177624321, 4493856163632445545)


@given(st.integers(), st.text(min_size=1), st.text())
def test_they_are_three_parts_of_one_sha256(seed, key, group):
    digest = hashlib.sha256(f"{seed}\0key\0{key}".encode()).digest()
    take, split, order = struct.unpack(">3Q", digest[:24])
    hashes = hash_key(seed, key, group)
    assert (hashes.take, hashes.order) == (take, order)
    assert all(0 <= number < HASH_RANGE for number in hashes)
    if not group:
        assert hashes.split == split
    assert order_of(seed, key) == order


@given(st.integers(), st.text(), st.text(), st.text(min_size=1))
def test_a_group_has_one_split_number_whatever_its_keys(seed, key, other, group):
    assert hash_key(seed, key, group).split == hash_key(seed, other, group).split


def test_a_group_named_like_a_key_is_another_thing():
    assert hash_key(0, "a").split != hash_key(0, "b", "a").split


def test_seeds_give_other_numbers():
    assert len({hash_key(seed, "a") for seed in range(100)}) == 100


def test_the_numbers_are_independent():
    # The 200 lowest of one number, as `limit` takes them, are spread over the other two.
    hashes = sorted(hash_key(0, f"{index}") for index in range(4000))[:200]
    for part in ("split", "order"):
        below_half = sum(getattr(each, part) < HASH_RANGE // 2 for each in hashes)
        assert 70 < below_half < 130
