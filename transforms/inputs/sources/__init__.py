"""Sources: what a listed file means: how many images it holds and how they are labelled. One file a source.

A source is a module of this package that defines `SOURCE`: a frozen dataclass whose fields are its YAML keys under
`source:` and which implements `Source`. Its file name is the name that users write (`kind: class_folders`). Nothing
else lists it.
"""

from recordmill.transforms.inputs.listing.folder_sketch import Recognised
from recordmill.transforms.inputs.sources.source import Source, load_source, source_names

__all__ = ["Recognised", "Source", "load_source", "source_names"]
