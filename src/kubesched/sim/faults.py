"""What may go wrong between a scheduler and its API server, on purpose.

A Fault names the effect it meets, what happens to it and how often.  `lost` never reaches the server;
`timeout-after-apply` does, and nobody hears of it; `late` is carried out long after the caller gave up; `refused`
is answered with an error of the API server.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from kubesched.api.time import Duration, seconds

Target = Literal["Bind", "PatchPod", "ReadPod", "Evict", "Publish", "Call"]
Outcome = Literal["lost", "timeout-after-apply", "late", "refused"]
EFFECTS: tuple[str, ...] = get_args(Target)
OUTCOMES: tuple[str, ...] = get_args(Outcome)
PATIENCE: Duration = seconds(30)


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Something that goes wrong with effects of one type."""

    effect: Target
    outcome: Outcome
    pod: str = ""  # of this pod only, by namespace/name
    times: int = 1
    after: Duration = PATIENCE  # how long the caller waits, or the server takes
    reason: str = "InternalError"
    code: int = 500
    message: str = "injected fault"


class Faults:
    """The faults still to come."""

    def __init__(self) -> None:
        self._left: list[tuple[Fault, int]] = []

    def add(self, fault: Fault) -> None:
        self._left.append((fault, fault.times))

    def meet(self, effect: str, pod: str) -> Fault | None:
        """The fault this effect meets, if any; it is used up by that."""
        for i, (fault, times) in enumerate(self._left):
            if fault.effect == effect and fault.pod in ("", pod):
                if times > 1:
                    self._left[i] = (fault, times - 1)
                else:
                    del self._left[i]
                return fault
        return None
