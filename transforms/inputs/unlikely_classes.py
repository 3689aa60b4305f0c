"""Names of folders that are not classes: splits, parts, patients, dates, and digits of hashes."""

import re
from collections.abc import Collection

from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.folder_sketch import split_for_word

_IMAGES = ("images", "image", "imgs", "img", "jpegimages", "img_dir", "leftimg8bit", "image_2")
NO_CLASS = re.compile(
    "|".join(
        (
            *_IMAGES,
            "pictures|data|inputs?|targets?|masks?|labels?|annotations?|annots|segmentation.*|panoptic_.*|imagesets|obj_.*data|sidecars",
            "ann_dir|gtfine|gtcoarse|ground_truth|semantic|semantic_rgb|instance|instances|label_2|labeltxt",
            rf"({'|'.join(SPLIT_NAMES)}|unlabell?ed)[0-9]*([_-]?(images?|imgs?|annots?|masks?|labels?))?",
        )
    )
)
"""Names of folders, in lower case, that are unlikely to be classes."""

_FOLDER_OF_IMAGES = re.compile("|".join(_IMAGES))

_FORMATS = r"jpe?gs?|pngs?|jpegs?|bmps?|tiffs?|tifs?|gifs|webps?|heics?|ppms?|pgms?"
_SIZES = r"[0-9]{3,4}p|[0-9]{2,4} ?x ?[0-9]{2,4}(?:px)?|(?:full|half|low|high)[ _-]?res(?:olution)?"
_GENERIC = re.compile(
    rf"({'|'.join(_IMAGES)}|{_FORMATS}|pics?|pictures?|photos?|photographs|data|dataset"
    r"|files|frames|all|raw|originals?|inputs?|samples|imgs?_?all|all_?images)(_?[0-9]+)?"
    rf"|{_SIZES}"
)
"""Names, in lower case, of single folders that say nothing of the images in them."""

SELDOM_CLASS = re.compile(
    r"docs?|documentation|figures?|figs?|assets?|examples?|samples?|demos?|screenshots?|thumbs?"
    r"|thumbnails?|previews?|icons?|logos?|misc|te?mp|results?|outputs?|plots?|static|media"
    r"|resources?|res|web|html|site|notebooks?|paper|reports?|slides|scripts?|src|backups?|cache"
)
"""Names, in lower case, of folders in a collection that seldom are classes."""

_IMAGE_WORD = re.compile(r"images?|imgs?|photos?|pictures?|pics?|datasets?|jpe?gs?|pngs?")

_PART = re.compile(
    r"(part|batch|chunk|shard|set|subset|fold|vol|volume|seq|sequence|session|scene|cam|camera"
    r"|day|night|week|month|year|run|page|frame|frames|group|folder|dir|disc|disk|series|block|tile"
    r"|section|video|clip|patient|subject|subj|sub|case|person|participant|donor|specimen|pat|pt"
    r"|study|visit|exam|layer|level|slice|depth|plane|stack|channel|band|p|s|z|c|t|id|no)"
    r"[ _.-]*[0-9]+[a-z]?"
)
"""A part, a person, or a layer by its number, in lower case."""

_HASH = re.compile(r"[0-9a-f]{6,}|[0-9a-f]{8}-[0-9a-f-]{9,}")
_HEX = re.compile(r"[0-9a-f]{1,2}")
_NUMBER = re.compile(r"[0-9]{3,}")


def is_of_images(folder: str) -> bool:
    """Returns whether a folder is named after the images in it, as no class is."""
    return bool(_FOLDER_OF_IMAGES.fullmatch(folder.lower()))


def says_nothing(folder: str) -> bool:
    """Returns whether a folder's name says no more than that images are in it.

    `images`, `all_photos`.
    """
    words = re.findall(r"[a-z]+", folder.lower())
    return bool(_GENERIC.fullmatch(folder.lower())) or any(map(_IMAGE_WORD.fullmatch, words))


def are_hex_digits(names: Collection[str]) -> bool:
    """Returns whether folders are named after the first digits of hashes.

    `0` to `f`, or `00` to `ff`.
    """
    lower = [name.lower() for name in names]
    has_both = any(map(str.isdigit, lower)) and any(not name.isdigit() for name in lower)
    is_one_length = len({len(name) for name in lower}) == 1
    return len(lower) > 7 and has_both and is_one_length and all(map(_HEX.fullmatch, lower))


_COUNTED = r"(?:[ _.-]*[0-9]+[a-z]?|[ _.-][a-z])"
_YEAR = r"(?:19|20)[0-9]{2}"
_MONTH, _DAY = r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12][0-9]|3[01])"

_PART_WORD = (
    "(?:part|batch|chunk|shard|set|subset|fold|vol|volume|seq|sequence|session|run|disc|disk"
    "|block|clip|video|cam|camera|day|week|month|images?|imgs?|photos?|data)"
)
_TIME = r"(?:[-_. t]*[0-9]{2}){2,3}z?"

HASHES, HASH_DIGITS, DATES = "hashes", "digits of the images' hashes", "dates"
"""What `explain_unlikely` returns for folders that need other advice than the rest."""

_NO_CLASSES = {
    "parts of the collection": re.compile(rf"(?:{_PART_WORD}[ _.-]*)*{_PART_WORD}{_COUNTED}"),
    "recordings or scenes": re.compile(
        rf"(?:rec|recording|scene|vid|movie|film|footage|episode){_COUNTED}"
    ),
    "documents or pages": re.compile(rf"(?:doc|document|page){_COUNTED}"),
    "patients or cases": re.compile(
        r"(?:patient|pat|pt|subject|subj|sub|case|participant|donor|specimen|study|visit|exam)"
        rf"{_COUNTED}"
    ),
    "sites or devices": re.compile(
        r"(?:site|hospital|clinic|cent(?:er|re)|institut(?:e|ion)|scanner|device|sensor|lab)"
        rf"{_COUNTED}"
    ),
    "cameras": re.compile(r"(?:cam|camera)(?:[ _.-]+[a-z]+)+[0-9]*"),
    "wells of a plate": re.compile("[a-p](?:0[1-9]|1[0-9]|2[0-4])"),
    "layers of the same things": re.compile(rf"(?:layer|slice|plane|channel|band){_COUNTED}"),
    DATES: re.compile(
        rf"{_YEAR}(?:[-_. ]?{_MONTH}(?:[-_. ]?{_DAY}(?:{_TIME})?)?)?"
        rf"|{_DAY}[-_. ]{_MONTH}[-_. ]{_YEAR}"
    ),
    HASHES: re.compile(r"(?=[^0-9]*[0-9])(?:[0-9a-f]{8,}|[0-9a-f]{8}-[0-9a-f-]{9,})"),
}
"""What folders are that do not name classes, and their names in lower case."""


_ORIGINAL = re.compile(
    r"(?:originals?|orig|raw|source|unaltered|unmodified|base|full)"
    r"(?:[ _-]?(?:images?|imgs?|data))?"
)
_CHANGED = re.compile(
    r"(?:augment(?:ed|ations?)|aug|flipped|mirrored|rotated|cropped|crops|resized|scaled|noised?"
    r"|thumbs|thumbnails|patches"
    r"|synthetic|transformed|processed|preprocessed)(?:[ _-]?(?:images?|imgs?|data|[0-9]+))?"
)


def find_changed(names: Collection[str]) -> list[str]:
    """Returns the folders of changed copies: `augmented` next to `original`.

    Returns empty unless all others are named after originals.
    """
    changed = [name for name in names if _CHANGED.fullmatch(name.lower())]
    originals = [name for name in names if _ORIGINAL.fullmatch(name.lower())]
    are_all = len(changed) + len(originals) == len(names)
    return changed if originals and are_all else []


def explain_unlikely(names: Collection[str]) -> str | None:
    """Returns what folders are that do not name classes, in words; None if they may name some.

    Fewer names are unlikely than by `are_unlikely_classes`: people and numbers may be classes.
    """
    lower = [name.lower() for name in names]
    if are_hex_digits(lower):
        return HASH_DIGITS
    if find_changed(names):
        return "images and changed copies of them"
    for what, form in _NO_CLASSES.items():
        is_number = what == HASHES and all(map(str.isdigit, lower))
        if lower and all(map(form.fullmatch, lower)) and not is_number:
            return what
    are_generic = len(lower) > 1 and all(map(_GENERIC.fullmatch, lower))
    if are_generic and not all(map(_ORIGINAL.fullmatch, lower)):
        return "named after the images in them"
    return None


def are_unlikely_classes(names: Collection[str]) -> bool:
    """Tells if names are those of splits, parts, people, layers or hashes, not of classes.

    Single digits may be classes.
    """
    lower = [name.lower() for name in names]
    if not lower or are_hex_digits(lower):
        return True
    kinds = (split_for_word, _PART.fullmatch, _HASH.fullmatch, _NUMBER.fullmatch)
    return any(all(map(kind, lower)) for kind in kinds)


def are_numbered(names: Collection[str]) -> bool:
    """Returns whether folders are counted through: `character01`, `character02`."""
    return len({re.sub("[0-9]+", "0", name) for name in names}) == 1 and all(
        re.search("[0-9]", name) for name in names
    )


_PART_OF_CLASS = re.compile(rf"(.*[a-z]{{2}}.*?)[ _.-]+{_PART_WORD}[ _.-]*[0-9]+", re.IGNORECASE)
_TAKE_OF_CLASS = re.compile(r"(.*[a-z]{2}.*?)((?:[ _.-]+[a-z]{0,2}[0-9]+)+)", re.IGNORECASE)


def find_parted_classes(names: Collection[str]) -> list[str]:
    """Returns the classes that folders are parts of: `cat` for `cat_part1` and `cat_part2`.

    Returns empty unless all folders are parts, and some class has several.
    """
    matches = [_PART_OF_CLASS.fullmatch(name) for name in names]
    classes = {match[1] for match in matches if match}
    return sorted(classes) if all(matches) and len(classes) < len(names) else []


def find_taken_classes(names: Collection[str]) -> list[str]:
    """Returns the classes that folders are numbered takes of: `walk` for `walk_01` and `walk_02`.

    Returns empty unless there are several classes, and several takes of each. Takes are counted
    from 0 or 1, or their numbers begin with zeros: `Audi A4` is none.
    """
    takes: dict[str, list[str]] = {}
    for name in names:
        match = _TAKE_OF_CLASS.fullmatch(name)
        if not match:
            return []
        takes.setdefault(match[1], []).append(match[2])
    if len(takes) < 2 or not all(len(each) > 1 and _are_takes(each) for each in takes.values()):
        return []
    return sorted(takes)


def _are_takes(ends: Collection[str]) -> bool:
    """Returns whether the ends of names are counted as takes are."""
    numbers = [re.findall("[0-9]+", end) for end in ends]
    if any(each[0].startswith("0") and len(each[0]) > 1 for each in numbers):
        return True
    first = sorted(int(each[0]) for each in numbers)
    return [*range(first[0], first[0] + len(first))] == first and first[0] < 2


_CLASS_WORD = re.compile(
    "[a-z]|class|cls|category|cat|char|character|type|kind|grade|stage|level|label|digit|number"
    "|num|letter|symbol|sign|species|breed|person|people|face|author|writer|gesture|pose"
    "|action|state|score|rating|cluster|degree|severity|model|style|word|sample|object|obj|product"
    "|item|target|defect|fault|colou?r|shape|size|quality|rank|tier|topic|concept|emotion|mood"
)
"""Words, in lower case, before the numbers of classes."""

_CODE = re.compile("([a-z]{2,})(?=.*[0-9])(?:[-_. ]+(?:[a-z]{0,2}[0-9]+[a-z]{0,2}|[a-z]{1,2}))+")
"""A word and codes after it, in lower case: `tcga-a1-0013`."""


def are_series(names: Collection[str]) -> bool:
    """Returns whether folders are one word with numbers or codes, and the word is not for classes.

    `match01` and `match02` may be recordings, `class1` and `class2` are classes.
    """
    lower = [name.lower() for name in names]
    codes = [_CODE.fullmatch(name) for name in lower]
    are_coded = all(codes) and len({code[1] for code in codes if code}) == 1
    if len(lower) < 2 or not (are_numbered(lower) or are_coded):
        return False
    first, *others = re.findall("[a-z]+", lower[0]) or [""]
    words = [first, *(each for each in others if len(each) > 1)]
    return first != "" and not any(map(_CLASS_WORD.fullmatch, words))


UNSORTED = re.compile(
    r"[?_. -]*|[_. -]*(?:un(?:labell?ed|sorted|known|classified|categori[sz]ed|assigned|annotated"
    r"|tagged|defined)|trash|to[ _-]?do|to[ _-]?(?:label|sort|check|review)"
    r"|not[ _-]?(?:labell?ed|sorted|sure)|unsure|misc|miscellaneous|rejects?|rejected|deleted"
    r"|new folder|untitled folder|neuer ordner|nouveau dossier)(?:[ _-]*\(?[0-9]+\)?)?"
)
"""Names, in lower case, of folders of images that have no class yet."""

_COPY = re.compile(
    r"(.*?[^ _-])(?:[ _-]+(?:copy|kopie|copie|copia)(?:[ _-]*\(?[0-9]+\)?)?|[ _-]*\([0-9]+\))",
    re.IGNORECASE,
)
_COPY_OF = re.compile(r"copy (?:\([0-9]+\) )?of (.+)", re.IGNORECASE)


def name_of_original(folder: str) -> str | None:
    """Returns the folder that another is named as a copy of: `cat` for `cat - Copy (2)`.

    Returns None if it has no such name.
    """
    match = _COPY.fullmatch(folder) or _COPY_OF.fullmatch(folder)
    return match[1] if match else None
