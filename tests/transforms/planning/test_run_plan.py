from dataclasses import FrozenInstanceError, fields

import pytest

from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.run_plan import OutputDecision, RunPlan, dataset_to_convert

DATASET = DatasetPlan("0123456789abcdef", starts={"train": [0, 9]}, notes=("a note",))


@pytest.mark.parametrize("part", [DATASET, OutputDecision(), RunPlan(DATASET)])
def test_no_part_of_a_plan_can_be_changed(part):
    for field in fields(part):
        with pytest.raises(FrozenInstanceError):
            setattr(part, field.name, None)
        assert not isinstance(getattr(part, field.name), list | set)


def test_a_decision_is_made_for_an_output_or_for_a_version_below_it():
    decision = OutputDecision(staged_as="p")
    plain, version = decision.at("/out", ""), decision.at("/out", "v")
    assert (plain.output, plain.version, plain.staging) == ("/out", "", "/out/.staging-p")
    assert (version.output, version.version, version.staging) == (
        "/out/v",
        "v",
        "/out/v/.staging-p",
    )


def test_a_run_that_does_not_convert_has_no_shards_to_convert():
    assert dataset_to_convert(RunPlan(DATASET)) is DATASET
    kept = dataset_to_convert(RunPlan(DATASET, OutputDecision("keep")))
    assert (kept.plan_id, kept.shard_count) == (DATASET.plan_id, 0)
