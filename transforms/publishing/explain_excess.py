"""Says after a failed run what was lost, and with which flags it can be left out or accepted."""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordmill import storage
from recordmill.schemas.dataset.file_names import REJECTED
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.yaml_core import write_set_flag
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.publishing.contract import Breach, accepting_settings, show_breaches
from recordmill.transforms.publishing.excess import CONTAINERS, LOST_CLASSES, Excess
from recordmill.transforms.publishing.rejected_list import MOST_NAMED, RejectedList


@dataclass(frozen=True, slots=True)
class RejectedInRun:
    """What a run has rejected, and how a further run can leave it out.

    Attributes:
        counts: how much it is, by reason.
        listed: where it is listed, and the first of it.
        settings: what the dataset is.
        page: the page with a remedy for each reason.
        names_inputs: whether the inputs have names, which keys begin with.
        excludes: whether the writer takes the setting `exclude`.
    """

    counts: Mapping[str, int]
    listed: RejectedList
    settings: DatasetSettings
    page: str
    names_inputs: bool = False
    excludes: bool = True

    @property
    def lines(self) -> list[str]:
        """The first rejected things by name, and where all of them are listed."""
        lines, count = self.listed.show_first(self.counts), sum(self.counts.values())
        if self.listed.path and count == 1:
            lines.append(f"{self.listed.path} lists it")
        elif self.listed.path and count:
            lines.append(f"{self.listed.path} lists all {count:,} of them")
        return lines

    def leave_out(self, lost_classes: int) -> str | None:
        """Returns how to leave out all rejected things; None if that cannot be said.

        Few files of their own go into `ignore`. `exclude` takes the list of anything.

        Args:
            lost_classes: how many classes have lost all their images. A class whose files are
                ignored is none; one whose images are excluded is still lost.
        """
        first, path = self.listed.first, self.listed.path
        if not first:
            return None
        source = self.settings.source
        is_a_file = not (source.files or source.gives_pixels or self.names_inputs)
        if is_a_file and len(first) <= MOST_NAMED:
            patterns = [f"/{escape_glob(item.key)}" for item in first]
            flag = write_set_flag("ignore", [*self.settings.ignore, *patterns])
            return f"leave it out with {flag}"
        if path is None or not self.excludes:
            return None
        flags = [write_set_flag("exclude", self.settings.exclude or REJECTED)]
        if lost_classes:
            flags.append(write_set_flag(LOST_CLASSES, lost_classes))
        return f"leave it out with {' '.join(flags)} after {self._copy(path)}"

    def _copy(self, path: str) -> str:
        """Returns what to do so that the file in `exclude` names everything on the list."""
        before = self.settings.exclude
        if not all(map(storage.is_local, filter(None, (path, before)))):
            return f"adding the lines of {path} to {before or REJECTED}"
        if before:  # its last line may have no end
            return f"`{{ echo; cat {shlex.quote(path)}; }} >> {shlex.quote(before)}`"
        return f"`cp {shlex.quote(path)} {REJECTED}`"


def explain_excesses(
    excesses: Sequence[Excess], further: Sequence[str], rejected: RejectedInRun
) -> str:
    """Returns the message of a run that has lost too much, in several lines.

    Args:
        excesses: the losses.
        further: sentences on other losses, with their remedies.
        rejected: what was rejected.
    """
    lines = [*(each.problem for each in excesses), *further, *rejected.lines]
    ways = [each.remedy for each in excesses]
    accepting = _accept(excesses)
    if accepting and rejected.counts and CONTAINERS not in accepting:  # they cannot be excluded
        ways.append(rejected.leave_out(accepting.get(LOST_CLASSES, 0)))
    if accepting:
        ways.append(f"accept the loss with {_write_flags(accepting)}")
    offered = [*dict.fromkeys(filter(None, ways))]
    if offered:
        lines.append(", or ".join(offered))
    return "\n".join([*lines, f"{rejected.page} has a remedy for each reason"])


def _accept(excesses: Iterable[Excess]) -> Mapping[str, int]:
    """Returns the settings that allow all losses; empty if some are never allowed."""
    settings: Counter[str] = Counter()
    for excess in excesses:
        if not excess.accepting:
            return {}
        settings |= Counter(excess.accepting)
    return settings


def _write_flags(settings: Mapping[str, Any]) -> str:
    return " ".join(write_set_flag(path, value) for path, value in settings.items())


def explain_breaches(
    breaches: list[Breach], rejected: RejectedInRun, evidence: Iterable[str]
) -> str:
    """Returns the message of a run whose dataset is not as `expect` says, in several lines.

    Args:
        breaches: how it differs.
        rejected: what was rejected.
        evidence: further lines that help to find the cause.
    """
    lines = show_breaches(breaches)
    if any(each.by_rejection for each in breaches):
        lines += rejected.lines
    lines += evidence
    accepting = accepting_settings(breaches, rejected.settings.expect)
    lines.append(
        "nothing was published: correct the input, or accept the dataset with "
        f"{_write_flags(accepting)} "
        f"({rejected.page} explains both)"
    )
    return "\n".join(lines)
