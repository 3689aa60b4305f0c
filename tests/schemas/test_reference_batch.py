import subprocess
import sys
from dataclasses import replace

import apache_beam as beam
import orjson
from apache_beam import coders
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.typehints import Tuple
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch, ReferenceBatchCoder

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-1, 2**63 - 1)
CODER = ReferenceBatchCoder()
REFS = st.builds(
    ImageRef, key=TEXTS, uri=TEXTS, size=NUMBERS, offset=NUMBERS, length=NUMBERS, features=TEXTS
)


NOTICES = st.builds(
    ImageRef.notice, REFS, st.sampled_from(["rejected", "ignored"]), TEXTS, TEXTS, NUMBERS
)
CLASSES = st.builds(ClassNames, TEXTS, st.lists(TEXTS).map(tuple), st.lists(NUMBERS).map(tuple))


@given(st.lists(REFS | NOTICES | CLASSES))
def test_what_is_encoded_comes_back(listed):
    batch = ReferenceBatch.of(listed)
    assert len(batch) == len(listed)
    assert CODER.decode(CODER.encode(batch)) == batch


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
    ]
    assert orjson.loads(CODER.encode(batch)) == [2, columns, 0, [], 0, []]


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
