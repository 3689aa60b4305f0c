from recordmill.schemas.settings.limits import LossLimits


def test_limits_are_passed_where_share_and_count_both_are():
    limits = LossLimits(share=0.1, count=2)
    assert [limits.are_passed(*each) for each in ((3, 20), (2, 1), (3, 97))] == [True, False, False]
