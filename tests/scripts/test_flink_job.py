import pytest

from scripts import flink_job


def vertex(number, name, sent, end=0):
    return {"id": number, "name": name, "end-time": end, "metrics": {"write-bytes": sent}}


def node(number, operator, description, *inputs):
    return {
        "id": number,
        "operator": operator,
        "description": description,
        "inputs": [{"id": each} for each in inputs],
    }


JOB = {
    "vertices": [
        vertex("a", "List", 5_000),
        vertex("b", "MapPartition at AssignShards", 1_100, end=1_000),
        vertex("c", "GroupReduce at GroupByShard", 1_000),
        vertex("d", "MapPartition at {ConvertShards, PublishDataset}", 90, end=3_500),
        vertex("e", "GroupReduce at GatherReports", 0),
    ],
    "plan": {
        "nodes": [
            {"id": "a", "operator": "Map", "description": "List"},
            node("b", "MapPartition", "AssignShards, GroupCombine at GroupByShard", "a"),
            node("c", "GroupReduce", "GroupByShard", "b"),
            node("d", "MapPartition", "{ConvertShards, PublishDataset}", "c"),
            node("e", "GroupReduce", "GatherReports", "d"),
        ]
    },
}


def test_bytes_that_a_job_sent_are_added_up():
    assert flink_job.shuffled_bytes(JOB, "GroupByShard") == 1_100
    assert flink_job.shuffled_bytes(JOB, "GatherReports") == 90
    assert flink_job.sent_bytes(JOB) == 7_190


def test_how_long_it_is_from_one_end_to_another():
    assert flink_job.seconds_between(JOB, "AssignShards", "ConvertShards") == 2.5


@pytest.mark.parametrize("name", ["Nowhere", "G"])
def test_a_name_must_say_which_step(name):
    with pytest.raises(ValueError, match=r"the job has [02] steps that group at"):
        flink_job.shuffled_bytes(JOB, name)
    with pytest.raises(ValueError, match="the job has"):
        flink_job.seconds_between(JOB, name, name)


def test_the_newest_job():
    overview = {
        "jobs": [
            {"jid": "one", "start-time": 1},
            {"jid": "two", "start-time": 3},
            {"jid": "x", "start-time": 2},
        ]
    }
    assert flink_job.newest_job({"jobs/overview": overview, "jobs/two": JOB}.__getitem__) == JOB
