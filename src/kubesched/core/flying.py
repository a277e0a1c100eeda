"""All flights: starts them, gives them what they ask for, and ends them.

A flight asks (flight.py) and this module knows how each wish is granted: an effect, a timer, a permission, a
look at the cluster.  It is the only place that moves a pod out of flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubesched.api.time import Duration
from kubesched.core import watching
from kubesched.core.flight import Fence, FencedBind, Flight, Pause, Permission, Promise, Read, Want
from kubesched.core.messages import Bind, Call, PatchPod, ReadPod
from kubesched.core.reminders import GoOn, LaterJudge, LookTimeout, PermitTimeout
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision
from kubesched.framework.errors import words
from kubesched.framework.events import ASSIGNED_POD_DELETE
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod
from kubesched.framework.records import State
from kubesched.framework.status import SUCCESS, Status, error
from kubesched.framework.steps import Answer, Failure, WaitFor
from kubesched.framework.tools import Judge

if TYPE_CHECKING:
    from kubesched.core.core import Core


class Lookout(NamedTuple):
    """A flight that waits for something to be seen in the cluster."""

    want: WaitFor
    token: int
    timer: int


class Flying:
    """The pods between their decision and their bind."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.flights: dict[str, Flight] = {}
        self._lookouts: dict[str, Lookout] = {}
        self._tokens: dict[str, int] = {}  # which question of a flight is open; older answers are void
        self._token = 0

    # ── start and end ────────────────────────────────────────────────────────────────────────────────────────

    def launch(self, queued: QueuedPod, cycle: Cycle, profile: Profile, decision: Decision) -> None:
        """A pod has been placed: let it hold its room, and be on its way."""
        core, info = self._core, queued.info
        core.life.move(info, "placed", decision.node)
        core.mirror.assume(info, decision.node)
        promised = core.queue.promised(info.uid)
        core.queue.nominate(info, "")
        row = core.mirror.table.row_of.get(decision.node)
        node = None if row is None else core.mirror.table.nodes[row]
        flight = Flight(core, queued, cycle, profile, decision, "" if node is None else node.uid)
        self.flights[info.uid] = flight
        if promised and promised != decision.node:
            watching.tell_of_released_promise(core, info.pod, promised)
        self._advance(flight, None)

    def _end(self, flight: Flight, status: Status) -> None:
        core, info = self._core, flight.info
        if status.ok:
            self._leave(flight)
            core.asking(flight.cycle, flight.land)
            core.life.move(info, "bound", flight.node)
            text = f"Successfully assigned {info.key} to {flight.node}"
            core.publish(info, flight.profile, "Scheduled", text, action="Binding")
            return
        self.abort(flight)
        flight.decision.after = status
        # Kept from kube-scheduler: after a rejection the others are woken last and the pod itself is not; after
        # an error it may be woken by the room it leaves behind.
        if not status.rejected:
            self._tell_of_room(flight, excluding="")
        core.failing.after_decision(flight.queued, flight.profile, flight.decision, status)
        if status.rejected:
            self._tell_of_room(flight, excluding=info.uid)

    def confirmed(self, flight: Flight) -> None:
        """The watch says it is bound where we wanted it, before the answer to our request does."""
        self._end(flight, SUCCESS)

    def abort(self, flight: Flight) -> None:
        """Take a flight back.  What becomes of the pod is the caller's to say."""
        self._leave(flight)
        self._core.asking(flight.cycle, flight.unwind)

    def _leave(self, flight: Flight) -> None:
        uid = flight.info.uid
        del self.flights[uid]
        self._tokens.pop(uid, None)
        lookout = self._lookouts.pop(uid, None)
        if lookout is not None:
            self._core.timers.cancel(lookout.timer)
        for timer in flight.holds.values():
            self._core.timers.cancel(timer)
        flight.holds.clear()

    def _tell_of_room(self, flight: Flight, excluding: str) -> None:
        core = self._core
        core.queue.notify(ASSIGNED_POD_DELETE, flight.assumed, None, core.now, lambda other: other.uid != excluding)

    # ── what a flight asks for ───────────────────────────────────────────────────────────────────────────────

    def _advance(self, flight: Flight, answer: Answer | None) -> None:
        """Resume a flight and see to what it wants next, until it has to wait for that or is over."""
        while True:
            try:
                want = self._ask(flight, answer)
            except StopIteration as done:
                self._end(flight, done.value)
                return
            self._token += 1
            self._tokens[flight.info.uid] = self._token
            answer = self._grant(flight, want, self._token)
            if answer is None:
                return

    def _ask(self, flight: Flight, answer: Answer | None) -> Want:
        """Resume a flight.  Raises StopIteration with its status when it is over."""
        if answer is None:
            return self._core.asking(flight.cycle, next, flight.course)
        return self._core.asking(flight.cycle, flight.course.send, answer)

    def _grant(self, flight: Flight, want: Want, token: int) -> Answer | None:
        """See to a wish; its answer, where that is there already."""
        core, info = self._core, flight.info

        def heir(answer: Answer) -> None:
            self._resume(flight, token, answer)

        match want:
            case Permission():
                flight.asks_permission = True
            case FencedBind(node, version):
                core.outbox.emit(Bind, heir, pod=info.key, uid=info.uid, node=node, resource_version=version)
            case Read():
                core.outbox.emit(ReadPod, heir, pod=info.key, uid=info.uid)
            case Promise(node):
                core.failing.expected(info, node)
                core.outbox.emit(PatchPod, heir, pod=info.key, uid=info.uid, nominated_node_name=node)
            case Fence(condition, version):
                stamped = core.failing.stamped(info, condition)
                core.failing.fenced(info.uid)  # the pod's status no longer says what we last told it
                fence = {"condition": stamped, "resource_version": version}
                core.outbox.emit(PatchPod, heir, pod=info.key, uid=info.uid, **fence)
            case Pause(delay):
                core.remind(delay, GoOn(info.uid, token))
            case WaitFor() as wait:
                timer = core.remind(wait.timeout, LookTimeout(info.uid, token))
                self._lookouts[info.uid] = Lookout(wait, token, timer)
                return self._look(info.uid)
            case _ as step:
                core.outbox.emit(Call, heir, step=step)
        return None

    def _resume(self, flight: Flight, token: int, answer: Answer) -> None:
        """An answer has come; it counts only if its question is still open."""
        if self._tokens.get(flight.info.uid) == token and self.flights.get(flight.info.uid) is flight:
            self._advance(flight, answer)

    def wake(self, uid: str, token: int) -> None:
        flight = self.flights.get(uid)
        if flight is not None:
            self._resume(flight, token, Answer())

    # ── waiting for something to be seen ─────────────────────────────────────────────────────────────────────

    def look_again(self) -> None:
        """The cluster has changed."""
        for uid, lookout in list(self._lookouts.items()):
            answer = self._look(uid)
            if answer is not None:
                self._resume(self.flights[uid], lookout.token, answer)

    def _look(self, uid: str) -> Answer | None:
        """Whether what a flight looks out for is there; then it need not look any more."""
        lookout = self._lookouts[uid]
        try:
            status = lookout.want.look(self._core.mirror.objects)
            answer = None if status is None else Answer(data=status)
        except Exception as problem:  # a plugin's look costs its own pod
            text = f"waiting for {lookout.want.what}: {words(problem)}"
            answer = Answer(failure=Failure("InternalError", text))
        if answer is not None:
            self._core.timers.cancel(lookout.timer)
            del self._lookouts[uid]
        return answer

    def give_up_looking(self, uid: str, token: int) -> None:
        lookout = self._lookouts.get(uid)
        if lookout is not None and lookout.token == token:
            del self._lookouts[uid]
            text = f"timed out waiting for {lookout.want.what}"
            self._resume(self.flights[uid], token, Answer(failure=Failure("Timeout", text)))

    # ── permit ───────────────────────────────────────────────────────────────────────────────────────────────

    def hold(self, flight: Flight, holds: Mapping[str, Duration]) -> None:
        """Plugins asked for patience, each for so long at most."""
        for plugin, timeout in holds.items():
            reminder = PermitTimeout(flight.info.uid, plugin, timeout)
            flight.holds[plugin] = self._core.remind(timeout, reminder)

    def judge(self, judge: Judge) -> None:
        """A plugin's word about a waiting pod; nothing happens if it does not wait (for that plugin)."""
        if judge.after > 0:
            self._core.remind(judge.after, LaterJudge(Judge(judge.verb, judge.plugin, judge.uid, judge.message)))
            return
        flight = self.flights.get(judge.uid)
        if flight is None or not flight.holds:
            return
        if judge.verb == "reject":
            self._release(flight, Answer(failure=Failure(judge.plugin, judge.message or "rejected")))
        elif judge.plugin in flight.holds:
            self._core.timers.cancel(flight.holds.pop(judge.plugin))
            if not flight.holds:
                self._release(flight, Answer())

    def judge_all(self, uid: str, verb: str, message: str) -> None:
        """An operator's word stands for every plugin's."""
        flight = self.flights.get(uid)
        if flight is not None:
            for plugin in list(flight.holds):
                self.judge(Judge("allow" if verb == "allow" else "reject", plugin, uid, message))

    def preempt(self, uid: str) -> bool:
        """Make a pod that is not bound yet give way; False if it is too late for that."""
        flight = self.flights.get(uid)
        if flight is None or self._core.life.state(uid) not in (State.WAITING, State.PREBINDING):
            return False
        if flight.holds:
            self._release(flight, Answer(failure=Failure(next(iter(flight.holds)), "preempted", code=1)))
        else:
            self._end(flight, error("preempted by DefaultPreemption"))
        return True

    def _release(self, flight: Flight, answer: Answer) -> None:
        for timer in flight.holds.values():
            self._core.timers.cancel(timer)
        flight.holds.clear()
        flight.permission = answer
        if flight.asks_permission:
            self._resume(flight, self._tokens[flight.info.uid], answer)
