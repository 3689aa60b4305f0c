"""Example conventions: the features of an Example, and the names of files. One YAML file per convention.

The file's name is the name that users write (`convention: tutorial`). Nothing else lists it.
"""

from recordmill.schemas.conventions.convention import Convention, ConventionFeature, convention_names, load_convention

__all__ = ["Convention", "ConventionFeature", "convention_names", "load_convention"]
