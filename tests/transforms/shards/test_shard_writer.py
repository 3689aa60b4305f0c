from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.digests import order_of
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.transforms.shards.shard_writer import find_duplicate_key


def ordered(refs):
    return ShardBatch.of(refs, 0).sort().refs


@given(st.permutations([ImageRef(f"{n % 4}", "", offset=n // 4) for n in range(12)]))
def test_the_order_does_not_depend_on_the_listing(refs):
    expected = sorted(refs, key=lambda ref: (order_of(3, ref.key), ref.offset))
    assert ShardBatch.of(refs, 3).sort().refs == expected


REMEDY = "rename one, or give inputs names"


def test_two_references_with_one_key_are_found_and_named():
    refs = [ImageRef("a", "/x/a"), ImageRef("b", "/x/b"), ImageRef("a", "/y/a")]
    expected = f"two images have the key 'a': /x/a and /y/a; {REMEDY}"
    assert find_duplicate_key(ordered(refs), "image") == expected
    assert find_duplicate_key(ordered(refs), "row") == expected.replace("images", "rows")
    assert find_duplicate_key(ordered(refs[:2]), "image") is None


def test_names_that_look_the_same_are_distinguished():
    refs = [
        ImageRef("M\u00f6bel/4.jpg", f"/x/{name}/4.jpg") for name in ("M\u00f6bel", "Mo\u0308bel")
    ]
    places = "'/x/M\\xf6bel/4.jpg' and '/x/Mo\\u0308bel/4.jpg'"
    assert (
        find_duplicate_key(refs, "image")
        == f"two images have the key 'M\u00f6bel/4.jpg': {places}; {REMEDY}"
    )


def test_ranges_of_one_file_with_one_key_are_duplicates():
    inside = find_duplicate_key(
        [ImageRef("a", "/x/a", offset=0), ImageRef("a", "/x/a", offset=9)], "row"
    )
    by = "by two rows, files or inputs: remove one, or give each row a key of its own"
    by += "; the settings ignore and include leave out a file"
    assert inside == f"the row 'a' is listed twice (/x/a), {by}"
    twice = find_duplicate_key([ImageRef("a", "/x/a"), ImageRef("a", "/x/a")], "file")
    assert twice == f"the file 'a' is listed twice (/x/a), {by}"
    apart = [ImageRef("a/0", "/x/a", offset=0), ImageRef("a/1", "/x/a", offset=9)]
    assert find_duplicate_key(apart, "image") is None
