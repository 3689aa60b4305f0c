import random

import numpy as np
import pytest

from recordmill.pipeline.sample_subjects import SIZES, SUBJECTS, draw


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_same_chance_draws_the_same_picture(subject):
    one, other = (draw(subject, random.Random("seed")) for _ in range(2))
    assert one.mode == "RGB"
    assert one.size in SIZES
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_subject_stands_out_from_its_background(subject, monkeypatch):
    whole = draw(subject, random.Random("seed"))
    background, _ = SUBJECTS[subject]
    monkeypatch.setitem(SUBJECTS, subject, (background, lambda pen, chance: None))
    empty = draw(subject, random.Random("seed"))
    # The light differs by one step of chance; a subject differs by far more.
    differing = np.abs(np.asarray(whole, dtype=int) - np.asarray(empty, dtype=int)).max(axis=2) > 60
    assert 0.02 < differing.mean() < 0.6


def test_a_shift_moves_the_subject_and_nothing_else():
    left, right = (np.asarray(draw("fish", random.Random("seed"), shift), dtype=int) for shift in (-0.3, 0.3))
    changed = np.abs(left - right).max(axis=2) > 30
    assert changed.any()
    assert not changed[:5].any()
    assert not changed[-5:].any()
