import json
from dataclasses import replace

from make_settings import make_settings

from recordmill.schemas.dataset.side_files import Remark
from recordmill.transforms.publishing.companions.describe_dataset import describe_report_data


def test_remarks_and_pictures_are_kept_for_the_report(stage, say):
    dataset = stage()
    assert say(describe_report_data, dataset) == {}  # nothing to say
    first, second = dataset.reports[:2]
    for report in (first, second):
        picture = {"key": f"{report.split}.jpg", "reason": "truncated", "picture": "AAAA"}
        with open(dataset.path_of(report, "pictures.json"), "w") as file:
            json.dump([picture], file)
    # Pictures of a shard without rejected files are those of an earlier attempt.
    first.references, second.references = first.records + 1, second.records
    dataset = replace(dataset, remarks=[Remark("One.", "sizes")])
    (content,) = say(describe_report_data, dataset).values()
    assert json.loads(content) == {
        "remarks": [{"text": "One.", "section": "sizes"}],
        "rejected": [{"key": f"{first.split}.jpg", "reason": "truncated", "picture": "AAAA"}],
    }
    assert say(describe_report_data, replace(dataset, settings=make_settings(report=False))) == {}
