"""Example conventions: the features of an Example, and the names of files. One module per convention.

A convention is a module of this package that defines `CONVENTION`; its file name is the name that users write in YAML
(`convention: tutorial`). Nothing else lists it.
"""

from recordmill.schemas.conventions.convention import Convention, convention_names, load_convention
from recordmill.schemas.features import Feature

__all__ = ["Convention", "Feature", "convention_names", "load_convention"]
