"""What may go wrong between a scheduler and its API server, on purpose.

A Fault names the effect it meets, what happens to it, how often and for how long.  `lost` never reaches the server;
`timeout-after-apply` does, and nobody hears of it; `late` is carried out long after the caller gave up; `refused`
is answered with an error of the API server.
"""

from __future__ import annotations

from random import Random
from typing import Literal, get_args

from msgspec import Struct

from kubesched.api.time import Duration, Instant, seconds

Target = Literal["Bind", "PatchPod", "ReadPod", "Evict", "Publish", "Call"]
Outcome = Literal["lost", "timeout-after-apply", "late", "refused"]
EFFECTS: tuple[Target, ...] = get_args(Target)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
PATIENCE: Duration = seconds(30)


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Something that goes wrong with effects of one type."""

    effect: Target
    outcome: Outcome
    pod: str = ""  # of this pod only, by namespace/name
    times: int = 1
    chance: float = 1.0  # that one of them is met, drawn from the seed
    lasting: Duration | None = None  # it is over after this long, however many it has met
    after: Duration = PATIENCE  # how long the caller waits, or the server takes
    reason: str = "InternalError"
    code: int = 500
    message: str = "injected fault"


class Faults:
    """The faults still to come."""

    def __init__(self, luck: Random) -> None:
        self._luck = luck
        self._left: list[_Coming] = []

    def add(self, fault: Fault, now: Instant) -> None:
        """From now on."""
        self._left.append(_Coming(fault, now))

    def meet(self, effect: str, pod: str, now: Instant) -> Fault | None:
        """The fault this effect meets, if any; it is used up by that."""
        self._left = [coming for coming in self._left if coming.until is None or now < coming.until]
        for coming in self._left:
            fault = coming.fault
            if fault.effect != effect or fault.pod not in ("", pod):
                continue
            if fault.chance < 1 and self._luck.random() >= fault.chance:
                continue
            coming.times -= 1
            if not coming.times:
                self._left.remove(coming)
            return fault
        return None


class _Coming:
    def __init__(self, fault: Fault, now: Instant) -> None:
        self.fault, self.times = fault, fault.times
        self.until = None if fault.lasting is None else Instant(now + fault.lasting)
