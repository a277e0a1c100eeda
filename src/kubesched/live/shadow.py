"""A scheduler that only watches: it decides everything and writes nothing, and is compared with the one at work.

What the core wants written is held back.  A status or an Event is answered as if it had been written.  A binding is not
answered at all until somebody else has bound the pod: then the core finds it bound elsewhere, or where it wanted,
and the two decisions are compared.  A pod that nobody binds within a while is tried again.  An eviction is answered
when the victim has gone by itself, or after a while with no.

The comparison is made at the moment the other binding is seen, on the cluster as it was just before.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, TypeAlias

from kubesched.api.objects import Pod
from kubesched.api.time import Duration, Instant, seconds
from kubesched.core.core import Core
from kubesched.core.messages import (
    AnyEffect,
    Bind,
    Call,
    Completed,
    EffectId,
    Event,
    Evict,
    Observed,
    PatchPod,
    Publish,
)
from kubesched.drive.world import World
from kubesched.framework.decision import Decision
from kubesched.framework.steps import Answer, Failure, HttpPost

PATIENCE: Duration = seconds(60)
Result: TypeAlias = Literal["same", "tied", "different", "refused", "nowhere"]


class Comparison(NamedTuple):
    """Where another scheduler bound a pod, and what we would have done.

    `tied`: their node was as good as ours.  `different`: it fits, and we found a better one.  `refused`: by our
    filters it does not fit there.  `nowhere`: we found no node at all.
    """

    pod: str
    result: Result
    ours: str
    theirs: str
    why: str = ""


def compare(decision: Decision, theirs: str) -> Comparison:
    """Our decision, and the node another scheduler chose."""
    if not decision.placed:
        return Comparison(decision.pod, "nowhere", "", theirs, decision.message)
    ours = decision.node
    if ours == theirs:
        return Comparison(decision.pod, "same", ours, theirs)
    if theirs in decision.best:
        return Comparison(decision.pod, "tied", ours, theirs)
    if theirs in decision.feasible_nodes:
        return Comparison(decision.pod, "different", ours, theirs, _margin(decision, theirs))
    if theirs not in decision.names:
        return Comparison(decision.pod, "refused", ours, theirs, "the node was not known here")
    status = decision.status(theirs)
    return Comparison(decision.pod, "refused", ours, theirs, f"{status.plugin}: {status.message}".strip(": "))


def _margin(decision: Decision, theirs: str) -> str:
    """By what our node was better, the largest part first."""
    if decision.totals is None:
        return ""
    ours, other = decision.scores_of(decision.node), decision.scores_of(theirs)
    parts = sorted(((ours[name] - other[name], name) for name in ours), key=lambda part: -abs(part[0]))
    told = ", ".join(f"{name} {difference:+}" for difference, name in parts if difference)
    return f"{sum(ours.values()) - sum(other.values())} points behind: {told}"


class Comparing:
    """Looks at every event before the core is told of it, for bindings of other schedulers."""

    def __init__(self, core: Core, told: Callable[[Comparison], None]) -> None:
        self.tally: Counter[str] = Counter()
        self._core, self._told = core, told

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Observed) or event.gone or not isinstance(event.obj, Pod):
            return
        core, pod = self._core, event.obj
        seen = core.mirror.pods.get(pod.key)
        if seen is None or seen.uid != pod.uid or seen.spec.node_name or not pod.spec.node_name:
            return  # not a pod that has just been bound
        if pod.spec.scheduler_name not in core.profiles or core.unsynced:
            return
        flight = core.flights.get(pod.uid)
        decision = core.what_if(seen) if flight is None else flight.decision
        comparison = compare(decision, pod.spec.node_name)
        self.tally[comparison.result] += 1
        self._told(comparison)


class ShadowWorld:
    """A world in which nothing is written.

    Args:
        world: the real one; it is only asked.
        binding_verbs: by which extenders bind; they are not asked to.
    """

    def __init__(self, world: World, binding_verbs: Iterable[str] = (), patience: Duration = PATIENCE) -> None:
        self._world = world
        self._verbs = frozenset(binding_verbs)
        self._patience = patience
        self._inbox: deque[Event] = deque()
        self._held: dict[EffectId, Instant] = {}  # until when, in the order in which they were wanted
        self._victims: dict[str, list[EffectId]] = {}  # by uid

    @property
    def now(self) -> Instant:
        return self._world.now

    def perform(self, effects: Iterable[AnyEffect]) -> None:
        asked: list[AnyEffect] = []
        for effect in effects:
            match effect:
                case Publish() | PatchPod():
                    self._inbox.append(Completed(effect.id))
                case Evict(uid=uid):
                    self._victims.setdefault(uid, []).append(effect.id)
                    self._hold(effect)
                case Call(step=HttpPost(_, verb)) if verb not in self._verbs:
                    asked.append(effect)
                case Bind() | Call():
                    self._hold(effect)
                case _:
                    asked.append(effect)
        self._world.perform(asked)

    def _hold(self, effect: AnyEffect) -> None:
        self._held[effect.id] = Instant(self.now + self._patience)

    def take(self) -> Event | None:
        if self._inbox:
            return self._inbox.popleft()
        due = self._due
        if due is not None and due <= self.now:
            effect = next(iter(self._held))
            del self._held[effect]
            failure = Failure("Forbidden", "a shadow writes nothing, and nobody else has done it", 403)
            return Completed(effect, Answer(failure=failure))
        event = self._world.take()
        if isinstance(event, Observed) and event.gone and self._victims:
            for effect in self._victims.pop(event.obj.uid, ()):
                if self._held.pop(effect, None) is not None:
                    self._inbox.append(Completed(effect))
        return event

    @property
    def _due(self) -> Instant | None:
        return next(iter(self._held.values()), None)

    def sleep(self, until: Instant | None) -> bool:
        if self._inbox:
            return True
        due = [moment for moment in (until, self._due) if moment is not None]
        return self._world.sleep(min(due, default=None))
