import json
import sys

import pytest

from benchmarks import listing
from recordmill import storage


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(storage, "_find_store", None)  # it is replaced, and put back afterwards
    monkeypatch.setattr(listing, "PAGE_SECONDS", 0)
    monkeypatch.setattr(listing, "PAGE", 10)


@pytest.mark.parametrize("starts_anywhere", [True, False])
@pytest.mark.parametrize(("folders", "images"), [(12, 25), (1, 30), (25, 1)])
def test_every_name_is_listed_once(folders, images, starts_anywhere):
    names = [
        f"{listing.BUCKET}{folder:05}/{image}.jpg"
        for folder in range(folders)
        for image in range(images)
    ]
    assert listing.seconds_to_list(names, starts_anywhere) > 0


@pytest.mark.parametrize(("ratio", "code"), [(4, 0), (3.9, 1)])
def test_a_missed_target_fails_the_check(monkeypatch, capsys, ratio, code):
    monkeypatch.setattr(
        listing, "seconds_to_list", lambda names, starts_anywhere: 1 if starts_anywhere else ratio
    )
    monkeypatch.setattr(listing, "INPUTS", {"100 folders": (2, 3), "one folder": (1, 2)})
    monkeypatch.setattr(sys, "argv", ["listing", "--check"])
    with pytest.raises(SystemExit) as ended:
        listing.main()
    assert ended.value.code == code
    assert (
        json.loads(capsys.readouterr().out)["inputs"]["100 folders"]["times_as_fast"]["median"]
        == ratio
    )
