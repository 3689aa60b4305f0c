"""Recordmill's public names: PTransforms, their functions and record types, and dataset readers.

`__init__.pyi` lists them. A name is imported when it is first used, so `import recordmill` loads
neither Beam nor TensorFlow. `pipeline`, `transforms`, `schemas` and `configs` are links to the
repository's top-level folders: an installed Recordmill has them below `recordmill` alone, where a
user's `transforms.py` cannot shadow them.
"""

import lazy_loader

from recordmill.schemas.version import VERSION as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
