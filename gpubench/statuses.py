"""What can become of a case, declared once: records, the table, the terminal and pages ask here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Failure = Literal["wrong", "failed", "timed_out", "killed"]
"""``killed``: the process that measured ended, and neither finished nor was stopped by a timeout;
in files also where its device was lost."""

Status = Literal["ok", "skipped", "verified", Failure]
"""What the table says of a case. ``verified``: right on a device in software, which has no
times."""

RecordedStatus = Literal["started", Status]
"""What the record says: of a case that runs it has ``started`` alone."""

VerifiedStatus = Literal["right", Failure, "skipped", "interrupted"]
"""What ``gpubench verify`` says of a case, in the order in which it is shown."""


@dataclass(frozen=True, slots=True)
class DeclaredStatus:
    """What is to be known of a status."""

    name: Status
    letter: str
    """What stands for it in the scripts of pages."""
    urgency: int
    """The most urgent is 0: of several cases its status is shown, and its reasons come first."""
    words: str
    sign: str = ""
    """What stands before the words on pages, for those who do not see its colour."""
    is_failure: bool = False
    """Its code has to be changed; commands end with ``Exit.FOUND``."""
    is_right: bool = False
    """Its outputs were right."""

    @property
    def colour(self) -> Literal["danger", "muted"]:
        """The colour of its words on pages."""
        return "danger" if self.is_failure else "muted"


DECLARED_STATUSES: tuple[DeclaredStatus, ...] = (
    DeclaredStatus("ok", "o", 6, "measured", is_right=True),
    DeclaredStatus("skipped", "s", 5, "skipped", "\N{EN DASH}"),
    DeclaredStatus("failed", "f", 1, "failed", "!", is_failure=True),
    DeclaredStatus("wrong", "w", 0, "wrong", "✕", is_failure=True),
    DeclaredStatus("timed_out", "t", 2, "timed out", "◷", is_failure=True),
    DeclaredStatus("killed", "k", 3, "killed", "!", is_failure=True),
    DeclaredStatus("verified", "m", 4, "right, no time", "≈", is_right=True),
)
"""Their order is that of the numbers which stand for them in arrays and in the table's file. All
else that is known of them is derived from this list."""

STATUSES: tuple[Status, ...] = tuple(status.name for status in DECLARED_STATUSES)
_BY_URGENCY = sorted(DECLARED_STATUSES, key=lambda status: status.urgency)
SEVERITY: tuple[Status, ...] = tuple(status.name for status in _BY_URGENCY)
"""Statuses, the most urgent first."""
FAILURES: tuple[Status, ...] = tuple(status.name for status in _BY_URGENCY if status.is_failure)
RIGHT_STATUSES: tuple[Status, ...] = tuple(
    status.name for status in DECLARED_STATUSES if status.is_right
)
UNMEASURED_STATUSES: tuple[Status, ...] = tuple(
    status.name for status in DECLARED_STATUSES if status.name != "ok" and not status.is_failure
)
"""Statuses of cases that this machine does not measure, and that are not wrong."""

VERIFIED_STATUSES: tuple[VerifiedStatus, ...] = get_args(VerifiedStatus)
