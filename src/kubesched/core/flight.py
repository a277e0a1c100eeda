"""After the decision: reserve, permit, pre_bind, bind, post_bind — and the way back.

A placed pod is not a bound pod.  Between the two, plugins may claim things (reserve), ask for patience (permit),
or talk to the API server (pre_bind, bind), and any of them may fail while other pods are being scheduled.  A
Flight carries one pod through that.  Its course is one generator, read top to bottom: it yields what it needs
done and is resumed with the answer; it ends with a Status.

The bind is fenced.  It names the pod's uid and the version it was looked at, so a request that is carried out
late can only fail.  When nobody knows whether it was carried out, the pod keeps its room until a read, and if
need be a write that makes the old request impossible, have settled it.

Rule: whatever a Flight does before BOUND, `unwind` undoes, in reverse order, exactly once.
"""

from __future__ import annotations

from collections.abc import Generator
from types import GeneratorType
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, structs

from kubesched.api.objects import Pod, PodCondition
from kubesched.api.time import Duration, minutes, seconds
from kubesched.core import extenders, runner
from kubesched.core.extender_wire import about_binding
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision
from kubesched.framework.errors import KubeschedError, shown, words
from kubesched.framework.hooks import name_of
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod
from kubesched.framework.status import SUCCESS, Code, Status, Wait, error
from kubesched.framework.steps import Answer, BindPod, Failure, Step, Steps, fault_of, is_duration

if TYPE_CHECKING:
    from kubesched.core.core import Core

PERMIT_AT_MOST: Duration = minutes(15)
STALE_BINDS_AT_MOST = 3  # conflicts with our view that are worth another try from the same reservation
STEPS_AT_MOST = 1000  # of one hook
ASK_AGAIN_AT_MOST: Duration = seconds(30)
UNKNOWN_OUTCOME = "BindOutcomeUnknown"


# ── what a flight may need, besides the Steps of its plugins ─────────────────────────────────────────────────


class Permission(Struct, frozen=True):
    """Wait until every plugin that asked for patience allows the pod, or one rejects it."""


class FencedBind(Struct, frozen=True):
    node: str
    resource_version: str


class Read(Struct, frozen=True):
    """The pod as it is now."""


class Promise(Struct, frozen=True):
    """Tell in the pod's status where it is expected to go."""

    node: str


class Fence(Struct, frozen=True):
    """Change the pod's status, so that its version moves on and a bind that is still under way must fail.

    It carries the version it saw: it must not overwrite what the bind itself wrote, should that come first.
    """

    condition: PodCondition
    resource_version: str


class Pause(Struct, frozen=True):
    delay: Duration


Want: TypeAlias = Step | Permission | FencedBind | Read | Promise | Fence | Pause
Course: TypeAlias = Generator[Want, Answer, Status]


class Flight:
    """One pod between its decision and its bind."""

    def __init__(
        self, core: Core, queued: QueuedPod, cycle: Cycle, profile: Profile, decision: Decision, node_uid: str
    ) -> None:
        self.core = core
        self.queued = queued
        self.info = queued.info
        self.cycle = cycle
        self.profile = profile
        self.decision = decision
        self.node = decision.node
        self.node_uid = node_uid
        self.version = ""  # of the pod, as our own last write or read returned it
        self.carried = ""  # the version our last bind carried
        self.fences = 0
        self.holds: dict[str, int] = {}  # plugin that asked for patience → its timer
        self.permission: Answer | None = None  # what came of that
        self.asks_permission = False  # nothing else is left to do before it
        self.binds = 0
        self.over = False  # landed or unwound
        self.course: Course = self._fly()

    def __repr__(self) -> str:
        return f"Flight({self.info.key!r} → {self.node})"

    @property
    def assumed(self) -> Pod:
        """The pod as if it were on its node: who waits for room there must see where it is given up."""
        return structs.replace(self.info.pod, spec=structs.replace(self.info.pod.spec, node_name=self.node))

    # ── the way there ────────────────────────────────────────────────────────────────────────────────────────

    def _fly(self) -> Course:
        status = self._reserve()
        if status.ok:
            status = yield from self._permit()
        if status.ok:
            self.core.queue.done(self.info.uid)
            status = yield from self._pre_bind()
        if status.ok:
            self.core.life.move(self.info, "ready")
            status = yield from self._bind()
        return status

    def _reserve(self) -> Status:
        for plugin in self.profile.reserve:
            try:
                answer = runner.asked("", plugin, "reserve", self.cycle, self.info, self.node)
                if answer is SUCCESS:
                    continue
                status = runner.as_status(answer, name_of(plugin), "reserve")
            except runner.Broken as broken:
                status = self._broke(broken)
            if not status.ok:
                return _worded(status, "Reserve", name_of(plugin))
        return SUCCESS

    def _permit(self) -> Course:
        holds: dict[str, Duration] = {}
        for plugin in self.profile.permit:
            name = name_of(plugin)
            said = self._ask_permit(plugin, name)
            if isinstance(said, Wait):
                holds[name] = Duration(min(said.timeout, PERMIT_AT_MOST))
            elif not said.ok:
                return _worded(said, "Permit", name)
        if not holds:
            self.core.life.move(self.info, "permitted")
            return SUCCESS
        self.core.life.move(self.info, "wait", ", ".join(holds))
        self.core.flying.hold(self, holds)
        yield from self._promise()
        answer = self.permission or (yield Permission())
        if answer.failure is None:
            self.core.life.move(self.info, "allowed")
            return SUCCESS
        code = Code.ERROR if answer.failure.code else Code.UNSCHEDULABLE
        return Status(code, (answer.failure.message,), answer.failure.reason)

    def _ask_permit(self, plugin: object, name: str) -> Status | Wait:
        try:
            answer = runner.asked("", plugin, "permit", self.cycle, self.info, self.node)
            if not isinstance(answer, Wait):
                return runner.as_status(answer, name, "permit")
        except runner.Broken as broken:
            return self._broke(broken)
        return answer if is_duration(answer.timeout) else error(f"a Wait of {shown(answer.timeout)} is no duration")

    def _promise(self) -> Generator[Want, Answer, None]:
        """Whoever looks at the pod meanwhile shall see where it is going; failing to say so is no failure."""
        features = self.core.features
        if features.nominated_node_name_for_expectation and self._seen().status.nominated_node_name != self.node:
            self._note_version((yield Promise(self.node)))

    def _pre_bind(self) -> Course:
        promised = self.permission is not None  # then it has waited, and was told
        for plugin in self.profile.pre_bind:
            steps = self._ask_for_steps(plugin, "pre_bind")
            if steps is SUCCESS:
                continue
            if not isinstance(steps, Status):
                if not promised:
                    promised = True
                    yield from self._promise()
                steps = yield from self._walk(steps, name_of(plugin), "pre_bind")
            status = steps
            if not (status.ok or status.code is Code.SKIP):
                return _worded(status, "PreBind", name_of(plugin))
        return SUCCESS

    def _bind(self) -> Course:
        status = (yield from self._bind_by_extender()) if self.profile.extenders else None
        return status if status is not None else (yield from self._bind_by_plugin())

    def _bind_by_extender(self) -> Generator[Want, Answer, Status | None]:
        """Let the first extender that binds such pods do it.  None: none does, or one that may be ignored failed."""
        for extender in extenders.binders(self.profile, self.info):
            doubt = self._doubt()
            if doubt is not None:
                return doubt
            answer = yield about_binding(extender, self.info, self.node)
            if answer.failure is not None and answer.failure.applied == "unknown":
                self.core.life.move(self.info, "unanswered", answer.failure.message)
                settled = yield from self._resolve()
                if settled is not None:
                    return settled
                self.core.life.move(self.info, "retried")
            status = extenders.bound(extender, answer)
            if status.ok or not extender.ignorable:
                return status
            self.decision.note(f"extender {extender.url_prefix} is ignored: {status.message}")
        return None

    def _bind_by_plugin(self) -> Course:
        plugins = self.profile.bind
        if not plugins:
            return (yield from self._bind_fenced())
        status = SUCCESS
        for plugin in plugins:
            steps = self._ask_for_steps(plugin, "bind")
            if not isinstance(steps, Status):
                steps = yield from self._walk(steps, name_of(plugin), "bind")
            status = steps
            if status.code is not Code.SKIP:
                return status if status.ok else _worded(status, "Bind", name_of(plugin))
        return error("every bind plugin skipped the pod").by(status.plugin)

    # ── the steps of plugins ─────────────────────────────────────────────────────────────────────────────────

    def _ask_for_steps(self, plugin: object, hook: str) -> Status | Steps:
        try:
            answer = runner.asked("", plugin, hook, self.cycle, self.info, self.node)
            return answer if isinstance(answer, GeneratorType) else runner.as_status(answer, name_of(plugin), hook)
        except runner.Broken as broken:
            return self._broke(broken)

    def _walk(self, steps: Steps, plugin: str, hook: str) -> Course:
        """Carry out what a hook yields, until it returns."""
        answer: Answer | None = None
        try:
            for _ in range(STEPS_AT_MOST):
                try:
                    step = steps.send(answer) if answer is not None else next(steps)
                except StopIteration as done:
                    return runner.as_status(done.value, plugin, hook)
                except Exception as problem:
                    self.decision.accident = not isinstance(problem, KubeschedError)
                    return error(words(problem))
                fault = fault_of(step)
                if fault:
                    return error(fault)
                if isinstance(step, BindPod):
                    status = yield from self._bind_fenced()
                    answer = Answer() if status.ok else Answer(failure=Failure(status.code.text, status.message))
                else:
                    answer = yield step
            return error(f"did not come to an end in {STEPS_AT_MOST} steps")
        except runner.Broken as broken:
            return self._broke(broken)
        finally:
            self._stop(steps, f"{plugin}.{hook}")

    def _broke(self, broken: runner.Broken) -> Status:
        self.decision.accident = broken.accident
        return error(broken.text)

    def _stop(self, steps: Steps, whose: str) -> None:
        """End a hook in the middle of its steps, where it is not over."""
        try:
            steps.close()
        except Exception as problem:  # it would not stop, or broke on its way out
            self.decision.note(f"{whose}: {words(problem)}")

    # ── the bind protocol ────────────────────────────────────────────────────────────────────────────────────

    def _bind_fenced(self) -> Course:
        """Bind, and do not stop before it is known whether the pod is bound."""
        while True:
            doubt = self._doubt()
            if doubt is not None:
                return doubt
            self.carried = self._latest_version()
            answer = yield FencedBind(self.node, self.carried)
            self.binds += 1
            if answer.failure is None:
                return SUCCESS
            unknown = answer.failure.applied == "unknown"
            if unknown:
                self.core.life.move(self.info, "unanswered", answer.failure.message)
            elif answer.failure.reason != "Conflict":
                return error(_refused(answer.failure))
            status = yield from (self._resolve() if unknown else self._reread())
            if status is not None:
                return status
            if self.binds > STALE_BINDS_AT_MOST:
                return error(_refused(answer.failure))
            if unknown:
                self.core.life.move(self.info, "retried")

    def _doubt(self) -> Status | None:
        """What has come to light since the decision and makes a bind pointless."""
        node = self.core.mirror.table.row_of.get(self.node)
        if node is None:
            return error(f'node "{self.node}" is gone')
        found = self.core.mirror.table.nodes[node]
        if found is None or found.uid != self.node_uid:
            return error(f'node "{self.node}" was replaced by another of the same name')
        if self._seen().terminating:
            return error(f"pod {self.info.key} is being deleted")
        return None

    def _reread(self) -> Generator[Want, Answer, Status | None]:
        """After a conflict: was it our view that was old, or is the pod taken?  None: worth another try."""
        answer = yield Read()
        if answer.failure is not None:
            return error(_refused(answer.failure))
        return self._judge_pod(answer)

    def _resolve(self) -> Generator[Want, Answer, Status | None]:
        """After an unknown outcome.  None: the pod is not bound and the old request can bind it no more.

        It can bind no more once the pod has another version than the request carries.  A read alone does not
        make it so; hence the fence, and its version is looked at, for a write that changes nothing is no fence.
        """
        delay = seconds(1)
        while True:
            answer = yield Read()
            if answer.obj is not None and not self._fenced(answer):
                self.fences += 1
                answer = yield Fence(self._fence(), self.version)
                if answer.failure is not None and answer.failure.reason == "Conflict":
                    continue  # the pod changed since we read it
            if answer.obj is not None and self._fenced(answer):
                return self._judge_pod(answer)
            if answer.failure is not None and answer.failure.reason == "NotFound":
                return error(_refused(answer.failure))
            yield Pause(delay)
            delay = Duration(min(2 * delay, ASK_AGAIN_AT_MOST))

    def _fenced(self, answer: Answer) -> bool:
        """Whether the pod in this answer is out of reach of our last bind: it has moved on, or is another."""
        self._note_version(answer)
        pod = answer.obj
        mine = isinstance(pod, Pod) and pod.uid == self.info.uid
        return not mine or self.version != self.carried or not self.carried

    def _judge_pod(self, answer: Answer) -> Status | None:
        pod = answer.obj
        if not isinstance(pod, Pod) or pod.uid != self.info.uid:
            return error(f"pod {self.info.key} is gone")
        self._note_version(answer)
        if pod.spec.node_name == self.node:
            return SUCCESS
        if pod.spec.node_name:
            return error(f'pod {self.info.key} is already assigned to node "{pod.spec.node_name}"')
        if pod.finished:
            return error(f"pod {self.info.key} has finished")
        return error(f"pod {self.info.key} is being deleted") if pod.terminating else None

    def _fence(self) -> PodCondition:
        which = f"attempt {self.queued.attempts}, bind {self.binds}, question {self.fences}"  # never the same twice
        message = f"nobody answered whether the pod was bound to {self.node} ({which})"
        return PodCondition(type="PodScheduled", status="False", reason=UNKNOWN_OUTCOME, message=message)

    def _seen(self) -> Pod:
        pod = self.core.mirror.pods.get(self.info.key)
        return pod if pod is not None and pod.uid == self.info.uid else self.info.pod

    def _latest_version(self) -> str:
        """The newest version of the pod we know of: what the watch told, or what our own write returned."""
        seen = self._seen().metadata.resource_version
        if not (seen.isdecimal() and self.version.isdecimal()):
            return self.version or seen
        return max(seen, self.version, key=int)

    def _note_version(self, answer: Answer) -> None:
        if isinstance(answer.obj, Pod) and answer.obj.uid == self.info.uid:
            self.version = answer.obj.metadata.resource_version

    # ── the way back, and the landing ────────────────────────────────────────────────────────────────────────

    def unwind(self) -> None:
        """Take back everything, in reverse order.  The room goes last."""
        assert not self.over, f"{self!r} was unwound twice"
        self.over = True
        self.course.close()
        self._unreserve()
        self.core.mirror.forget(self.info.uid)

    def _unreserve(self) -> None:
        for plugin in reversed(self.profile.reserve):
            try:
                plugin.unreserve(self.cycle, self.info, self.node)
            except Exception as problem:
                self.decision.note(f"{name_of(plugin)}.unreserve: {words(problem)}")

    def land(self) -> None:
        """The pod is bound; tell those who want to know."""
        assert not self.over, f"{self!r} landed twice"
        self.over = True
        self.course.close()  # the watch may say so first; a course that is left open keeps its flight, and so itself
        for plugin in self.profile.post_bind:
            try:
                plugin.post_bind(self.cycle, self.info, self.node)
            except Exception as problem:
                self.decision.note(f"{name_of(plugin)}.post_bind: {words(problem)}")


def _worded(status: Status, point: str, plugin: str) -> Status:
    """A no stays as it is; anything else becomes an error that says where it happened."""
    if status.rejected:
        return status.by(plugin)
    return error(f'running {point} plugin "{plugin}": {status.message or status.code.text}').by(plugin)


def _refused(failure: Failure) -> str:
    return failure.message or failure.reason
