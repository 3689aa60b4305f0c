from collections import Counter
from dataclasses import replace

from make_settings import make_settings

from recordmill.schemas.dataset.marker import PlanEntry
from recordmill.transforms.claim_output import OutputState, decide_action
from recordmill.transforms.publishing.companions.describe_dataset import describe_dataset


def test_every_file_has_one_name_and_some_content(stage, say):
    files = [
        (name, b"".join(content))
        for name, content in describe_dataset(stage(make_settings(index_files=True)))
    ]
    assert Counter(name for name, _ in files).most_common(1)[0][1] == 1
    assert all(content for _, content in files)


def test_place_and_time_are_not_in_them(stage, say):
    one, other = stage(make_settings(index_files=True)), stage(make_settings(index_files=True))
    assert one.folder != other.folder
    # The order in which shards were finished has no say either.
    assert say(describe_dataset, one) == say(
        describe_dataset, replace(other, reports=other.reports[::-1])
    )


def test_publishing_would_overwrite_no_file_of_others(stage, say):
    settings = make_settings(convention="tf_object_detection", index_files=True)
    names = {
        name
        for each in (None, settings)
        for name in say(describe_dataset, stage(each))
        if "/" not in name
    }
    assert len(names) >= 7
    for name in names:  # alone in an output, somebody else made them
        action, sentence = decide_action(
            OutputState("/out", [name]), PlanEntry("plan", {"compression": "none"}), overwrite=False
        )
        assert (action, name in sentence) == ("refuse", True)
