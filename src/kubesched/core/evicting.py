"""Preemption after the decision: make the victims go, and wake the preemptor when they have gone.

A decision may name pods to evict.  Their deletions are effects; until every one has been answered the preemptor
is held back, so that it does not choose more victims while the first are still on their way; whoever was held
back then waits for any room again, not only for that one.  When the last victim has left our view the preemptor
is woken, whatever hints say: it must never sleep through its victims' departure.

The watch may be slower than the answer to a deletion.  A pod whose end was promised is ending, for whomever it was
ordered and whatever our view shows: nobody evicts it once more, and should its own bind fail, it is not tried again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubesched.cluster.podinfo import PodInfo
from kubesched.core import watching
from kubesched.core.messages import Evict
from kubesched.framework.decision import Decision
from kubesched.framework.profile import Profile
from kubesched.framework.records import State
from kubesched.framework.steps import Answer

if TYPE_CHECKING:
    from kubesched.core.core import Core


class Preemption:
    """Room being made for one pod."""

    __slots__ = ("failed", "node", "pod", "remaining", "unanswered", "victims")

    def __init__(self, pod: PodInfo, node: str) -> None:
        self.pod = pod
        self.node = node
        self.unanswered: set[str] = set()  # victims whose eviction has not been answered, by uid
        self.victims: frozenset[str] = frozenset()  # all of them
        self.remaining: dict[str, None] = {}  # those whose departure makes the room, still in our view
        self.failed = False  # a victim would not go, so the room will not be made


class Evictions:
    """All preemptions under way, by the uid of the preemptor."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.under_way: dict[str, Preemption] = {}
        self.ordered: set[str] = set()  # pods whose eviction has not been answered, by uid
        self.ending: set[str] = set()  # pods whose end was promised, and that our view still has

    def unanswered(self, uid: str) -> bool:
        preemption = self.under_way.get(uid)
        return preemption is not None and bool(preemption.unanswered)

    def begin(self, pod: PodInfo, profile: Profile, decision: Decision) -> None:
        """Evict the victims of a decision."""
        result = decision.post_filter
        assert result is not None, "a preemption needs a decision that asked for it"
        assert result.node, "a preemption needs a node"
        preemption = self.under_way[pod.uid] = Preemption(pod, result.node)
        self._release_promises(pod, result.node)
        preemption.victims = frozenset(victim.uid for victim in result.victims)
        preemption.remaining = dict.fromkeys(victim.uid for victim in result.victims)
        for victim in result.victims:
            self._evict(preemption, profile, victim)
        self._settle(preemption)

    def _release_promises(self, pod: PodInfo, node: str) -> None:
        """Lower pods that were promised room on this node shall look elsewhere, and not wait for it any longer."""
        core = self._core
        for other in list(core.queue.nominated().get(node, ())):
            if other.priority < pod.priority:
                core.queue.nominate(other, "")
                core.failing.say(other, None, "")
                core.queue.activate([other.uid], core.now, patiently=True)

    def _evict(self, preemption: Preemption, profile: Profile, victim: PodInfo) -> None:
        core, preemptor = self._core, preemption.pod
        note = f"Preempted by pod {preemptor.uid} on node {preemption.node}"
        if core.flying.preempt(victim.uid):
            preemption.remaining.pop(victim.uid, None)
            note += " (in kube-scheduler memory)."
            core.publish(victim, profile, "Preempted", note, action="Preempting", related=preemptor.key)
            return
        seen = core.mirror.pods.get(victim.key)
        if seen is None or seen.uid != victim.uid:
            preemption.remaining.pop(victim.uid, None)
            return  # it went while an extender was asked
        if seen.terminating or victim.uid in self.ending:
            return  # it is going already
        preemption.unanswered.add(victim.uid)
        if victim.uid in self.ordered:
            return  # for somebody else, and one answer will do
        self.ordered.add(victim.uid)

        def heir(answer: Answer) -> None:
            failure = answer.failure
            if failure is None:
                core.publish(victim, profile, "Preempted", note, action="Preempting", related=preemptor.key)
            self._answered(victim, refused=failure is not None and failure.reason != "NotFound")

        message = f"{profile.name}: preempting to accommodate a higher priority pod"
        core.outbox.emit(Evict, heir, pod=victim.key, uid=victim.uid, message=message)

    def _answered(self, victim: PodInfo, refused: bool) -> None:
        """An eviction has been answered, for everyone who waits for it."""
        self.ordered.discard(victim.uid)
        if not refused:
            self._await_end(victim)
        for preemption in list(self.under_way.values()):
            if victim.uid in preemption.unanswered:
                preemption.unanswered.discard(victim.uid)
                preemption.failed |= refused
                self._settle(preemption)

    def _await_end(self, victim: PodInfo) -> None:
        """Its end is promised; until it has gone, it must not be chosen once more.

        Not even when our view shows that it is going: somebody else may have deleted it before, and then its
        condition does not say yet for whom it goes; and an attempt that waits for an extender has an older view.
        """
        core = self._core
        seen = core.mirror.pods.get(victim.key)
        if seen is not None and seen.uid == victim.uid:
            self.ending.add(victim.uid)
            watching.end_promised(core, victim.uid)

    def needless(self, uid: str) -> None:
        """Nobody needs to make room for this pod any more."""
        self.under_way.pop(uid, None)

    def gone(self, uid: str) -> None:
        """A pod has left our view: perhaps someone waited for that."""
        self.needless(uid)
        self.ending.discard(uid)
        for preemption in list(self.under_way.values()):
            if uid in preemption.remaining:
                del preemption.remaining[uid]
                self._settle(preemption)

    def node_gone(self, name: str) -> None:
        """A node has left our view, and all room on it; what was left of its victims may stay for as long as it likes.

        Not kept from kube-scheduler, where the preemptor sleeps until the last of them has gone, or until the flush.
        """
        for preemption in list(self.under_way.values()):
            if preemption.node == name:
                preemption.remaining.clear()
                self._settle(preemption)

    def _settle(self, preemption: Preemption) -> None:
        """Wake the preemptor when its room has been made, or will not be: then it looks for another way.

        Not kept from kube-scheduler: it tries again at once, and only the limit of its client's requests keeps a
        server that refuses each eviction from being asked without a pause.
        """
        uid = preemption.pod.uid
        if preemption.unanswered or self.under_way.get(uid) is not preemption:
            return
        if preemption.remaining and not preemption.failed:
            if self._core.life.state(uid) is State.GATED:  # nothing is under way any more: other room will do as well
                self._core.queue.activate([uid], self._core.now)
            return
        failed, preemption.failed = preemption.failed, False
        preemption.remaining = dict.fromkeys(sorted(preemption.victims & self.ending))  # their end wakes it once more
        if not preemption.remaining:
            del self.under_way[uid]
        self._core.queue.activate([uid], self._core.now, patiently=failed)
