"""The reference that flows through the pipeline in an image's place."""

from dataclasses import dataclass

from apache_beam import coders


@dataclass(frozen=True, slots=True)
class ImageRef:
    """Where one image is and what was known of it when it was listed: about 200 bytes, whatever the image's size.

    Attributes:
        key: the image's name in the dataset: `[NAME/]path below the input`, `/`-separated, NFC.
        uri: where to read it: a path or URL that Beam's file systems know.
        size: bytes of the file when it was listed.
        version: the file's modification time when it was listed, as text; only ever compared for equality.
        offset: first byte of the image in the file.
        length: bytes of the image in the file; -1 for all from `offset` on.
        label: class name, or the empty string for an image without one.
        group: what must stay in one split; the empty string for the image alone.
        split: the split that the source gives; the empty string where it is to be decided.
        spelling: the path below the input as the store spells it, where that is not the key's; else the empty string.
        features: further features as a JSON object of text values; the empty string for none.
        status: the empty string for an image to convert. `ignored` and `rejected` stay in the ledger; `warning` is
            told and counted nowhere; `fatal` fails the run.
        reason: a short stable code where status is set, e.g. `hidden` or `no_class`.
        detail: one line for people where status is set.
    """

    key: str
    uri: str
    size: int = 0
    version: str = ""
    offset: int = 0
    length: int = -1
    label: str = ""
    group: str = ""
    split: str = ""
    spelling: str = ""
    features: str = ""
    status: str = ""
    reason: str = ""
    detail: str = ""

    @property
    def image_bytes(self) -> int:
        """How many bytes of the file are the image's, as it was listed."""
        return self.length if self.length >= 0 else self.size - self.offset


coders.registry.register_row(ImageRef)
