"""The role of a file in a collection of images, from its name and from its first bytes.

Pure functions. Only files that no source claims need a role: images are known by their names.
"""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass
from typing import Literal

from recordmill.imaging.acceptance import sniff, sniff_raw
from recordmill.schemas.dataset.file_names import SHARD_SUFFIXES
from recordmill.transforms.inputs.image_suffixes import PICTURE_SUFFIXES, is_image_name
from recordmill.transforms.inputs.prose import is_prose

Role = Literal[
    "image",
    "mask",
    "second image",
    "annotations",
    "list",
    "table",
    "array",
    "archive",
    "other",
    "description",
    "unlabeled",
    "unsplit",
]
"""What a file is to its collection; `unlabeled` is an image without a label among others, `unsplit`
an annotation file with words for splits that are not used."""

HEAD_BYTES = 1024
"""The first bytes of a file that decide its role."""

CARRIERS: dict[Role, str] = {
    "mask": "masks",
    "second image": "second images",
    "annotations": "annotations",
    "list": "lists of images or labels",
    "table": "tables",
    "array": "arrays",
    "archive": "archives",
    "other": "files of an unknown kind",
}
"""The roles of files that may carry labels, boxes, masks, splits or a second image; in words."""

_WORD = re.compile(r"\S+")

_VIDEOS = ("mp4", "avi", "mov", "mkv", "webm", "wmv", "flv", "mpg", "mpeg", "m4v", "3gp")
_TITLES = {**dict.fromkeys(_VIDEOS, "video"), "svg": "drawing in SVG"}
"""What files with some extensions are called in messages."""

_BY_SUFFIX: dict[Role, str] = {
    "other": " ".join((*_VIDEOS, "svg")),
    "annotations": "xml json geojson manifest yaml yml pbtxt names labels cls lbl bbox boxes seg "
    "rle gt pts land lm ann anno srt vtt data dot toml eaf",
    "list": "lst list",
    "table": "csv tsv jsonl ndjson parquet xlsx xls xlsm ods arrow feather avro orc sql",
    "array": "mat npy npz pkl pickle h5 hdf5 hdf db db3 sqlite sqlite3 joblib pt pth mdb lmdb rec "
    f"{' '.join(SHARD_SUFFIXES)} msgpack rds rdata ckpt safetensors nc zarr",
    "archive": "zip tar tgz gz bz2 tbz2 xz 7z rar zst",
    "second image": "exr pfm hdr nii dcm dicom psd tga sgi ico flo ply pcd las laz obj stl",
    "description": "md markdown mdx rst adoc pdf html htm doc docx odt rtf ppt pptx tex bib cff "
    "py pyi pyc pyx ipynb sh bash zsh bat cmd ps1 m r rmd jl c cc cpp cxx h hpp cu java js ts css "
    "scss go rs lua pl rb php swift kt cs scala log md5 sha1 sha256 sha512 crc asc sig url webloc "
    "lnk torrent lock dockerfile mk cmake in xmp aae thm pp3 dop",
}
_ROLE_OF_SUFFIX: dict[str | None, Role] = {
    suffix: role for role, suffixes in _BY_SUFFIX.items() for suffix in suffixes.split()
}

_TEXT_SUFFIXES = frozenset((None, "txt", "text"))
_DESCRIBED_BY = re.compile(
    r"(?:.*[^a-z])?(?:read[ _-]?(?:me|it)|licen[cs]es?|eula|copying|copyright|citations?|cite)"
    r"(?:[^a-z].*)?"
    r"|(?:notice|authors?|contributors?|contributing|credits?|attributions?|acknowledge?ments?|"
    r"thanks|change[ _-]?log|changes|history|news|todo|faq|install|disclaimer|about|info|"
    r"terms(?:[ _-].*)?|terms[ _-]?of[ _-]?use|privacy|version|security|support|"
    r"code[ _-]of[ _-]conduct|data[ _-]?(?:sheet|card)|dataset[ _-]?(?:card|description)|"
    r"data[ _-]description|description|(?:.*[ _-])?logs?|sources?|urls?|links?|"
    r"download(?:ed)?[ _-]?(?:from|links?)?|"
    r"requirements(?:[ _.-].*)?|constraints|environment|robots|makefile|cmakelists|"
    r"(?:md5|sha1|sha256|sha512)(?:sums?)?|checksums?|manifest\.in)"
)
"""The names, without their extension and in lower case, of texts that describe a collection."""

_DESCRIPTIONS = frozenset(
    _WORD.findall(
        "_success dockerfile makefile procfile gemfile rakefile pipfile pipfile.lock package.json "
        "package-lock.json tsconfig.json pyproject.toml setup.cfg setup.py tox.ini mkdocs.yml "
        "mkdocs.yaml environment.yml environment.yaml docker-compose.yml docker-compose.yaml "
        "codemeta.json zenodo.json datapackage.json dataset-metadata.json croissant.json "
        "dataset_infos.json dataset_info.json conda.yml conda.yaml codecov.yml dvc.yaml "
        "params.yaml kernel-metadata.json poetry.lock uv.lock license.xml"
    )
)
"""Further names, in lower case, of files that describe a collection or belong to its code."""


@dataclass(frozen=True, slots=True, order=True)
class FileRole:
    """The role of a file.

    Attributes:
        role: what the file is to its collection.
        title: the format, as users know it: `CVAT's XML`; empty if it is not known.
    """

    role: Role
    title: str = ""

    @property
    def may_carry(self) -> bool:
        """Whether the file may carry labels, boxes, masks, splits or a second image."""
        return self.role in CARRIERS


def suffix_of(path: str) -> str | None:
    """Returns the extension of a file's name, in lower case and without its dot; None for others.

    A name that begins with its only dot has none, nor one whose last part is long or not plain.
    """
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    if not dot or not stem or len(suffix) > 10 or not suffix.isalnum():
        return None
    return suffix.lower()


def is_description_name(path: str) -> bool:
    """Returns whether a file is named like a text about the collection, such as a license."""
    name, suffix = path.rpartition("/")[2].lower(), suffix_of(path)
    if name in _DESCRIPTIONS or _ROLE_OF_SUFFIX.get(suffix) == "description":
        return True
    # `README.roboflow.txt`, but not `license.csv`.
    stem = name.removesuffix(f".{suffix}") if suffix in _TEXT_SUFFIXES and suffix else name
    is_text = suffix in _TEXT_SUFFIXES or not (suffix in _ROLE_OF_SUFFIX or is_image_name(path))
    return is_text and _DESCRIBED_BY.fullmatch(stem) is not None


def role_of_name(path: str) -> FileRole | None:
    """Returns the role that a file's name gives it; None if its first bytes must decide.

    The bytes of a text with a name such as `about.txt` may still show that it is a list.
    """
    if is_image_name(path):
        return FileRole("image")
    suffix = suffix_of(path)
    if is_description_name(path):
        return None if suffix in _TEXT_SUFFIXES else FileRole("description")
    if suffix is None or suffix not in _ROLE_OF_SUFFIX:
        return None
    return FileRole(_ROLE_OF_SUFFIX[suffix], _TITLES.get(suffix, ""))


def is_other_name(path: str) -> bool:
    """Tells if a file's extension is that of a text, a table or the like, not of an image."""
    suffix = suffix_of(path)
    if suffix in _TEXT_SUFFIXES:
        return suffix is not None
    role = _ROLE_OF_SUFFIX.get(suffix)
    return role not in (None, "image", "second image", "other") and suffix != "data"


_SIGNS: tuple[tuple[bytes, FileRole], ...] = (
    (b"\x89HDF\r\n", FileRole("array", "HDF5")),
    (b"MATLAB 5.0", FileRole("array", "MATLAB")),
    (b"\x93NUMPY", FileRole("array", "numpy")),
    (b"SQLite format 3", FileRole("array", "SQLite")),
    (b"PK\x03\x04", FileRole("archive", "zip")),
    (b"\x1f\x8b", FileRole("archive", "gzip")),
    (b"BZh", FileRole("archive", "bzip2")),
    (b"\xfd7zXZ", FileRole("archive", "xz")),
    (b"7z\xbc\xaf", FileRole("archive", "7-Zip")),
    (b"Rar!", FileRole("archive", "RAR")),
    (b"PAR1", FileRole("table", "Parquet")),
    (b"%PDF", FileRole("description")),
    *((bytes((0x80, number)), FileRole("array", "pickle")) for number in range(2, 6)),
)
"""The first bytes of files that are not images."""

_NUMBER = r"[-+]?[0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?"
_BOX_LINE = re.compile(rf"[0-9]+(?:\.0*)?(?:[ \t]+{_NUMBER}){{4,}}", re.IGNORECASE)
_DATA_LINE = re.compile(r"(?=[^0-9]*[0-9])[\w./\\-]+(?:[ \t,;:|]+[-+\w./\\]+){0,3}")
_CHECKSUM_LINE = re.compile(r"[0-9a-f]{32,}[ \t*].*|(?:MD5|SHA[0-9]+) ?\(.*", re.IGNORECASE)
_FEWEST_LINES = 3
"""The fewest lines of names or numbers that show a list."""

_PLAIN_MAP = re.compile(r"P[123]\s+(?:#[^\n]*\n\s*)*[0-9]+\s+[0-9]+\s")
"""The header of a PBM, PGM or PPM whose pixels are written as text."""

_SECTION = re.compile(r"\s*\[\w[\w .-]*\][ \t]*(?:\r?\n|$)(?!\s*,)")
"""The first line of an INI file."""

_NAME_LINE = re.compile(
    rf"[^\n]*\.(?:{'|'.join(sorted(PICTURE_SUFFIXES))})(?:[\s,;:|][^\n]*)?", re.IGNORECASE
)


def role_of_head(head: bytes, path: str = "", most: int = HEAD_BYTES) -> FileRole:
    """Returns the role that a file's first bytes give it.

    Args:
        head: the bytes.
        path: the file, whose name decides about text of no known form.
        most: how many bytes were asked for.
    """
    is_whole = len(head) < most
    text = _text_of(head, is_whole)
    for sign, role in _SIGNS:
        if head.startswith(sign):
            return role
    if text is None:
        is_image = sniff(head) or sniff_raw(head)
        return FileRole("image") if is_image else _role_of_unknown(path)
    return _role_of_text(text, is_whole) or _role_of_unknown(path)


def _role_of_unknown(path: str) -> FileRole:
    return FileRole("description" if is_description_name(path) else "other")


def _text_of(head: bytes, is_whole: bool) -> str | None:
    """Returns the text that a file begins with; None if it is none."""
    encoding = "utf-16" if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    try:  # the last character may have been cut
        text = head.decode(encoding, "strict" if is_whole else "ignore")
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    return text


def _role_of_markup(text: str) -> FileRole:
    """Returns the role of HTML or XML."""
    if re.match(r"\s*<(?:!doctype html|html)", text, re.IGNORECASE):
        return FileRole("description")
    return FileRole("annotations", _title_of_xml(text))


def _role_of_text(text: str, is_whole: bool) -> FileRole | None:
    """Returns the role of a text that is recognized; None for others."""
    begin = text.lstrip()[:1]
    if _SECTION.match(text):
        return FileRole("annotations", "INI")
    if begin == "<":
        return _role_of_markup(text)
    if begin in ("{", "[") and begin:
        return FileRole("annotations", _title_of_json(text))
    if _PLAIN_MAP.match(text):
        return FileRole("image")
    lines = text.splitlines()
    if not is_whole and len(lines) > 1:
        lines.pop()
    lines = [line.strip() for line in lines]
    full = [line for line in lines if line]
    if not full or any(_CHECKSUM_LINE.fullmatch(line) for line in full):
        return None
    most = 0.6 * len(full)
    if sum(_BOX_LINE.fullmatch(line) is not None for line in full) >= most:
        return FileRole("annotations", YOLO_TEXT)
    if sum(_NAME_LINE.fullmatch(line) is not None for line in full) >= most:
        return FileRole("list", "names of images")
    data = sum(_DATA_LINE.fullmatch(line) is not None for line in full)
    if len(full) >= _FEWEST_LINES and data >= 0.9 * len(full):
        return FileRole("list", "lines of names or numbers")
    return FileRole("description", PROSE) if is_prose(lines) else None


JSON_MIN = "Label Studio's JSON-MIN, and its JSON is read"
"""What a short export of Label Studio is called, which lacks the types of regions."""

KNOWN_TITLES = frozenset(
    (
        *("CVAT's XML", "Pascal VOC's XML", "VIA's JSON", "LabelMe's JSON", "COCO's JSON"),
        *("Label Studio's JSON", JSON_MIN),
    )
)
"""The formats that the first bytes of a file show."""

PROSE = "prose"
"""What a text of sentences is called, which describes a collection or a single image."""

YOLO_TEXT = "boxes as in YOLO"
"""The format of YOLO's text files."""

TITLES = {
    "coco": "COCO's JSON",
    "coco_panoptic": "COCO's JSON",
    "cvat": "CVAT's XML",
    "label_studio": "Label Studio's JSON",
    "labelme": "LabelMe's JSON",
    "voc": "Pascal VOC's XML",
}
"""The formats that sources read, by the sources' names."""


def title_of(path: str, head: bytes) -> str | None:
    """Returns the format of a file of annotations, from its first bytes; None if it is unknown."""
    text = head.decode(errors="ignore").lstrip("\ufeff")
    if suffix_of(path) == "xml":
        return _title_of_xml(text)
    if suffix_of(path) in ("json", "geojson"):
        return _title_of_json(text)
    return None


def _title_of_xml(text: str) -> str:
    if "<annotations" in text:
        return "CVAT's XML"
    if "<annotation" in text:
        return "Pascal VOC's XML"
    return "XML"


SEGMENT_ANYTHING = "Segment Anything's JSON"
"""The format of files that hold the masks of one image each."""

_OF_ONE_IMAGE = re.compile(r'\s*\{\s*"image"\s*:\s*\{')


def _title_of_json(text: str) -> str:
    if _OF_ONE_IMAGE.match(text):
        return SEGMENT_ANYTHING
    for signs, title in (
        (('"_via_', '"via_settings"', '"regions"', '"shape_attributes"'), "VIA's JSON"),
        (('"annotator"', '"annotation_id"'), JSON_MIN),
        (('"original_width"', '"from_name"', '"completed_by"'), "Label Studio's JSON"),
        (('"shapes"',), "LabelMe's JSON"),
        (('"bbox"', '"image_id"', '"categories"', '"file_name"', '"images"'), "COCO's JSON"),
    ):
        if any(sign in text for sign in signs):
            return title
    return "JSON"
