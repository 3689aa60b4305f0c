"""The role of a file in a collection of images, from its name and from its first bytes.

Pure functions. Only files that no source claims need a role: images are known by their names.
"""

import re
from codecs import BOM_UTF8
from dataclasses import dataclass
from typing import Literal

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
]

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

IMAGE_SUFFIXES = frozenset(
    _WORD.findall(
        "avif bmp dib gif heic heif j2c j2k jfif jp2 jpc jpe jpeg jpf jpg jpx mpo pbm pgm png pnm "
        "ppm tif tiff webp "
        "3fr arw cr2 cr3 crw dng erf fff iiq kdc mef mos mrw nef nrw orf pef raf raw rw2 rwl sr2 "
        "srf srw x3f"
    )
)
"""The extensions of pictures and raw photographs, whether or not they can be converted."""

_BY_SUFFIX: dict[Role, str] = {
    "annotations": "xml json geojson manifest yaml yml pbtxt names labels cls lbl bbox boxes seg "
    "rle gt pts land lm ann anno srt vtt data dot toml eaf",
    "list": "lst list",
    "table": "csv tsv jsonl ndjson parquet xlsx xls xlsm ods arrow feather avro orc sql",
    "array": "mat npy npz pkl pickle h5 hdf5 hdf db db3 sqlite sqlite3 joblib pt pth mdb lmdb rec "
    "tfrecord tfrecords tfrec record msgpack rds rdata ckpt safetensors nc zarr",
    "archive": "zip tar tgz gz bz2 tbz2 xz 7z rar zst",
    "second image": "exr pfm hdr nii dcm dicom psd svg tga sgi ico flo ply pcd las laz obj stl",
    "description": "md markdown mdx rst adoc pdf html htm doc docx odt rtf ppt pptx tex bib cff "
    "py pyi pyc pyx ipynb sh bash zsh bat cmd ps1 m r rmd jl c cc cpp cxx h hpp cu java js ts css "
    "scss go rs lua pl rb php swift kt cs scala log md5 sha1 sha256 sha512 crc asc sig url webloc "
    "lnk torrent lock dockerfile mk cmake in",
}
_ROLE_OF_SUFFIX: dict[str, Role] = {
    suffix: role for role, suffixes in _BY_SUFFIX.items() for suffix in suffixes.split()
}

_TEXT_SUFFIXES = frozenset(("", "txt", "text"))
_DESCRIBED_BY = re.compile(
    r"(?:.*[^a-z])?(?:read[ _-]?(?:me|it)|licen[cs]es?|eula|copying|copyright|citations?|cite)"
    r"(?:[^a-z].*)?"
    r"|(?:notice|authors?|contributors?|contributing|credits?|attributions?|acknowledge?ments?|"
    r"thanks|change[ _-]?log|changes|history|news|todo|faq|install|disclaimer|about|info|"
    r"terms(?:[ _-].*)?|terms[ _-]?of[ _-]?use|privacy|version|security|support|"
    r"code[ _-]of[ _-]conduct|data[ _-]?(?:sheet|card)|dataset[ _-]?(?:card|description)|"
    r"data[ _-]description|description|sources?|urls?|links?|download(?:ed)?[ _-]?(?:from|links?)?|"
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


def suffix_of(path: str) -> str:
    """The extension of a file's name, in lower case and without its dot; empty for others.

    A name that begins with its only dot has none, nor one whose last part is long or not plain.
    """
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    if not dot or not stem or len(suffix) > 10 or not suffix.isalnum():
        return ""
    return suffix.lower()


def is_image_name(path: str) -> bool:
    """Whether a file is named like a picture."""
    return path.rpartition(".")[2].lower() in IMAGE_SUFFIXES


def is_description_name(path: str) -> bool:
    """Whether a file is named like a text about the collection, such as a license."""
    name, suffix = path.rpartition("/")[2].lower(), suffix_of(path)
    if name in _DESCRIPTIONS or _ROLE_OF_SUFFIX.get(suffix) == "description":
        return True
    # `README.roboflow.txt`, but not `license.csv`.
    stem = name.removesuffix(f".{suffix}") if suffix in _TEXT_SUFFIXES and suffix else name
    is_text = suffix in _TEXT_SUFFIXES or suffix not in _ROLE_OF_SUFFIX | dict.fromkeys(
        IMAGE_SUFFIXES
    )
    return is_text and _DESCRIBED_BY.fullmatch(stem) is not None


def role_of_name(path: str) -> FileRole | None:
    """The role that a file's name gives it; None if its first bytes must decide.

    The bytes of a text with a name such as `about.txt` may still show that it is a list.
    """
    if is_image_name(path):
        return FileRole("image")
    suffix = suffix_of(path)
    if is_description_name(path):
        return None if suffix in _TEXT_SUFFIXES else FileRole("description")
    role = _ROLE_OF_SUFFIX.get(suffix)
    return FileRole(role) if role else None


_SIGNS: tuple[tuple[bytes, FileRole], ...] = (
    (b"\xff\xd8\xff", FileRole("image")),
    (b"\x89PNG\r\n", FileRole("image")),
    (b"GIF8", FileRole("image")),
    (b"BM", FileRole("image")),
    (b"II*\0", FileRole("image")),
    (b"MM\0*", FileRole("image")),
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
"""What files begin with."""

_NUMBER = r"[-+]?[0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?"
_BOX_LINE = re.compile(rf"[0-9]+(?:\.0*)?(?:[ \t]+{_NUMBER}){{4,}}", re.IGNORECASE)
_DATA_LINE = re.compile(r"(?=[^0-9]*[0-9])[\w./\\-]+(?:[ \t,;:|]+[-+\w./\\]+){0,3}")
_CHECKSUM_LINE = re.compile(r"[0-9a-f]{32,}[ \t*].*|(?:MD5|SHA[0-9]+) ?\(.*", re.IGNORECASE)
_FEWEST_LINES = 3
"""The fewest lines of names or numbers that show a list."""

_NAME_LINE = re.compile(
    rf"[^\n]*\.(?:{'|'.join(sorted(IMAGE_SUFFIXES))})(?:[\s,;:|][^\n]*)?", re.IGNORECASE
)


def role_of_head(head: bytes, path: str = "") -> FileRole:
    """The role that a file's first bytes give it.

    Args:
        head: at most `HEAD_BYTES` of it.
        path: the file, whose name decides about text that is neither a list nor annotations.
    """
    for sign, role in _SIGNS:
        if head.startswith(sign):
            return role
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return FileRole("image")
    if head[4:8] == b"ftyp" and head[8:12] in (b"avif", b"heic", b"heix", b"mif1"):
        return FileRole("image")
    by_name = FileRole("description" if is_description_name(path) else "other")
    try:
        # The last character may have been cut.
        text = (
            head.removeprefix(BOM_UTF8).decode()
            if len(head) < HEAD_BYTES
            else head.decode(errors="ignore")
        )
    except UnicodeDecodeError:
        return by_name
    if "\0" in text:
        return by_name
    return _role_of_text(text.lstrip("\ufeff"), is_whole=len(head) < HEAD_BYTES) or by_name


def _role_of_text(text: str, is_whole: bool) -> FileRole | None:
    """The role of a text that is recognized; None for prose and the like."""
    begin = text.lstrip()[:1]
    if begin == "<":
        is_page = re.match(r"\s*<(?:!doctype html|html)", text, re.IGNORECASE)
        return FileRole("description") if is_page else FileRole("annotations", _title_of_xml(text))
    if begin in ("{", "[") and begin:
        return FileRole("annotations", _title_of_json(text))
    lines = [line.strip() for line in text.splitlines()]
    if not is_whole and len(lines) > 1:
        lines.pop()
    lines = [line for line in lines if line]
    if not lines or any(_CHECKSUM_LINE.fullmatch(line) for line in lines):
        return None
    most = 0.6 * len(lines)
    if sum(_BOX_LINE.fullmatch(line) is not None for line in lines) >= most:
        return FileRole("annotations", YOLO_TEXT)
    if sum(_NAME_LINE.fullmatch(line) is not None for line in lines) >= most:
        return FileRole("list", "names of images")
    data = sum(_DATA_LINE.fullmatch(line) is not None for line in lines)
    if len(lines) >= _FEWEST_LINES and data >= 0.9 * len(lines):
        return FileRole("list", "lines of names or numbers")
    return None


KNOWN_TITLES = frozenset(
    ("CVAT's XML", "Pascal VOC's XML", "VIA's JSON", "LabelMe's JSON", "COCO's JSON")
)
"""The formats that the first bytes of a file show."""

YOLO_TEXT = "boxes as in YOLO"
"""The format of YOLO's text files."""

TITLES = {"coco": "COCO's JSON", "labelme": "LabelMe's JSON", "voc": "Pascal VOC's XML"}
"""The formats that sources read, by the sources' names."""


def title_of(path: str, head: bytes) -> str:
    """The format of a file of annotations, from its first bytes; empty if it is not known."""
    text = head.decode(errors="ignore").lstrip("\ufeff")
    if suffix_of(path) == "xml":
        return _title_of_xml(text)
    if suffix_of(path) in ("json", "geojson"):
        return _title_of_json(text)
    return ""


def _title_of_xml(text: str) -> str:
    if "<annotations" in text:
        return "CVAT's XML"
    if "<annotation" in text:
        return "Pascal VOC's XML"
    return "XML"


def _title_of_json(text: str) -> str:
    for signs, title in (
        (('"_via_', '"via_settings"', '"regions"', '"shape_attributes"'), "VIA's JSON"),
        (('"shapes"',), "LabelMe's JSON"),
        (('"bbox"', '"image_id"', '"categories"', '"file_name"', '"images"'), "COCO's JSON"),
    ):
        if any(sign in text for sign in signs):
            return title
    return "JSON"
