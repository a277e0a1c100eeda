"""An attempt that came to nothing: back into the queue, and a word to whoever waits for the pod.

The word is kube-scheduler's own: the PodScheduled condition with its reason and full message, and a
FailedScheduling Event with the message cut to what an Event holds.  A condition that says the same as before is
not written again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from kubesched.api.objects import Pod, PodCondition
from kubesched.api.time import Duration, format_rfc3339, milliseconds
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.messages import PatchPod
from kubesched.core.reminders import SayAgain
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod
from kubesched.framework.status import Code, Status
from kubesched.framework.steps import Answer

if TYPE_CHECKING:
    from kubesched.core.core import Core

NOTE_AT_MOST = 1024  # bytes of an Event's note
SAY_AT_MOST = 4  # times, until an unwritable status is left for the next attempt
SAY_AGAIN_AFTER: Duration = milliseconds(10)


class Said(Struct, frozen=True):
    """What we last told a pod's status."""

    pod: str
    condition: PodCondition | None
    nominated: str | None


class Failing:
    """The way back into the queue."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._said: dict[str, Said] = {}
        self._promising: dict[str, int] = {}  # uid → writes of a promise, unanswered or to be said again

    def unfit(self, queued: QueuedPod, profile: Profile, decision: Decision) -> None:
        """The decision itself was no."""
        broke = decision.outcome is Outcome.ERROR
        self._return(queued, decision, frozenset() if broke else decision.rejectors, decision.pending)
        self._tell(queued.info, profile, decision, "SchedulerError" if broke else "Unschedulable", decision.nominate)

    def after_decision(self, queued: QueuedPod, profile: Profile, decision: Decision, status: Status) -> None:
        """The pod was placed, and something afterwards said no."""
        rejectors = frozenset({status.plugin}) if status.rejected and status.plugin else frozenset()
        pending = rejectors if status.code is Code.PENDING else frozenset()
        self._return(queued, decision, rejectors, pending)
        reason = "Unschedulable" if status.rejected else "SchedulerError"
        self._tell(queued.info, profile, decision, reason, "")

    def _return(
        self, queued: QueuedPod, decision: Decision, rejectors: frozenset[str], pending: frozenset[str]
    ) -> None:
        core, seen = self._core, self._core.mirror.pods.get(queued.info.key)
        if seen is None or seen.uid != queued.uid:
            core.queue.done(queued.uid)
            core.life.move(queued.info, "gone")
        elif seen.spec.node_name:
            core.queue.done(queued.uid)
            core.life.move(queued.info, "bound_elsewhere", seen.spec.node_name)
        else:
            if seen is not queued.info.pod:
                queued.info = PodInfo(seen)
            queued.strikes = queued.strikes + 1 if decision.accident else 0
            core.queue.put_back(queued, core.now, rejectors=sorted(rejectors), pending=sorted(pending))

    def _tell(self, info: PodInfo, profile: Profile, decision: Decision, reason: str, nominate: str | None) -> None:
        core = self._core
        if info.uid in core.queue:
            core.queue.nominate(info, self.promising(info.uid) if nominate is None else nominate)
        message = decision.message
        core.publish(info, profile, "FailedScheduling", cut(message), warning=True)
        condition = PodCondition(
            type="PodScheduled",
            status="False",
            reason=reason,
            message=message,
            observed_generation=info.pod.metadata.generation,
        )
        self.say(info, condition, nominate)

    def unreadable(self, info: PodInfo, profile: Profile, why: str) -> None:
        """A pod cannot be read, and so not be tried: say so, once for every reason."""
        said = self._said.get(info.uid)
        if said is not None and said.condition is not None and said.condition.message == why:
            return
        self._core.publish(info, profile, "FailedScheduling", cut(f"skip schedule unreadable pod: {why}"), warning=True)
        self.say(info, PodCondition(type="PodScheduled", status="False", reason="SchedulerError", message=why), None)

    # ── a pod's status ───────────────────────────────────────────────────────────────────────────────────────

    def say(self, info: PodInfo, condition: PodCondition | None, nominate: str | None) -> None:
        """Write a pod's status, unless it says so already."""
        said = self._said.get(info.uid)
        before = said.condition if said is not None and said.condition is not None else _scheduled(info.pod)
        nominated = said.nominated if said is not None and said.nominated is not None else None
        if nominated is None:
            nominated = info.pod.status.nominated_node_name
        if condition is not None and before is not None and _alike(condition, before):
            condition = None
        if nominate == nominated:
            nominate = None
        if condition is None and nominate is None:
            return
        if condition is not None:
            condition = self.stamped(info, condition)
        self._said[info.uid] = Said(info.key, condition or before, nominated if nominate is None else nominate)
        self._send(info.uid, info.key, condition, nominate, tries=1)

    def stamped(self, info: PodInfo, condition: PodCondition) -> PodCondition:
        """The condition with the time it last turned."""
        said = self._said.get(info.uid)
        before = said.condition if said is not None and said.condition is not None else _scheduled(info.pod)
        kept = before is not None and before.status == condition.status and before.last_transition_time
        turned = kept or format_rfc3339(self._core.now)
        return structs.replace(condition, last_transition_time=turned)

    def _send(self, uid: str, pod: str, condition: PodCondition | None, nominate: str | None, tries: int) -> None:
        core = self._core

        def heir(answer: Answer) -> None:
            failure = answer.failure
            if failure is not None and failure.reason != "NotFound" and tries < SAY_AT_MOST and uid in self._said:
                delay = Duration(max(SAY_AGAIN_AFTER * 5 ** (tries - 1), failure.retry_after))
                core.remind(delay, SayAgain(uid, tries + 1, about_promise=nominate is not None))
                return
            if nominate is not None:
                self._promised(uid)
            if failure is not None:
                self._said.pop(uid, None)  # the next attempt says it again

        if nominate is not None:
            self._promising[uid] = self._promising.get(uid, 0) + 1
        core.outbox.emit(PatchPod, heir, pod=pod, uid=uid, condition=condition, nominated_node_name=nominate)

    def _promised(self, uid: str) -> None:
        self._promising[uid] -= 1
        if not self._promising[uid]:
            del self._promising[uid]

    def promising(self, uid: str) -> str | None:
        """The node it was promised last, or "", while that is being written; what its status says is older then."""
        said = self._said.get(uid) if uid in self._promising else None
        return None if said is None else said.nominated

    def say_again(self, uid: str, tries: int, about_promise: bool) -> None:
        said = self._said.get(uid)
        if said is not None and uid in self._core.queue:
            self._send(uid, said.pod, said.condition, said.nominated, tries)
        if about_promise:
            self._promised(uid)  # the try before this one

    def expected(self, info: PodInfo, node: str) -> None:
        """A flight writes where its pod is going; should it come back, that has to be taken back.

        Whatever becomes of the write: one that nobody answered may have been carried out.
        """
        said = self._said.get(info.uid)
        self._said[info.uid] = Said(info.key, None if said is None else said.condition, node)

    def fenced(self, uid: str) -> None:
        """Somebody else's condition has been written into its status; of where it is going that says nothing."""
        said = self._said.get(uid)
        if said is not None:
            self._said[uid] = structs.replace(said, condition=None)

    def forget(self, uid: str) -> None:
        self._said.pop(uid, None)


def cut(note: str) -> str:
    """An Event's note holds so many bytes."""
    data = note.encode()
    if len(data) <= NOTE_AT_MOST:
        return note
    return data[: NOTE_AT_MOST - 4].decode(errors="ignore") + " ..."


def _scheduled(pod: Pod) -> PodCondition | None:
    return next((condition for condition in pod.status.conditions if condition.type == "PodScheduled"), None)


def _alike(a: PodCondition, b: PodCondition) -> bool:
    return (a.status, a.reason, a.message) == (b.status, b.reason, b.message)
