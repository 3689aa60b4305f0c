import json
from dataclasses import replace

from make_settings import make_settings

from recordmill.schemas.dataset.side_files import Remark
from recordmill.transforms.publishing.companions.describe_dataset import describe_report_data


def test_remarks_and_examples_are_kept_for_the_report(stage, say):
    dataset = stage()
    assert say(describe_report_data, dataset) == {}  # nothing to say
    example = {
        "change": "rotated",
        "key": "a.jpg",
        "changes": ["reencoded", "rotated"],
        "before_bytes": 1,
    }
    example |= {"after_bytes": 2, "before": "AAAA", "after": "BBBB"}
    for split in ("train", "test"):
        report = next(each for each in dataset.reports if (each.split, each.index) == (split, 0))
        with open(dataset.path_of(report, "examples.json"), "w") as file:
            json.dump([{**example, "key": f"{split}.jpg"}], file)
    dataset = replace(dataset, remarks=[Remark("One.", "sizes")])
    (content,) = say(describe_report_data, dataset).values()
    assert json.loads(content) == {
        "remarks": [{"text": "One.", "section": "sizes"}],
        "examples": [{**example, "key": "test.jpg"}],
    }
    assert say(describe_report_data, replace(dataset, settings=make_settings(report=False))) == {}
