import subprocess
import sys
from dataclasses import dataclass

from apache_beam import coders
from apache_beam.typehints import Dict, Tuple
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.record_coder import RecordCoder, register_record


@dataclass(frozen=True)
class Sheet:
    name: str
    number: int
    there: bool


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**63), 2**63 - 1)
SHEETS = st.builds(Sheet, TEXTS, NUMBERS, st.booleans())


@given(SHEETS)
def test_what_is_encoded_comes_back(sheet):
    coder = RecordCoder(Sheet)
    assert coder.decode(coder.encode(sheet)) == sheet


@given(st.lists(SHEETS))
def test_several_are_concatenated(sheets):
    coder = coders.ListCoder(RecordCoder(Sheet))
    assert coder.decode(coder.encode(sheets)) == sheets


def test_the_values_stand_in_the_order_of_the_fields():
    assert RecordCoder(Sheet).encode(Sheet("ab", 3, True)) == b'["ab",3,true]'


def test_equal_records_are_the_same_bytes():
    assert RecordCoder(ImageRef).is_deterministic()


def test_beam_finds_it_inside_other_types():
    register_record(Sheet)
    found = coders.registry.get_coder(Tuple[str, Sheet])
    assert found == coders.TupleCoder([coders.StrUtf8Coder(), RecordCoder(Sheet)])
    assert coders.registry.get_coder(Dict[str, Sheet]).to_type_hint() == Dict[str, Sheet]
    assert RecordCoder(Sheet) != RecordCoder(ImageRef)


def test_another_process_gets_the_class_back(tmp_path):
    ref = ImageRef("a.jpg", "/a.jpg", size=7)
    coder = coders.coders.serialize_coder(RecordCoder(ImageRef))
    script = (
        "import sys\n"
        "from apache_beam.coders.coders import deserialize_coder\n"
        f"ref = deserialize_coder({coder!r}).decode({RecordCoder(ImageRef).encode(ref)!r})\n"
        "sys.stdout.write(f'{type(ref).__module__}.{type(ref).__name__} {ref.image_bytes}')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "recordmill.schemas.image_ref.ImageRef 7", done.stderr
