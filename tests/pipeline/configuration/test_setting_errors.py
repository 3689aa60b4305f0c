"""Wrong values and keys of settings, each in one sentence that says what to write."""

import pytest
import yaml

from recordmill.pipeline.configuration.config import explain_yaml_error, load_settings
from recordmill.schemas.errors import UsageError


def errors_of(override):
    with pytest.raises(UsageError) as raised:
        load_settings(None, [override])
    return str(raised.value).splitlines()


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("images.resize=224", "images.resize is 224: write one of its keys below it (longest, shortest, exact, fit)"),
        (
            "max_rejected=5",
            "max_rejected is 5: write one of its keys below it (share, count, lost_classes, boxes, labels)",
        ),
        ("features={x: 3}", "features.x is 3: write one of its keys below it (function, type, shape, of, meaning)"),
        ("images.resize.exact=224", "images.resize.exact is 224: write [224, 224]"),
        ("images.resize.exact=224x192", "images.resize.exact is '224x192': write [224, 192]"),
        ("images.resize.exact=224 × 192", "images.resize.exact is '224 × 192': write [224, 192]"),  # noqa: RUF001
        ("images.resize.exact=224,192", "images.resize.exact is '224,192': write [224, 192]"),
        ("images.resize.exact=224xwide", "images.resize.exact is '224xwide': write a list of 2 whole numbers"),
        ("images.resize.exact=small", "images.resize.exact is 'small': write a list of 2 whole numbers"),
        ("images.resize.exact=[224]", "images.resize.exact is [224]: write a list of 2 whole numbers"),
        ("images.resize.exact=[1, 2, 3]", "images.resize.exact is [1, 2, 3]: write a list of 2 whole numbers"),
        ("images.resize.exact=[]", "images.resize.exact is []: write a list of 2 whole numbers"),
        ("images.resize.exact=[1, b]", "images.resize.exact.1 is 'b': write a whole number"),
        ("images.background=white", "images.background is 'white': write a list of 3 whole numbers"),
        ("labels.classes=cat", "labels.classes is 'cat': write [cat]"),
        ("labels.classes=cat, dog", "labels.classes is 'cat, dog': write [cat, dog]"),
        ('ignore="*.psd"', "ignore is '*.psd': write ['*.psd']"),
        ("include=3", "include is 3: write a list"),
        ("labels.classes={a: 1}", "labels.classes is {'a': 1}: write a list"),
        ("splits.stratify=ture", "splits.stratify is 'ture': write true or false"),
        ("splits.stratify=[]", "splits.stratify is []: write true or false"),
        ("images.quality=high", "images.quality is 'high': write a whole number"),
        ("images.quality=1.5", "images.quality is 1.5: write a whole number"),
        ("images.quality=", "images.quality is empty: write a whole number"),
        ("images.resize.longest=big", "images.resize.longest is 'big': write a whole number"),
        ("max_rejected.share=much", "max_rejected.share is 'much': write a number"),
        ("splits.fractions.train=[]", "splits.fractions.train is []: write a number"),
        ("name=5", "name is 5: write it in quotes, as text"),
        ("labels.classes=[yes]", "labels.classes.0 is True: write it in quotes, as text (yes, no, on and off are "
                                 "booleans in YAML)"),
        ("name=[]", "name is []: write text"),
        ("splits.fractions=0.8", "splits.fractions is 0.8: write names and values, as in {NAME: VALUE}"),
        ("splits.from_folders=train", "splits.from_folders is 'train': write names and values, as in {NAME: VALUE}"),
        ("splits.fractions=[1]", "splits.fractions is [1]: write names and values, as in {NAME: VALUE}"),
        ("source.class_from=frist_folder", "source.class_from is 'frist_folder': did you mean first_folder?"),
        ("compression=zip", "compression is 'zip': did you mean gzip?"),
        ("images.check=full", "images.check is 'full': choose one of decode, header"),
        ("features={x: {of: image}}", "features.x.function is missing: add it"),
    ],
)  # fmt: skip
def test_a_wrong_value_says_what_to_write(override, error):
    (line,) = errors_of(override)
    assert line == f"--set: {error}"


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("splits.fraction.train=1", "unknown setting splits.fraction: did you mean splits.fractions?"),
        ("imagez=1", "unknown setting imagez: did you mean images?"),
        ("images.qualty=90", "unknown setting images.qualty: did you mean images.quality?"),
        ("images.resize={exact: [1, 1], fitt: pad}",
         "unknown setting images.resize.fitt: did you mean images.resize.fit?"),
        ("source.class_form=path", "unknown setting source.class_form: did you mean source.class_from?"),
        ("features={x: {function: mean_std, tpye: float}}",
         "unknown setting features.x.tpye: did you mean features.x.type?"),
        ("convention={features: {a: {type: bytes, field: encoded, menaing: x}}}",
         "unknown setting convention.features.a.menaing: did you mean convention.features.a.meaning?"),
        ("quality=90", "unknown setting quality: did you mean images.quality?"),
        ("resize.longest=90", "unknown setting resize: did you mean images.resize?"),
        ("zzz=1", "unknown setting zzz: correct it, or remove it"),
        ("splits={train: 0.8}", "unknown setting splits.train: did you mean splits.fractions.train?"),
        ("splits.test=1", "unknown setting splits.test: did you mean splits.fractions.test?"),
        ("splits.fraction=0.8", "unknown setting splits.fraction: did you mean splits.fractions?"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_taken_for_one_that_is_nearly_the_same(override, error):
    assert errors_of(override) == [f"--set: {error}"]


def test_a_name_that_is_not_text():
    assert errors_of("splits.fractions={1: 1.0}") == ["--set: the key 1 is not text: write it in quotes"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[", "expected the node content, but found '<stream end>' (line 1, column 2)"),
        ("a: 1\nb: [c\n", "expected ',' or ']', but got '<stream end>' (line 3, column 1)"),
        ("a: b: c", "mapping values are not allowed here (line 1, column 5)"),
        ("a: \0", "unacceptable character #x0000: special characters are not allowed (at character 4)"),
    ],
)
def test_a_place_in_yaml_is_a_line_and_a_column(text, sentence):
    with pytest.raises(yaml.YAMLError) as raised:
        yaml.safe_load(text)
    assert explain_yaml_error(raised.value) == sentence


def test_a_value_that_is_not_valid_yaml():
    assert errors_of("seed=[") == [
        "--set seed=[: the value is not valid YAML: "
        "expected the node content, but found '<stream end>' (line 1, column 2)"
    ]
