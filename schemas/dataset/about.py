"""What people want to know of a dataset besides its contents."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Facts that only the user knows; those that are empty are not known.

    Attributes:
        licence: a name, an SPDX identifier or a URL.
        creator: a person or an organization.
        version: three numbers, such as 1.2.0.
        citation: how to cite it: text or BibTeX.
    """

    licence: str = ""
    creator: str = ""
    version: str = ""
    citation: str = ""
