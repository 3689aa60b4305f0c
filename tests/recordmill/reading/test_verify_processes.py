from pathlib import Path

import pytest

from recordmill.reading.verify_processes import ChildDiedError, ChildProcess, ChildProcesses, serve_answers

pytestmark = pytest.mark.runner


def echo(times):
    """What the child runs: answers each question `times` times; two questions kill it, one within an answer."""
    import os
    import sys

    def reply(question, answer):
        if question.startswith(b"die"):
            os.write(int(sys.argv[1]), (1000).to_bytes(4, "big") + b"begun" if question == b"die late" else b"")
            os._exit(7)
        for _ in range(times):
            answer(question)

    serve_answers(reply)


@pytest.fixture
def child(monkeypatch):
    here = Path(__file__)
    monkeypatch.setenv("PYTHONPATH", str(here.parents[3]))
    monkeypatch.setattr("recordmill.reading.verify_processes._ROOT", str(here.parent))
    with ChildProcesses("test_verify_processes:echo(2)", 1) as children, children.borrow() as child:
        yield child


@pytest.mark.parametrize("question", [b"", b"a", b"\0" * 300_000])
def test_a_question_may_have_several_answers(child, question):
    answers = child.ask(question)
    assert [next(answers), next(answers)] == [question, question]


@pytest.mark.parametrize("question", [b"die", b"die late"])
def test_a_child_that_dies_is_an_error_and_is_replaced(child, question):
    with pytest.raises(ChildDiedError, match=r"^7$"):
        next(child.ask(question))
    assert next(child.ask(b"again")) == b"again"


def test_a_child_that_was_not_asked_is_not_started():
    assert ChildProcess("recordmill.reading.verify_processes:serve_shards()").close() == 0
