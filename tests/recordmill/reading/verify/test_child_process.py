import pytest

from recordmill.reading.verify.child_process import ChildDiedError, ChildProcess, answer, questions


def echo(times):
    """What the child runs: answers each question so many times; dies of one."""
    import os

    for question in questions():
        if question == b"die":
            os._exit(7)
        for _ in range(times):
            answer(question)


@pytest.fixture
def child(monkeypatch):
    monkeypatch.setattr("recordmill.reading.verify.child_process._ROOT", __file__.rpartition("/")[0])
    with ChildProcess("test_child_process:echo(2)") as child:
        yield child


@pytest.mark.parametrize("question", [b"", b"a", b"\0" * 300_000])
def test_a_question_may_have_several_answers(child, question):
    answers = child.ask(question)
    assert [next(answers), next(answers)] == [question, question]


def test_a_child_that_dies_is_an_error_and_is_replaced(child):
    with pytest.raises(ChildDiedError, match=r"^7$"):
        next(child.ask(b"die"))
    assert next(child.ask(b"again")) == b"again"


def test_a_child_ends_with_the_block():
    with ChildProcess("recordmill.reading.verify.shard_workers:serve()") as child:
        assert child.close() == 0
