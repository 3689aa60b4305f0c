import subprocess
import sys
from dataclasses import replace

import apache_beam as beam
import orjson
import pytest
from apache_beam import coders
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.typehints import Tuple
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.digests import digest_of, hash_key, order_of, version_digest_of
from recordmill.schemas.image_ref import ClassNames, ImageRef, Notice, SourceFile
from recordmill.schemas.reference_batch import (
    ReferenceBatch,
    ReferenceBatchCoder,
    ShardBatch,
    ShardBatchCoder,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-1, 2**63 - 1)
CODER = ReferenceBatchCoder()
SHARD_CODER = ShardBatchCoder()
ANNOTATIONS = st.dictionaries(st.sampled_from(["boxes", "labels", "x"]), st.binary()).map(
    lambda packed: tuple(sorted(packed.items()))
)
REFS = st.builds(
    ImageRef,
    key=TEXTS,
    uri=TEXTS,
    size=NUMBERS,
    offset=NUMBERS,
    length=NUMBERS,
    features=TEXTS,
    annotations=ANNOTATIONS,
    files=st.lists(
        st.builds(SourceFile, TEXTS, TEXTS, NUMBERS, TEXTS, NUMBERS, NUMBERS, TEXTS), max_size=2
    ).map(tuple),
)


NOTICES = st.builds(
    ImageRef.notice, REFS, st.sampled_from(["rejected", "ignored"]), TEXTS, TEXTS, NUMBERS
)
REJECTED = st.builds(ImageRef.notice, REFS, st.just("rejected"), TEXTS, TEXTS)
CLASSES = st.builds(
    ClassNames,
    TEXTS,
    st.lists(TEXTS).map(tuple),
    st.lists(NUMBERS).map(tuple),
    st.lists(st.tuples(TEXTS, TEXTS)).map(tuple),
)


def hashed(batch):
    return replace(batch, hashes=batch.hash_with(7))


def contents(batch):
    """What a shard's batch holds, in whatever order."""
    return sorted(zip(batch.orders, map(repr, batch.refs), strict=True)), (
        batch.digest,
        batch.versions,
    )


@given(st.lists(REFS | NOTICES | CLASSES))
def test_a_batch_survives_encoding(listed):
    batch = ReferenceBatch.of(listed)
    assert len(batch) == len(listed)
    assert CODER.decode(CODER.encode(batch)) == batch
    assert CODER.decode(CODER.encode(hashed(batch))) == hashed(batch)


@given(st.lists(REFS | REJECTED))
def test_a_batch_of_a_shard_that_is_encoded_comes_back_with_images_first(refs):
    batch = ShardBatch.of(refs, 7)
    decoded = SHARD_CODER.decode(SHARD_CODER.encode(batch))
    assert contents(decoded) == contents(batch)
    assert [isinstance(ref, Notice) for ref in decoded.refs] == sorted(
        isinstance(ref, Notice) for ref in refs
    )
    assert [*decoded.orders] == [order_of(7, ref.key) for ref in decoded.refs]


@given(st.lists(REFS | REJECTED), st.integers(0, 9))
def test_batches_of_a_shard_are_joined_to_the_same_in_any_way(refs, at):
    parts = [ShardBatch.of(refs[at:], 7), ShardBatch.of(refs[:at], 7)]
    assert contents(ShardBatch.join(parts)) == contents(ShardBatch.of(refs, 7))


@given(st.lists(REFS | REJECTED | CLASSES))
def test_hashes_are_those_of_what_is_counted_and_are_computed_once(listed):
    batch = hashed(ReferenceBatch.of(listed))
    assert [*batch.hashes.iterate_keys()] == [
        hash_key(7, ref.key, ref.group) for ref in batch.counted
    ]
    assert [*batch.hashes.iterate_digests()] == [*map(digest_of, batch.counted)]
    assert [*batch.hashes.iterate_versions()] == [*map(version_digest_of, batch.counted)]
    assert batch.hash_with(7) is batch.hashes


def test_a_reference_takes_88_bytes_more_for_its_hashes_and_8_in_the_shuffle():
    refs = [ImageRef(f"{number}.jpg", "/data/0.jpg", 17) for number in range(100, 1_100)]
    plain = ReferenceBatch(refs)
    size = len(CODER.encode(plain))
    assert len(CODER.encode(hashed(plain))) < size + 88 * len(refs) + 100
    assert len(SHARD_CODER.encode(ShardBatch.of(refs, 0))) < size + 8 * len(refs) + 100


def test_what_all_references_have_in_common_is_written_once():
    ref = ImageRef("a.bin#0", "/data/a.bin", size=6146, version="17", length=3073)
    batch = ReferenceBatch([ref, replace(ref, key="a.bin#1", offset=3073)])
    texts = [[""] for _ in range(7)]
    columns = [
        ["a.bin#0", "a.bin#1"],
        ["/data/a.bin"],
        [6146],
        ["17"],
        [0, 3073],
        [3073],
        *texts,
        [False],
        [[]],
        [[]],
    ]
    encoded = CODER.encode(batch)
    assert int.from_bytes(encoded[:4]) == len(encoded) - 4
    assert orjson.loads(encoded[4:]) == [2, columns, 0, [], 0, [], [0]]


def test_beam_carries_it_inside_other_types():
    found = coders.registry.get_coder(Tuple[str, ReferenceBatch])
    assert found == coders.TupleCoder([coders.StrUtf8Coder(), ReferenceBatchCoder()])
    batches = [ReferenceBatch([ImageRef(f"{n}.jpg", "/x")] * n) for n in range(4)]
    with beam.Pipeline(runner=FnApiRunner()) as root:
        grouped = root | beam.Create([("a", batch) for batch in batches]) | beam.GroupByKey()
        counts = grouped | beam.MapTuple(
            lambda name, found: (name, sorted(len(batch.refs) for batch in found))
        )
        assert_that(counts, equal_to([("a", [0, 1, 2, 3])]))


def test_its_size_is_guessed_without_encoding():
    coder = ReferenceBatchCoder()
    assert coder.get_impl().estimate_size(ReferenceBatch([ImageRef("a", "/a")] * 5)) == 500
    assert coder.is_deterministic()


@pytest.mark.slow
def test_another_process_gets_the_class_back(tmp_path):
    ref = ImageRef("a.jpg", "/a.jpg", size=7)
    coder = coders.coders.serialize_coder(coders.registry.get_coder(ImageRef))
    encoded = coders.registry.get_coder(ImageRef).encode(ref)
    script = (
        "import sys\n"
        "from apache_beam.coders.coders import deserialize_coder\n"
        f"ref = deserialize_coder({coder!r}).decode({encoded!r})\n"
        "sys.stdout.write(f'{type(ref).__module__}.{type(ref).__name__} {ref.image_bytes}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "recordmill.schemas.image_ref.ImageRef 7", done.stderr
