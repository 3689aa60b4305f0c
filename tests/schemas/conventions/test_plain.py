from recordmill.schemas.conventions import load_convention


def test_there_is_nothing_in_it():
    assert load_convention("plain").example_features == ()
