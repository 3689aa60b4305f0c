"""The names that `import recordmill` offers."""

import recordmill


def test_every_public_name_can_be_imported():
    assert [name for name in recordmill.__all__ if not hasattr(recordmill, name)] == []
