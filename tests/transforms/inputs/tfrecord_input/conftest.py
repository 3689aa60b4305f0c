import pytest

from recordmill.schemas.example_proto import Example


@pytest.fixture
def make_example():
    """A serialised Example of values: bytes, an int or a float, or a list of them."""

    def make(values):
        example = Example()
        for key, value in values.items():
            many = value if isinstance(value, list) else [value]
            entry = example.features.feature[key]
            kinds = {bytes: entry.bytes_list, int: entry.int64_list, float: entry.float_list}
            if many:
                kinds[type(many[0])].value.extend(many)
        return example.SerializeToString()

    return make
