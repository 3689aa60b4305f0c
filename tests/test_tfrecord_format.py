"""Two modules know the TFRecord format: one its bytes, and one the names of its files.

Every other module of the product says what it wants: the next record, the end of a frame, the name
of a shard. The tests look for the format's words and numbers in code. Docstrings, comments and
sentences for people, which are the texts with white space, may explain it anywhere.
"""

import ast
import re
from collections.abc import Callable, Iterator

import product_text
import pytest

from scripts.count_code import ROOT, docstrings, modules

BYTES = "recordmill/storage/tfrecord_file.py"
NAMES = "schemas/dataset/file_names.py"

Check = Callable[[list[ast.AST]], Iterator[str]]


def texts(nodes: list[ast.AST]) -> Iterator[str]:
    """The texts in code that people do not read as sentences."""
    prose = {id(node) for node in docstrings(nodes)}
    for node in nodes:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        if is_text and id(node) not in prose:
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if not re.search(r"\s", text):
                yield text


def identifiers(nodes: list[ast.AST]) -> Iterator[str]:
    """Each name that code defines, imports or uses."""
    for node in nodes:
        for field in ("id", "attr", "arg", "name", "module"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield name


def is_number(node: ast.AST | None, *numbers: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value in numbers


def find_words(nodes: list[ast.AST]) -> Iterator[str]:
    """Names that speak of frames' parts, and the layout of a frame's first bytes."""
    for name in identifiers(nodes):
        if re.search(r"framing|crc32c|\bmasked", name, re.IGNORECASE):
            yield name
    yield from (text for text in texts(nodes) if text == "<QI")


def find_sizes(nodes: list[ast.AST]) -> Iterator[str]:
    """Sums with 16, the bytes that frames add; and sums, slices and names of 12, the bytes before
    the data."""
    for node in nodes:
        is_sum = isinstance(node, ast.BinOp | ast.AugAssign)
        if is_sum and isinstance(node.op, ast.Add | ast.Sub):
            parts = [getattr(node, part, None) for part in ("left", "right", "value")]
            if any(is_number(part, 12, 16) for part in parts):
                yield ast.unparse(node)
        is_rest = isinstance(node, ast.Slice) and is_number(node.lower, 12)
        is_named = isinstance(node, ast.Assign) and is_number(node.value, 12)
        if is_rest or is_named:
            yield ast.unparse(node)


def find_names(nodes: list[ast.AST]) -> Iterator[str]:
    """Parts of file names: the suffix, and a shard's place among the others."""
    for text in texts(nodes):
        if text == "tfrecord" or re.search(r"\.tf_?rec|-of-|\\d\+-\?of", text, re.IGNORECASE):
            yield text


def find(check: Check, room: str, exceptions: dict[str, str]) -> dict[str, list[str]]:
    """What a check finds outside a room, by module; each exception must be needed."""
    found = {}
    for path in modules():
        name = str(path.relative_to(ROOT))
        if name != room:
            found[name] = [*check(product_text.nodes_of(path))]
    assert [name for name in exceptions if not found.pop(name)] == []
    return {name: places for name, places in found.items() if places}


def test_one_module_knows_the_sizes_of_frames():
    exceptions = {
        "recordmill/imaging/acceptance.py": "a chunk of PNG has 12 bytes besides its data",
        "recordmill/imaging/depth.py": "pixels have up to 16 bits",
        "recordmill/imaging/heif_depth.py": "the header of a box of HEIF",
        "recordmill/imaging/low_bytes.py": "the header of PNG",
        "recordmill/imaging/strip_metadata.py": "chunks of PNG, and APP15 of JPEG",
    }
    assert find(find_sizes, BYTES, exceptions) == {}


def test_one_module_knows_the_checksums_of_frames():
    exceptions = {"recordmill/imaging/pixels.py": "digests of pixels are made of CRC-32C, too"}
    assert find(find_words, BYTES, exceptions) == {}


def test_one_module_knows_the_names_of_shards():
    exceptions = {
        "schemas/dataset/tfds_shards.py": "what TFDS calls the format and a shard's place"
    }
    assert find(find_names, NAMES, exceptions) == {}


@pytest.mark.parametrize(
    ("check", "code"),
    [
        (find_words, "from crc32c import crc32c"),
        (find_words, "from recordmill.storage.tfrecord_file import FRAMING_BYTES"),
        (find_words, "_HEADER = Struct('<QI')"),
        (find_sizes, "end = offset + length + 16"),
        (find_sizes, "size -= 16"),
        (find_sizes, "begin = 12 + offset"),
        (find_sizes, "record = frame[12:-4]"),
        (find_sizes, "_DATA_AT = 12"),
        (find_names, "path.endswith('.tfrecord')"),
        (find_names, "name = f'{split}-{index:05d}-of-{count:05d}'"),
        (find_names, "path = shard_path(staging, split, index, 'tfrecord')"),
    ],
)
def test_the_format_is_found_in_code(check, code):
    assert [*check([*ast.walk(ast.parse(code))])]


@pytest.mark.parametrize("check", [find_words, find_sizes, find_names])
@pytest.mark.parametrize(
    "code",
    [
        '"""Reads `a.tfrecord`: 16 bytes of framing."""',
        'raise ValueError("name a file such as a-00000-of-00002.tfrecord")',
        "digest = hashed[:16]",
        "most = 2**16",
        "source = {'kind': 'tfrecords'}",
    ],
)
def test_other_code_is_not_mistaken_for_the_format(check, code):
    assert not [*check([*ast.walk(ast.parse(code))])]
