"""What a plugin answers: yes, no and why, skip me, or wait.

Three kinds of no differ in what happens next.  `unschedulable`: not now, though fewer pods on the node may help
(preemption looks at it).  `unresolvable`: not on this node whoever leaves.  `pending`: nothing is wrong here, but
someone outside must act first; when they have, the pod is tried again without backing off.

A plugin that cannot answer raises; the core makes an ERROR of it that costs only this pod's attempt.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from kubesched.api.time import Duration


class Code(IntEnum):
    """Kubernetes' status codes; the numbers are part of its contract."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def text(self) -> str:
        """The name Kubernetes prints."""
        return _TEXT[self]

    @property
    def rejects(self) -> bool:
        return self in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)


_TEXT = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}


class Status(Struct, frozen=True, omit_defaults=True):
    """An answer with its reasons.  `plugin` is filled in by the core."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def rejected(self) -> bool:
        return self.code.rejects

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @property
    def sound(self) -> bool:
        """Whether it is made of what a Status is made of; a plugin may have put anything into it."""
        code: object = self.code
        reasons: object = self.reasons
        texts = isinstance(reasons, tuple) and all(isinstance(reason, str) for reason in reasons)
        return texts and isinstance(code, Code)

    def by(self, plugin: str) -> Status:
        """The same answer, with who gave it."""
        return self if self.plugin == plugin else Status(self.code, self.reasons, plugin)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """No, not now; evicting pods may help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """No, and evicting pods would not help."""
    return Status(Code.UNRESOLVABLE, reasons)


def pending(*reasons: str) -> Status:
    """Not before someone outside has acted."""
    return Status(Code.PENDING, reasons)


def error(*reasons: str) -> Status:
    """The question could not be answered; the pod is tried again after a while."""
    return Status(Code.ERROR, reasons)


class Wait(Struct, frozen=True):
    """Permit's third answer: hold the pod until it is allowed, rejected, or this long has passed (which rejects)."""

    timeout: Duration
    reason: str = ""
