"""`TorchStream` without PyTorch; with it, tests/interop/test_torch.py tries it."""

from importlib.util import find_spec

import pytest

import recordmill
from recordmill.schemas.errors import LoadError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def test_without_pytorch_it_says_so(converted):
    if find_spec("torch"):
        pytest.skip("PyTorch is installed")
    train = recordmill.open(converted)["train"]
    with pytest.raises(LoadError) as caught:
        recordmill.TorchStream(train, recordmill.EpochOrder(records=len(train)))
    assert (
        str(caught.value)
        == "TorchStream needs PyTorch, which is not installed: pip install '.[torch]' in a clone"
    )
