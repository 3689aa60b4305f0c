from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.errors import (
    DONE,
    FAILED,
    NOT_AS_EXPECTED,
    TOO_MANY_REJECTED,
    WRONG_USAGE,
    ConversionError,
    Outcome,
)


def test_exit_codes_are_those_of_the_documentation():
    assert (DONE, FAILED, WRONG_USAGE, TOO_MANY_REJECTED, NOT_AS_EXPECTED) == (0, 1, 2, 3, 4)


def test_an_outcome_is_plain_json():
    outcome = Outcome(
        "published", "2 images are in x", DONE, "abc", {"ledger": {"listed": 2}}, ("a note",)
    )
    assert to_json(outcome) == {
        "status": "published",
        "message": "2 images are in x",
        "exit_code": 0,
        "plan_id": "abc",
        "numbers": {"ledger": {"listed": 2}},
        "notes": ["a note"],
    }


def test_users_of_the_former_name_of_the_message_get_it():
    assert ConversionError(Outcome("failed", "why", FAILED)).outcome.sentence == "why"


def test_outcomes_share_no_numbers():
    assert Outcome("failed", "", FAILED).numbers is not Outcome("failed", "", FAILED).numbers
