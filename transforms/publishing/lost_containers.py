"""Whether files of many images are missing, or have lost an unknown part.

Such a container does not count as an image, because the number of its lost images is unknown.
"""

from collections import Counter
from collections.abc import Mapping

from recordmill.schemas.formatting import agree, most_frequent, say_count
from recordmill.schemas.rejection import OF_CONTAINERS
from recordmill.schemas.settings.rejection_limits import RejectionLimits
from recordmill.transforms.publishing.excess import CONTAINERS, Excess

_MOST_SHOWN = 2


def count_containers(rejected_when_listed: Mapping[str, int]) -> Counter[str]:
    """Returns the containers among the rejections of a listing, by reason."""
    return Counter(
        {
            reason: count
            for reason, count in rejected_when_listed.items()
            if reason in OF_CONTAINERS and count
        }
    )


def find_lost_containers(
    lost: Mapping[str, int], limits: RejectionLimits, examples: Mapping[str, str]
) -> Excess | None:
    """Returns the loss of too many containers; None if they were not too many.

    Args:
        lost: the containers, by reason.
        limits: how many may be lost.
        examples: a rejected container for each reason, in words.
    """
    count = sum(lost.values())
    if count <= limits.containers:
        return None
    ordered = most_frequent(lost)
    shown = [examples[reason] for reason in ordered if reason in examples][:_MOST_SHOWN]
    such_as = ""
    if len(shown) == count:
        such_as = f", {' and '.join(shown)}"
    elif shown:
        such_as = f", such as {' and '.join(shown)}"
    reasons = ", ".join(f"{lost[reason]} {reason}" for reason in ordered)
    problem = (
        f"{say_count(count, 'container', 'is')} missing or damaged ({reasons}){such_as}, and "
        f"{CONTAINERS} is {limits.containers}"
    )
    return Excess(problem, f"restore {agree(count, 'it')}", {CONTAINERS: count})
