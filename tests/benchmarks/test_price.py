from typing import Any

from benchmarks.price import missed

PREDICTED = {"cpu_seconds": 10.0, "bytes_read": 100, "bytes_shuffled": 10, "bytes_written": 80}


def case(**measured: Any) -> dict[str, dict[str, float]]:
    return {"predicted": PREDICTED, "measured": {**PREDICTED, **measured}}


def test_a_price_may_be_a_quarter_off() -> None:
    assert missed({"drawn, header": case(cpu_seconds=12.5, bytes_written=60)}) == []
    assert missed(
        {"drawn, header": case(cpu_seconds=12.6), "drawn, default": case(bytes_shuffled=7)}
    ) == [
        "cpu_seconds of drawn, header is 1.26 of what was predicted",
        "bytes_shuffled of drawn, default is 0.70 of what was predicted",
    ]
