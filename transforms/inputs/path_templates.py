"""Templates of paths, such as `{split}/images/{name}`, which name an image and the files it has."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from recordmill.schemas.errors import SettingError
from recordmill.transforms.inputs.image_names import names_in
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS
from recordmill.transforms.inputs.patterns import check_template

NAME, SPLIT, CLASS, ABOVE = "name", "split", "class", "above"

FOLDERS_ABOVE = f"{{{ABOVE}}}/"
"""The beginning of a template whose paths may have any folders before them, or none."""

_FORMS = {NAME: "(?P<name>.+)", SPLIT: "(?P<split>[^/]+)", CLASS: "(?P<class>[^/]+)"}
_PLACE = re.compile(r"\{(name|split|class|above)\}")


@cache
def template_of(text: str) -> "PathTemplate":
    """Returns the template with this text, from memory: each listed file is compared with it."""
    return PathTemplate(text)


@dataclass(frozen=True)
class PathTemplate:
    """The paths of some files below an input.

    `{name}` stands for what the paths of an image and of its other files have in common, which may
    have slashes; `{split}` and `{class}` for one folder, or a part of a folder's or file's name;
    `{above}/` at the beginning for any folders, or none.

    Attributes:
        text: the template. If it ends with no image's extension, any of them may follow.
    """

    text: str

    def check(self, key: str) -> None:
        """Checks that the template names one file for each image.

        Args:
            key: the YAML key that it was written under, for the message.

        Raises:
            SettingError: it has other names in braces, one twice, or no `{name}`; or `{above}` is
                elsewhere than at its beginning.
        """
        check_template(self.text, key, NAME, SPLIT, CLASS, ABOVE)
        if ABOVE in self.parts and not self.has_folders_above:
            raise SettingError(key, f"is {self.text!r}: write {FOLDERS_ABOVE} at its beginning")
        if NAME not in self.parts or len(self.parts) > len({*self.parts}):
            raise SettingError(
                key,
                f"is {self.text!r}: write {{name}} once in it, and {{split}} and {{class}} once at "
                "most",
            )

    @cached_property
    def parts(self) -> list[str]:
        """The names in braces, in order."""
        return _PLACE.findall(self.text)

    @property
    def has_folders_above(self) -> bool:
        """Whether the template begins with `{above}/`."""
        return self.text.startswith(FOLDERS_ABOVE)

    @property
    def letters(self) -> int:
        """How many letters of a path it decides: of two that match, the longer one counts."""
        return len(_PLACE.sub("", self.text))

    def match(self, path: str) -> Mapping[str, str] | None:
        """Returns what stands for the words in braces in a path; None if it differs."""
        if not self._names_ending:
            path, ending = posixpath.splitext(path)
            if ending.lower() not in IMAGE_ENDINGS:
                return None
        found = self._pattern.fullmatch(path)
        return found.groupdict(default="") if found else None

    def find(self, root: str, words: Mapping[str, str]) -> list[str]:
        """Returns the files of an image, below the root; usually there is one.

        If there is none, a file counts whose name differs in Unicode's form or case alone, unless
        there are several.

        Args:
            root: the input.
            words: as `match` gives them.
        """
        folder, name = posixpath.split(self.fill(words))
        names = names_in(f"{root}/{folder}".rstrip("/"))
        if self._names_ending:
            stem = posixpath.splitext(name)[0]
            found = name if name in names.images(stem) else names.find_name(name)
            return [posixpath.join(folder, found)] if found else []
        images = names.images(name) or names.images(names.find_stem(name) or name)
        return [posixpath.join(folder, each) for each in images]

    def fill(self, words: Mapping[str, str]) -> str:
        """Returns the path for some words, without an extension if the template has none."""
        return fill_path(self.text, words)

    @cached_property
    def _names_ending(self) -> bool:
        return self.text.lower().endswith(IMAGE_ENDINGS)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        above = f"(?:(?P<{ABOVE}>.+)/)?" if self.has_folders_above else ""
        parts = _PLACE.split(self.text.removeprefix(FOLDERS_ABOVE))
        forms = (_FORMS[part] if at % 2 else re.escape(part) for at, part in enumerate(parts))
        return re.compile(above + "".join(forms), re.DOTALL)


def fill_path(text: str, words: Mapping[str, str]) -> str:
    """Returns a template's text with some words in the place of their names in braces."""
    if not words.get(ABOVE):
        text = text.removeprefix(FOLDERS_ABOVE)
    return _PLACE.sub(lambda found: words.get(found[1], ""), text)
