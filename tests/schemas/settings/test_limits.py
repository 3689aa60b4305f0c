import re

import pytest

from recordmill.schemas.settings.limits import LossLimits, RejectionLimits


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LossLimits(share=-0.1), "share is -0.1: give a share from 0 to 1"),
        (lambda: LossLimits(count=-1), "count is -1: it cannot be negative"),
        (lambda: RejectionLimits(share=1.1), "max_rejected.share is 1.1: give a share from 0 to 1"),
        (lambda: RejectionLimits(count=-1), "max_rejected.count and max_rejected.lost_classes cannot be negative"),
        (lambda: RejectionLimits(lost_classes=-1), "cannot be negative"),
    ],
)
def test_impossible_limits_raise_and_name_their_key(build, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        build()


def test_limits_are_passed_where_share_and_count_both_are():
    limits = LossLimits(share=0.1, count=2)
    assert [limits.are_passed(*each) for each in ((3, 20), (2, 1), (3, 97))] == [True, False, False]
