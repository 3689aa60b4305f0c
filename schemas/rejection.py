"""Why something that was listed is in no split, and the one exception for what is wrong with an item of the input."""

import re
from collections.abc import Mapping
from typing import Literal

Stage = Literal["list", "read", "decode", "encode"]

Fate = Literal["rejected", "ignored", "left_out"]
"""What becomes of things that are listed and not written."""

REASONS: dict[Stage, dict[str, str]] = {
    "list": {
        "bad_name": "the file's name is not UTF-8",
        "vanished": "a link leads nowhere, or the file went away while its folder was listed",
        "unreadable": "the file's size and time cannot be read",
        "not_a_file": "it is a folder, a device, a socket or a pipe",
        "no_split": "it lies in none of the folders of `splits.from_folders`, or its source gives it a split that is "
        "not in `splits.from_source`",
        "no_class": "it lies in no class folder",
        "name_mismatch": "its name does not match `source.pattern`",
        "bad_annotations": "the file with its annotations cannot be read or understood, or one that must be there is "
        "missing",
        "refused_shape": "a shape among its annotations is no rectangle, and `source.other_shapes` is `reject`",
        "bad_row": "its row of a table or manifest is malformed, or a value in it is missing or of another type",
        "no_rows": "the table has no rows",
        "outside_root": "the source names a file that does not lie below the input, or below `source.root`",
        "bad_archive": "the archive, or the rest of it, cannot be read",
        "bad_member": "a link, a device or another thing in an archive that is not read, or its name, its size or how "
        "it is packed is not allowed",
        "bad_sample": "the files beside an image in its archive give no label or feature, or there is no image",
        "bad_record": "a record of a TFRecord file, or what follows it, is damaged, or the file holds none",
        "bad_example": "a record is no Example of the convention that `source.convention` says",
        "bad_array": "the file is no array of images of 8 bits: its header cannot be read, or says something else",
        "bad_labels": "there are not as many labels as images, or the file with them cannot be read",
        "bad_packing": "the file is packed, and cannot be unpacked",
        "wrong_length": "the file's size does not fit what is in it: it was cut, or its layout is another one",
        "no_group": "its key does not match `splits.group`",
    },
    "read": {
        "too_many_bytes": "the file is larger than `images.max_bytes`",
        "vanished": "it was listed, and was gone when it was read",
        "changed": "it had another size when it was listed",
        "unreadable": "it cannot be read",
        "bad_packing": "the file that it is packed in cannot be unpacked",
        "bad_row": "its row of a manifest holds no bytes, or no base64",
        "bad_example": "the image in an Example is none of the convention's",
        "wrong_sha256": "its bytes have another SHA-256 than the source says",
    },
    "decode": {
        "empty": "the file has no bytes",
        "too_many_bytes": "the file is larger than `images.max_bytes`",
        "unknown_format": "the first bytes are those of no image format that is known here",
        "format_not_allowed": "the format is recognised, but is not among the accepted ones",
        "bad_header": "the header cannot be read, or promises something no decoder can do",
        "too_many_pixels": "the header promises more pixels than max_pixels",
        "side_too_long": "the header promises a side longer than max_side",
        "too_much_work": "the file asks for far more work than its pixels: scans, chunks, strips or comments "
        "without end",
        "truncated": "the data end before the image is complete",
        "decode_error": "the pixels cannot be decoded",
    },
    "encode": {
        "unknown_label": "its label is none of `labels.classes` and there is no `labels.catch_all`, or `labels.ids` is "
        "`integers` and it is none",
        "bad_boxes": "one of its boxes is invalid, and `boxes.invalid` is `reject`",
        "size_mismatch": "its boxes were drawn on an image of another size",
    },
}
"""Every reason for which an image is rejected, by the stage that finds it."""


IGNORED: Mapping[str, str] = {
    "class_names": "it names the classes",
    "hidden": "its name begins with a dot",
    "ignored": "it matches a pattern of `ignore`",
    "labels": "it holds the labels of the images",
    "no_rows": "the manifest has no rows",
    "not_annotations": "its name does not match `source.split`, so it is not read as annotations",
    "in_no_set": "none of the lists in `source.sets` names it",
    "not_included": "it matches none of the patterns in `include`, or its name is not one that the source reads",
    "read_only_with_images": "it is not an image, and no image was read with it",
    "system_file": "the operating system left it behind",
    "taken_only_by_name": "it is not an image, and no manifest or annotation names it",
    "without_annotation": "it is an image that no manifest names, and no annotation that is used",
}
"""Every reason for which a file is ignored."""

LEFT_OUT: Mapping[str, str] = {
    "duplicate": "it has the same bytes as another one, and `duplicates` is `drop`",
    "fraction": "`splits.fractions` add up to less than 1, and it is in the rest",
    "limit": "there are more than `limit` asks for",
}
"""Every reason for which something that could be converted is left out."""


OF_WHOLE_FILES = frozenset({"bad_archive", "bad_array", "bad_labels", "no_rows", "wrong_length"})
"""The reasons for which a file of many images is rejected as one."""


def explain_reason(fate: Fate, code: str) -> str:
    """What a reason means, whichever stage found it; the empty string where it is not a reason of this fate."""
    if fate == "rejected":
        return "; or ".join(dict.fromkeys(codes[code] for codes in REASONS.values() if code in codes))
    return (IGNORED if fate == "ignored" else LEFT_OUT).get(code, "")


class Rejected(Exception):  # it is an outcome, not an error of the program
    """Something in the input that cannot become a record.

    Attributes:
        stage: the stage that found out, one of `REASONS`.
        reason: one of the stage's reasons; stable, meant for counting.
        detail: one line for people; the same on every machine and in every run.
        sha256: hex digest of the bytes read; empty where none were.
    """

    def __init__(self, stage: Stage, reason: str, detail: str, sha256: str = "") -> None:
        if reason not in REASONS[stage]:
            raise ValueError(f"{reason!r} is not a reason of the stage {stage}: add it to REASONS, with its meaning")
        super().__init__(stage, reason, detail, sha256)  # all of them, so that it can be pickled
        self.stage = stage
        self.reason = reason
        self.detail = detail
        self.sha256 = sha256

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


def describe_error(error: BaseException) -> str:
    """One line of at most 200 characters about a library's error, without memory addresses."""
    text = re.sub(r" (object )?at 0x[0-9a-fA-F]+", "", str(error))
    return " ".join(f"{type(error).__name__}: {text}".split())[:200]
