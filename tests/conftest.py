from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run and every machine, and no failure because a machine is slow.
# To search for new ones: pytest --hypothesis-profile=default
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real collections that lie beside the repository on some machines."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("../shared/data is absent")
    return folder
