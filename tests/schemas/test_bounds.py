import pytest

from recordmill.pipeline.configuration.config import load_settings
from recordmill.schemas.errors import UsageError


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("limit=0", "limit is 0: it should be greater than or equal to 1"),
        ("shards.count=0", "shards.count is 0: it should be greater than or equal to 1"),
        ("max_rejected.count=-1", "max_rejected.count is -1: it should be greater than or equal to "
                                  "0"),
        ("max_rejected.lost_classes=-1", "max_rejected.lost_classes is -1: it should be greater "
                                         "than or equal to 0"),
        ("max_rejected.share=1.1", "max_rejected.share is 1.1: it should be less than or equal to "
                                   "1"),
        ("max_rejected.boxes.share=-0.1", "max_rejected.boxes.share is -0.1: it should be greater "
                                          "than or equal to 0"),
        ("max_rejected.boxes.share=.nan", "max_rejected.boxes.share is nan: it should be less than "
                                          "or equal to 1"),
        ("expect.images={train: {change: .inf}}",
         "expect.images.train.change is inf: it should be less than or equal to 1000000"),
        ("splits.fractions.train=0", "splits.fractions.train is 0: it should be greater than 0"),
        ("splits.fractions.train=1.5", "splits.fractions.train is 1.5: it should be less than or "
                                       "equal to 1"),
        ("features={x: {function: 'a:b', shape: [null, null]}}",
         "features.x.shape is [None, None]: it should have at most 1 item after validation, not 2"),
        ("source={kind: archives, max_members: 0}", "source.max_members is 0: it should be greater "
                                                    "than or equal to 1"),
        ("source={kind: tfrecords, max_ratio: 0}", "source.max_ratio is 0: it should be greater "
                                                   "than or equal to 1"),
        ("convention={features: {a: {field: label, type: int64}}, label_offset: "
         "-4611686018427387905}",
         "convention.label_offset is -4611686018427387905: it should be greater than or equal to "
         "-4611686018427387904"),
        (f"source={{kind: tfrecords, first_label: {2**62 + 1}}}",
         f"source.first_label is {2**62 + 1}: it should be less than or equal to "
         "4611686018427387904"),
        ("source={kind: fixed_records, header: -1}", "source.header is -1: it should be greater "
                                                     "than or equal to 0"),
        ("source={kind: fixed_records, preset: cifar11}",
         "source.preset is 'cifar11': it should be '', 'cifar10' or 'cifar100'"),
        ("source={kind: arrays, order: upside}", "source.order is 'upside': it should be "
                                                 "'interleaved' or 'planar'"),
    ],
)  # fmt: skip
def test_a_value_out_of_bounds_is_one_sentence(override, sentence):
    with pytest.raises(UsageError) as raised:
        load_settings(None, [override])
    assert str(raised.value) == f"--set: {sentence}"
