"""Why something listed is not in the dataset, and the exception that says so.

`Rejected` is the one exception for items of the input that cannot be stored. `Exclusions` has the
images that the file named by `exclude` leaves out.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Self
from unicodedata import normalize

Stage = Literal["list", "read", "decode", "encode"]

Fate = Literal["rejected", "ignored", "left_out"]
"""What happens to things that are listed and not written."""

REASONS: dict[Stage, dict[str, str]] = {
    "list": {
        "bad_name": "the file's name is not UTF-8",
        "vanished": "a link has no target, or the file was deleted while its folder was being "
        "listed",
        "unreadable": "the file's size and time cannot be read",
        "not_a_file": "it is a folder, a device, a socket or a pipe",
        "no_split": "it is in none of the folders in `splits.from_folders`, or its source gives it "
        "a split that is "
        "not in `splits.from_source`",
        "no_class": "it is not in a class folder",
        "no_image": "it describes boxes or is a semantic mask, and there is no image of its name",
        "no_mask_file": "there is no semantic mask at `source.masks`, or no masks of its objects",
        "name_mismatch": "its name does not match `source.pattern` or `source.pairs_of`, or its "
        "path neither `source.images` nor `source.masks`",
        "bad_annotations": "the file with its annotations cannot be read, is malformed, or is "
        "missing",
        "refused_shape": "one of its annotations is not a rectangle, and `source.other_shapes` is "
        "`reject`",
        "bad_row": "its row of a table or manifest is malformed, or a value in it is missing or of "
        "another type",
        "no_rows": "the table has no rows",
        "outside_root": "the source names a file outside the input, or outside `source.root`",
        "bad_archive": "the archive, or the rest of it, cannot be read",
        "bad_member": "it is a link, a device or the like in an archive, or its name, size or "
        "compression is not "
        "allowed",
        "bad_sample": "the files next to an image in its archive have no label or feature, or "
        "there is no image",
        "bad_record": "a record of a TFRecord file does not match its checksum",
        "bad_tfrecord": "a TFRecord file is damaged, was cut or is empty, and an unknown number of "
        "its records is lost",
        "missing_shard": "a file of a set is missing, by the numbers in the others' names, "
        "`recordmill.json` or `dataset_info.json`",
        "bad_example": "a record is not an Example of the convention in `source.convention`",
        "bad_coco": "a file of COCO's annotations cannot be read as such",
        "bad_array": "the file is not an array of 8-bit images: its header cannot be read, or "
        "describes other data",
        "bad_labels": "the number of labels differs from the number of images, or the file of "
        "labels cannot be read",
        "bad_packing": "the compressed file cannot be unpacked",
        "wrong_length": "the file's size does not match its content: it was truncated, or has "
        "another layout",
        "no_group": "its key does not match `splits.group`",
    },
    "read": {
        "too_many_bytes": "the file is larger than `images.max_bytes`",
        "vanished": "it was deleted between listing and reading",
        "changed": "its size changed between listing and reading",
        "unreadable": "it cannot be read",
        "bad_packing": "the compressed file that contains it cannot be unpacked",
        "bad_row": "its row of a manifest has no bytes",
        "bad_example": "the image in an Example is not as the convention defines it",
        "wrong_sha256": "the SHA-256 of its bytes is not the one that the source gives",
    },
    "decode": {
        "empty": "the file is empty",
        "too_many_bytes": "the file is larger than `images.max_bytes`",
        "unknown_format": "the first bytes are not those of a known image format",
        "format_not_allowed": "the format is recognized, but is not among the accepted ones",
        "bad_header": "the header cannot be read, or describes an image that no decoder supports",
        "raw_photograph": "it is a raw photograph of a camera, or its first page is a reduced "
        "picture of one that cannot be decoded: develop it to TIFF, PNG or JPEG first",
        "too_many_pixels": "the header announces more pixels than `images.max_pixels`",
        "side_too_long": "the header announces a side longer than `images.max_side`",
        "too_much_work": "decoding the file takes far more work than its pixels justify: too many "
        "scans, chunks, "
        "strips or comments",
        "truncated": "the data ends before the image is complete",
        "value_too_large": "a value has more bits than `images.bits` says",
        "decode_error": "the pixels cannot be decoded",
    },
    "encode": {
        "unknown_label": "its label is not in `labels.classes` (and `labels.catch_all` is unset), "
        "or `labels.ids` is "
        "`integers` and it is not an integer",
        "function": "a function that the settings name raised `recordmill.Reject`; `detail` gives "
        "its reason",
        "bad_boxes": "one of its boxes is invalid, and `boxes.invalid` is `reject`",
        "size_mismatch": "its boxes were drawn on an image of another size",
        "bad_mask": "the file of its semantic mask cannot be read or decoded",
        "mask_size": "its semantic mask has another size",
        "no_mask_file": "the file of its semantic mask does not exist",
        "bad_second_image": "the file of its second image in `source.pairs` cannot be read or "
        "decoded",
        "no_second_image": "the file of its second image in `source.pairs` does not exist",
        "unknown_mask_value": "its semantic mask has a value that is not the id of a class",
    },
}
"""Every reason for which an image is rejected, by the stage that finds it."""


ACCEPTED_BY: Mapping[str, str] = {
    "bad_boxes": "--set boxes.invalid=drop",
    "format_not_allowed": "--set images.formats=[JPEG,PNG,...]",
    "side_too_long": "--set images.max_side=PIXELS",
    "too_many_bytes": "--set images.max_bytes=BYTES",
    "too_many_pixels": "--set images.max_pixels=PIXELS",
    "unknown_label": "--set labels.ids=names",
    "value_too_large": "--set images.bits=BITS",
}
"""The flag that would accept what is rejected for a reason; damaged files have none."""


IGNORED: Mapping[str, str] = {
    "class_names": "it names the classes",
    "description": "it describes the collection, or belongs to its code",
    "hidden": "its name begins with a dot",
    "ignored": "it matches a pattern of `ignore`",
    "known_sibling": "downloads of the format contain it, and nothing of it is stored",
    "labels": "it contains the labels of the images",
    "no_images": "no annotation in it is of an image",
    "no_records": "the TFRecord file is complete, and has no records",
    "no_rows": "the manifest has no rows",
    "not_annotations": "its name does not match `source.split`, so it is not read as annotations",
    "in_no_set": "none of the lists in `source.sets` names it",
    "not_an_image": "its name is not that of an image, and the source reads images only",
    "not_included": "it matches none of the patterns in `include`, or its name is not one that the "
    "source reads",
    "read_only_with_images": "it is not an image, and no image was read with it",
    "system_file": "it was created by an operating system, a file server or a tool for developers",
    "taken_only_by_name": "it is not an image, and no manifest or annotation names it",
    "second_image": "it matches a pattern of `source.pairs`, and no image goes with it",
    "without_annotation": "it is an image that no manifest and no annotation in use names",
}
"""Every reason for which a file is ignored."""

NOT_KEPT: Mapping[str, str] = {
    "too_blurred": "its sharpness is less than `keep.min_sharpness`",
    "too_dark": "its brightness is less than `keep.min_brightness`",
    "too_long": "its longer side is more than `keep.max_aspect` times as long as the other",
    "too_small": "its shorter side is less than `keep.min_side`",
    "unwanted": "`keep.function` returned false",
}
"""Every reason for which `keep` leaves an image out."""

WHILE_CONVERTED: Mapping[str, str] = {
    **NOT_KEPT,
    "excluded": "the file in `exclude` has its key or its digest, or those of its mask file",
    "renamed_away": "`labels.rename` drops its class",
}
"""Every reason for which something is left out while it is converted."""

LEFT_OUT: Mapping[str, str] = {
    **WHILE_CONVERTED,
    "duplicate": "it has the same bytes as another one, and `duplicates` is `drop`",
    "fraction": "`splits.fractions` add up to less than 1, and it is in the remainder",
    "limit": "there are more than `limit`",
    "limit_per_class": "its class has more than `limit_per_class`",
}
"""Every reason for which something that could be converted is left out."""


WITHOUT_AN_IMAGE = frozenset({"no_image", "not_a_file", "outside_root", "vanished"})
"""The reasons for which the listing rejects annotations because their image is missing."""

OF_CONTAINERS = frozenset(
    {
        *("bad_archive", "bad_array", "bad_coco", "bad_labels", "bad_packing", "bad_tfrecord"),
        *("missing_shard", "wrong_length"),
    }
)
"""The reasons for which the listing rejects a file of many images, or an unknown part of one.

Such a file never counts as one image: `max_rejected.containers` limits them.
"""

OF_WHOLE_FILES = frozenset({*OF_CONTAINERS, "no_rows"} - {"bad_packing"})
"""The reasons for which a file of many images is rejected, whether it is listed or read."""

TRANSIENT = frozenset({"changed", "no_mask_file", "no_second_image", "unreadable", "vanished"})
"""Reasons that may be gone in the next run, though a file's size and time have not changed: its
shard is made again."""


def explain_reason(fate: Fate, code: str) -> str | None:
    """Returns what a reason means, at any stage; None if it is not a reason of this fate."""
    if fate == "rejected":
        meanings = [codes[code] for codes in REASONS.values() if code in codes]
        return "; or ".join(dict.fromkeys(meanings)) or None
    return (IGNORED if fate == "ignored" else LEFT_OUT).get(code)


class Rejected(Exception):  # it is an outcome, not an error of the program
    """Something in the input that cannot become a record.

    Attributes:
        stage: the stage that found it, one of `REASONS`.
        reason: one of the stage's reasons; a stable code, for counting.
        detail: one line for people; the same on every machine and in every run.
        sha256: hex digest of the bytes read; empty if none were.
    """

    def __init__(self, stage: Stage, reason: str, detail: str, sha256: str = "") -> None:
        if reason not in REASONS[stage]:
            raise ValueError(
                f"{reason!r} is not a reason of the stage {stage}: add it to REASONS, with its "
                "meaning"
            )
        super().__init__(stage, reason, detail, sha256)  # all arguments, so that it can be pickled
        self.stage = stage
        self.reason = reason
        self.detail = detail
        self.sha256 = sha256

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


class LeftOut(Rejected):
    """An image that the settings leave out while it is converted.

    Its reason is one of `WHILE_CONVERTED`.
    """

    def __init__(self, reason: str, detail: str) -> None:
        Exception.__init__(self, reason, detail)
        self.stage: Stage = "encode"
        self.reason, self.detail, self.sha256 = reason, detail, ""


class Reject(Exception):  # as for Rejected
    """The exception by which a function that settings name rejects the image that it was given.

    Raise it in the function: `raise Reject("no face")`.

    Example:
        def prepare(image):
            if image.mean() < 5:
                raise recordmill.Reject("the image is black")
            return image
    """


def describe_error(error: BaseException) -> str:
    """Returns one line of at most 200 characters about a library's error, without addresses."""
    text = re.sub(r" (object )?at 0x[0-9a-fA-F]+", "", str(error))
    return " ".join(f"{type(error).__name__}: {text}".split())[:200]


def _key_in_json(line: str) -> str | None:
    """Returns the key in a line of `rejected.jsonl`; None if it is another line."""
    if not line.startswith("{"):
        return None
    try:
        row = json.loads(line)
    except ValueError:
        return None
    key = row.get("key")
    if isinstance(key, str):
        return key
    return None


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Keys and digests of images that are left out.

    Attributes:
        keys: their keys.
        digests: SHA-256 of their sources, in hex.
    """

    keys: frozenset[str] = frozenset()
    digests: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Self:
        """Returns the keys and digests in the lines of a file.

        Empty lines and those that begin with `#` are comments. Lines of `rejected.jsonl` give their
        keys.

        Raises:
            ValueError: a line is malformed; the message says which, and what to write.
        """
        found: dict[str, set[str]] = {"key": set(), "sha256": set()}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            if key := _key_in_json(line):
                found["key"].add(normalize("NFC", key))
                continue
            kind, _, text = line.rstrip("\r\n").partition(":")
            if kind == "sha256":
                text = text.strip().lower()
            if (
                not text
                or kind not in found
                or (kind == "sha256" and not re.fullmatch("[0-9a-f]{64}", text))
            ):
                raise ValueError(
                    f"line {number} is {line.strip()!r:.100}: write key:KEY, or sha256: and 64 hex "
                    "digits"
                )
            found[kind].add(normalize("NFC", text))
        return cls(frozenset(found["key"]), frozenset(found["sha256"]))

    def __len__(self) -> int:
        return len(self.keys) + len(self.digests)

    @property
    def digest(self) -> str:
        """The SHA-256 of the sorted lines, in hex, whatever the order and comments of the file."""
        lines = sorted(
            [*(f"key:{key}\n" for key in self.keys), *(f"sha256:{each}\n" for each in self.digests)]
        )
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def find(self, key: str, sha256: str | None) -> tuple[str, ...]:
        """Identifies the lines that name this key or this digest.

        Returns hashes that do not reveal the lines.
        """
        lines = []
        if key in self.keys:
            lines.append(f"key:{key}")
        if sha256 in self.digests:
            lines.append(f"sha256:{sha256}")
        return tuple(hashlib.sha256(line.encode()).hexdigest()[:16] for line in lines)
