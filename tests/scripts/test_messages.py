from scripts import messages

MODULE = '''
"""A docstring of five words."""

NAME = "two words"


def fail(name, limit):
    raise ValueError(f"{name} is above the limit of {limit}")


def hint():
    return "see the documentation"
'''


def test_messages_are_found_with_their_lines_and_without_docstrings(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    found = list(messages.messages_of(path))
    assert found == [(8, "{} is above the limit of {}"), (12, "see the documentation")]


def test_messages_of_the_whole_product_have_places():
    places = {place.rpartition(":")[0] for place, _ in messages.messages()}
    assert {
        "pipeline/launch.py",
        "recordmill/reading/verify_dataset.py",
        "schemas/rejection.py",
    } <= places
