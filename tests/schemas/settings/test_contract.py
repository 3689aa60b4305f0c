import pytest

from recordmill.schemas.settings.dataset import Contract, ImageLimits


@pytest.mark.parametrize(
    ("contract", "compares"),
    [
        (Contract(), False),
        (
            Contract(
                classes=("cat",), images={"train": ImageLimits(at_least=1, at_most=9)}, rejected=0.1
            ),
            False,
        ),
        (Contract(classes="as_before"), True),
        (Contract(class_drift=0.0), True),
        (Contract(images={"train": ImageLimits(at_least=1), "*": ImageLimits(change=0)}), True),
    ],
)
def test_it_knows_whether_it_needs_a_previous_dataset(contract, compares):
    assert contract.compares is compares


def test_limits_that_no_number_of_images_meets_are_refused():
    with pytest.raises(
        ValueError, match=r"^at_least is 3,000, and at_most is 2: correct one of them$"
    ):
        ImageLimits(at_least=3_000, at_most=2)
    assert ImageLimits(at_least=2, at_most=2).at_most == 2
