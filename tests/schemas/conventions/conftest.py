import hashlib
import io

import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.features import encode_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.records.convert_image import image_record, reference_record


@pytest.fixture(scope="session")
def jpeg():
    file = io.BytesIO()
    Image.linear_gradient("L").resize((40, 30)).convert("RGB").save(file, "JPEG")
    return file.getvalue()


@pytest.fixture(scope="session")
def sha256(jpeg):
    return hashlib.sha256(jpeg).hexdigest().encode()


@pytest.fixture(scope="session")
def pixels(jpeg):
    """The pixels of `jpeg`, row by row, red first."""
    return Image.open(io.BytesIO(jpeg)).tobytes()


@pytest.fixture
def read_as_peer(jpeg):
    """Writes one image by a convention and reads it as a peer does that has published its feature
    description.

    `read_as_peer(name, description, class_id)`: the description names every key that is stored;
    `None` in place of the class id writes an image without a label, and keyword arguments are
    further fields of the record.
    """
    tf = pytest.importorskip("tensorflow")

    def read(name, description, class_id, **more):
        convention = load_convention(name)
        ref = ImageRef("flowers/tülip 1.jpg", "anywhere")
        image = prepare_image(jpeg, ImageSettings(store=convention.stores))
        class_name = None if class_id is None else "tülip"
        fields = {
            **image_record(image, convention, hashlib.sha256(image.encoded).hexdigest()),
            **reference_record(ref, class_name, class_id, "train"),
            **more,
        }
        record = encode_example(convention.example_features, fields)
        parsed = tf.io.parse_single_example(record, description)
        stored = {key for key in tf.train.Example.FromString(record).features.feature}
        assert stored == set(description), (
            "every key that we write is one that the peer reads, and the reverse"
        )
        values = {}
        for key, value in parsed.items():
            value = (
                tf.sparse.to_dense(value) if isinstance(value, tf.sparse.SparseTensor) else value
            )
            found = value.numpy()
            values[key] = found if isinstance(found, bytes) else found.tolist()
        return values

    return read
