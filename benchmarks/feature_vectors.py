"""Compares vectors of images by the pipeline with the usual multi-process script, side by side.

    python -m benchmarks.feature_vectors --check

Both call the same function (means and deviations of the channels) on every photograph.
`benchmarks.convert` says what is measured.
"""

from functools import partial

from benchmarks import measure, photographs
from benchmarks.convert import FEW, Case, Target, compare, missed, ratios, table

CASE = Case(
    4_000,
    ("features.feature=mean_std", "shards.name='{split}_{index}.record'"),
    "decode",
    (Target("feature_vectors", "whole", 1.0), Target("feature_vectors", "apart", 1.0)),
)
CONFIG = ("--config", "configs/feature_vectors.yaml")


def main() -> None:
    """Runs the comparison."""
    parser = measure.options(__doc__)
    parser.add_argument(
        "--count", type=int, default=CASE.count, help=f"photographs, more than {FEW} (%(default)s)"
    )
    parser.add_argument(
        "--pairs", type=int, default=5, help="rounds of both contenders (%(default)s)"
    )
    arguments = parser.parse_args()
    make = partial(photographs.make, work=arguments.work, own=arguments.photographs)
    pipeline = [*arguments.pipeline, *CONFIG]  # of two the last holds
    result = compare(CASE, pipeline, arguments.count, arguments.pairs, make, arguments.work)
    measure.console.print(table("feature_vectors", result), ratios(CASE, result))
    misses = missed("feature_vectors", CASE, result)
    measure.finish({"machine": measure.machine(), **result}, misses, arguments.check)


if __name__ == "__main__":
    main()
