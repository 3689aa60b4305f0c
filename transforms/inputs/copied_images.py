"""Folders next to images that hold copies of these, or parts of one of them."""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.image_looks import Appearance, Looker, spread
from recordmill.transforms.inputs.pair_names import AGREEMENT, stem_of
from recordmill.transforms.inputs.unlikely_classes import says_nothing

_COPIES = re.compile(r"thumbs?|thumbnails?|previews?|resized|cropped|low[ _-]?res", re.IGNORECASE)
"""Names of folders of smaller copies."""

_SAMPLED_PARTS = 2


def find_copies(
    folders: Mapping[str, Sequence[str]], names: Mapping[str, Sequence[str]]
) -> Pairs | None:
    """Finds folders of smaller copies, such as `cat/thumbs`, of the images around or next to them.

    Args:
        folders: the names of the images in each folder, by path below the input.
        names: the cores of these, in the same order.
    """
    originals = {}
    for path in folders:
        above, name = posixpath.split(path)
        near = [each for each in folders if posixpath.dirname(each) == above and _is_full(each)]
        held = [each for each in (above, *near) if _are_copies(names[path], names.get(each, ()))]
        if _COPIES.fullmatch(name) and held:
            originals[path] = held[0]
    if not originals:
        return None
    copies, first = next(iter(originals.items()))
    why = f"{first or 'the folder itself'} and {copies} hold images of the same names"
    return _leave_out(folders, [*originals], why)


def _is_full(path: str) -> bool:
    """Returns whether a folder is named after the images that others are copies of."""
    name = posixpath.basename(path)
    return says_nothing(name) or name.lower() in ("full", "large")


def _are_copies(copies: Collection[str], originals: Collection[str]) -> bool:
    return len({*copies} & {*originals}) >= AGREEMENT * len({*copies})


def find_parts(folders: Mapping[str, Sequence[str]], look: Looker) -> Pairs | None:
    """Finds folders of masks that are named after an image next to them: `1/cat.png` of `1.jpg`.

    Args:
        folders: the names of the images in each folder, by path below the input.
        look: looks at an image.
    """
    wholes = dict(_find_wholes(folders))
    if not wholes:
        return None
    looks = [look(path) for path in wholes.values()]
    parts = list[Appearance | None]()
    for path in spread([*wholes], _SAMPLED_PARTS):
        parts += [look(f"{path}/{name}") for name in spread(folders[path], _SAMPLED_PARTS)]
    are_masks = all(each is not None and each.is_drawn for each in parts)
    if not are_masks or any(each is None or each.is_drawn for each in looks[:_SAMPLED_PARTS]):
        return None
    path, whole = next(iter(wholes.items()))
    return _leave_out(folders, [*wholes], f"{path} looks like masks of {whole}")


def _find_wholes(folders: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yields folders that are named after an image next to them, and these images."""
    stems = {path: {stem_of(name): name for name in names} for path, names in folders.items()}
    for path in folders:
        above, name = posixpath.split(path)
        if whole := stems.get(above, {}).get(name):
            yield path, posixpath.join(above, whole)


def _leave_out(folders: Mapping[str, Sequence[str]], left_out: Sequence[str], why: str) -> Pairs:
    kept = tuple(sorted(folders.keys() - set(left_out)))
    count = sum(len(folders[path]) for path in left_out)
    return Pairs(why, kept, tuple(sorted(left_out)), count=count)
