"""After the decision: every hook in its order, every failure taken back in reverse, exactly once."""

from typing import Any

import pytest
from tests.core.little import Binder, Fit, Ledger, Patience, Steps

from kubesched.api.objects import PersistentVolumeClaim
from kubesched.api.time import seconds
from kubesched.core.core import Core
from kubesched.core.flight import STEPS_AT_MOST
from kubesched.core.messages import Bind, Call, Commanded, PatchPod, Publish
from kubesched.framework.records import State
from kubesched.framework.status import SKIP, SUCCESS, Code, Status, error, unresolvable, unschedulable
from kubesched.framework.steps import BindPod, Create, Patch, WaitFor
from kubesched.testing import answer, fail, make, node, observe, pod, run, tick, vanish


class Telling:
    """Writes down every hook after the decision, and answers what it was told to."""

    def __init__(self, lines: list[str], name: str, **answers: Any) -> None:
        self.lines, self.name, self.answers = lines, name, answers

    def _told(self, hook: str, pod: Any) -> Any:
        self.lines.append(f"{self.name}.{hook}")
        return self.answers.get(hook, SKIP if hook == "bind" else SUCCESS)

    def reserve(self, cycle, pod, node):
        return self._told("reserve", pod)

    def unreserve(self, cycle, pod, node):
        self._told("unreserve", pod)

    def permit(self, cycle, pod, node):
        return self._told("permit", pod)

    def pre_bind(self, cycle, pod, node):
        return self._told("pre_bind", pod)

    def post_bind(self, cycle, pod, node):
        self._told("post_bind", pod)


def flown(cluster: Any, *plugins: Any, **settings: Any) -> tuple[Core, list[Any]]:
    core = cluster(node("n1", cpu=1), pod("a", cpu=1, version=1), plugins=[Fit(), *plugins], **settings)
    return core, tick(core)


def binds(effects: list[Any]) -> list[Bind]:
    return [effect for effect in effects if isinstance(effect, Bind)]


# ── the way there ────────────────────────────────────────────────────────────────────────────────────────────


def test_hooks_are_asked_in_their_order_and_the_pod_holds_its_room_from_the_first(cluster: Any):
    lines: list[str] = []
    seen: list[int] = []

    class Looking(Telling):
        def reserve(self, cycle, pod, node):
            seen.append(core.free(node)["cpu"])
            return super().reserve(cycle, pod, node)

    core = cluster(node("n1", cpu=1), plugins=[Fit(), Looking(lines, "A"), Telling(lines, "B")])
    observe(core, pod("a", cpu=1, version=7))
    [bind] = tick(core)
    assert seen == [0]
    assert lines == ["A.reserve", "B.reserve", "A.permit", "B.permit", "A.pre_bind", "B.pre_bind"]
    assert bind == Bind.match(pod="default/a", uid="uid-of-a", node="n1", resource_version="7")
    [said] = answer(core, bind)
    assert lines[6:] == ["A.post_bind", "B.post_bind"]
    assert said == Publish.match(
        type="Normal", reason="Scheduled", action="Binding", note="Successfully assigned default/a to n1"
    )
    assert core.state("default/a") is State.BOUND


@pytest.mark.parametrize("hook", ["reserve", "permit", "pre_bind"])
@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.ERROR, Code.PENDING])
def test_a_no_takes_everything_back_in_reverse(cluster: Any, hook: str, code: Code):
    lines: list[str] = []
    core, effects = flown(
        cluster, Telling(lines, "A"), Telling(lines, "B", **{hook: Status(code, ("why",))}), Telling(lines, "C")
    )
    assert binds(effects) == []
    assert core.free("n1")["cpu"] == 1000
    assert [line for line in lines if "unreserve" in line] == ["C.unreserve", "B.unreserve", "A.unreserve"]
    assert not any(line == f"C.{hook}" for line in lines)
    rejected = code is not Code.ERROR
    titles = {"reserve": "Reserve", "permit": "Permit", "pre_bind": "PreBind"}
    text = "0/1 nodes are available: 1 why." if rejected else f'running {titles[hook]} plugin "B": why'
    assert core.why("default/a").message == text
    condition = next(effect for effect in effects if isinstance(effect, PatchPod)).condition
    assert condition.reason == ("Unschedulable" if rejected else "SchedulerError")
    assert condition.message == text


def test_a_bind_that_is_refused_takes_everything_back(cluster: Any):
    lines: list[str] = []
    core, [bind] = flown(cluster, Telling(lines, "A"))
    effects = fail(core, bind, "Forbidden", "no rights", code=403)
    assert lines[-1] == "A.unreserve"
    assert core.free("n1")["cpu"] == 1000
    assert core.state("default/a") is State.BACKOFF
    assert Publish.match(reason="FailedScheduling", note="no rights") in effects


def test_whoever_waits_for_room_is_told_when_a_flight_fails(cluster: Any):
    core, [bind] = flown(cluster)
    observe(core, pod("b", cpu=1))
    run(core)
    assert core.state("default/b") is State.PARKED
    fail(core, bind, "InternalError", at=seconds(5))
    [again] = binds(tick(core, at=seconds(5)))
    assert again.pod == "default/b"


def test_what_breaks_on_the_way_back_is_noted_and_the_way_goes_on(cluster: Any):
    class Rude(Ledger):
        def unreserve(self, cycle, pod, node):
            raise ValueError("no")

        def post_bind(self, cycle, pod, node):
            raise ValueError("neither")

    ledger = Ledger("Kind")
    core, [bind] = flown(cluster, ledger, Rude("Rude"))
    fail(core, bind)
    assert ledger.lines == ["reserve a n1", "unreserve a n1"]
    assert "Rude.unreserve: ValueError: no" in core.why("default/a").notes
    [bind] = binds(run(core, at=seconds(3)))
    answer(core, bind)
    assert "Rude.post_bind: ValueError: neither" in core.why("default/a").notes
    assert core.state("default/a") is State.BOUND


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_step_is_an_effect_and_its_answer_comes_back(cluster: Any):
    answers: list[Any] = []

    def course(cycle, pod, node):
        answers.append((yield Patch("PersistentVolumeClaim", "default/data", {"x": 1})))
        answers.append((yield Create("Lease", "x", {})))
        return SUCCESS

    core, [promise] = flown(cluster, Steps(course))
    assert promise == PatchPod.match(nominated_node_name="n1")
    [call] = answer(core, promise)
    assert call == Call.match(step=Patch("PersistentVolumeClaim", "default/data", {"x": 1}))
    claim = make("PersistentVolumeClaim", "data", namespace="default")
    [call] = answer(core, call, claim)
    assert core.state("default/a") is State.PREBINDING
    [bind] = fail(core, call, "AlreadyExists")
    assert isinstance(bind, Bind)
    assert answers[0].obj == claim
    assert answers[1].failure.reason == "AlreadyExists"


def test_an_answer_about_an_object_is_news_ahead_of_the_watch(cluster: Any):
    def course(cycle, pod, node):
        yield Patch("PersistentVolumeClaim", "default/data", {})
        return SUCCESS

    core, [promise] = flown(cluster, Steps(course))
    observe(core, make("PersistentVolumeClaim", "data", namespace="default", version=1))
    [call] = answer(core, promise)
    answer(core, call, make("PersistentVolumeClaim", "data", namespace="default", version=2, labels={"a": "b"}))
    seen = core.mirror.objects.get(PersistentVolumeClaim, "default/data")
    assert seen.metadata.labels == {"a": "b"}


def test_others_are_scheduled_while_one_is_prepared(cluster: Any):
    def course(cycle, pod, node):
        if pod.name == "a":
            yield Patch("Pod", pod.key, {})
        return SUCCESS

    core = cluster(node("n1", cpu=2), pod("a", cpu=1), pod("b", cpu=1), plugins=[Fit(), Steps(course)])
    promises = run(core)
    effects = [effect for promise in promises for effect in answer(core, promise)]
    assert [bind.pod for bind in binds(effects)] == ["default/b"]
    assert core.state("default/a") is State.PREBINDING


def test_a_flight_waits_until_something_is_seen(cluster: Any):
    def course(cycle, pod, node):
        seen = yield WaitFor(look, seconds(10), "the claim to be bound")
        return seen.data

    def look(objects):
        return SUCCESS if objects.get(PersistentVolumeClaim, "default/data") is not None else None

    core, [promise] = flown(cluster, Steps(course))
    assert answer(core, promise) == []
    assert core.state("default/a") is State.PREBINDING
    [bind] = observe(core, make("PersistentVolumeClaim", "data", namespace="default"), at=seconds(4))
    assert isinstance(bind, Bind)
    assert len(core.timers) == 0


def test_a_flight_does_not_wait_for_ever(cluster: Any):
    def course(cycle, pod, node):
        seen = yield WaitFor(lambda objects: None, seconds(10), "the claim to be bound")
        return error(seen.failure.message)

    core, [promise] = flown(cluster, Steps(course))
    answer(core, promise)
    assert core.deadline == seconds(10)
    tick(core, at=seconds(10))
    text = 'running PreBind plugin "Steps": timed out waiting for the claim to be bound'
    assert core.why("default/a").message == text
    assert core.free("n1")["cpu"] == 1000


def test_what_is_there_already_is_not_waited_for_however_often(cluster: Any):
    def course(cycle, pod, node):
        for _ in range(STEPS_AT_MOST - 1):
            yield WaitFor(lambda objects: SUCCESS, seconds(10), "nothing")
        return SUCCESS

    core, [promise] = flown(cluster, Steps(course))
    [bind] = answer(core, promise)
    assert isinstance(bind, Bind)


def test_a_hook_without_end_is_ended(cluster: Any):
    def course(cycle, pod, node):
        while True:
            yield WaitFor(lambda objects: SUCCESS, seconds(10), "nothing")

    core, [promise] = flown(cluster, Steps(course))
    answer(core, promise)
    assert core.why("default/a").message.endswith(f"did not come to an end in {STEPS_AT_MOST} steps")


def test_a_hook_that_is_broken_off_may_tidy_up(cluster: Any):
    tidied: list[str] = []

    def course(cycle, pod, node):
        try:
            yield Patch("Pod", pod.key, {})
        finally:
            tidied.append(pod.name)
        return SUCCESS

    core, [promise] = flown(cluster, Steps(course))
    answer(core, promise)
    vanish(core, pod("a"))
    assert tidied == ["a"]


def test_an_answer_after_the_end_is_void(cluster: Any):
    def course(cycle, pod, node):
        yield Patch("Pod", pod.key, {})
        return SUCCESS

    core, [promise] = flown(cluster, Steps(course))
    [call] = answer(core, promise)
    vanish(core, pod("a"))
    assert answer(core, call) == []


# ── who binds ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_bind_plugin_that_does_not_skip_binds(cluster: Any):
    def mine(cycle, pod, node):
        yield BindPod(node)
        return SUCCESS

    def never(cycle, pod, node):
        raise AssertionError("nobody asked")
        yield

    core, [bind] = flown(cluster, Binder(lambda c, p, n: SKIP, "Skips"), Binder(mine, "Mine"), Binder(never, "Never"))
    assert isinstance(bind, Bind)
    answer(core, bind)
    assert core.state("default/a") is State.BOUND


def test_when_every_bind_plugin_skips_the_pod_is_not_bound(cluster: Any):
    core, effects = flown(cluster, Binder(lambda c, p, n: SKIP, "Skips"))
    assert binds(effects) == []
    assert core.why("default/a").message == "every bind plugin skipped the pod"


def test_a_plugin_may_bind_in_its_own_way(cluster: Any):
    def elsewhere(cycle, pod, node):
        made = yield Create("Binding", "default/a", {"target": node})
        return SUCCESS if made.ok else unschedulable(made.failure.message)

    core, [call] = flown(cluster, Binder(elsewhere))
    [said] = answer(core, call)
    assert said == Publish.match(reason="Scheduled")
    assert core.state("default/a") is State.BOUND


def test_a_bind_plugins_no_is_its_own(cluster: Any):
    core, _ = flown(cluster, Binder(lambda c, p, n: unresolvable("not this one")))
    assert core.why("default/a").message == "0/1 nodes are available: 1 not this one."
    assert core.state("default/a") is State.BACKOFF


# ── permit ───────────────────────────────────────────────────────────────────────────────────────────────────


def waiting(cluster: Any, *plugins: Any) -> Core:
    core, effects = flown(cluster, *plugins)
    for effect in effects:
        answer(core, effect)
    assert core.state("default/a") is State.WAITING
    return core


def test_a_pod_goes_on_when_everybody_who_asked_for_patience_lets_it(cluster: Any):
    one, other = Patience(seconds(10), name="One"), Patience(seconds(20), name="Other")
    core = waiting(cluster, one, other)
    [held] = one.tools.waiting
    assert (held.pod.name, held.node, held.plugins) == ("a", "n1", ("One", "Other"))
    one.tools.allow(held.pod)
    assert tick(core, at=seconds(1)) == []
    assert core.state("default/a") is State.WAITING
    other.tools.allow(held.pod)
    [bind] = tick(core, at=seconds(2))
    assert isinstance(bind, Bind)
    assert len(core.timers) == 0


def test_one_no_is_enough_and_names_who_said_it(cluster: Any):
    one, other = Patience(seconds(10), name="One"), Patience(seconds(20), name="Other")
    core = waiting(cluster, one, other)
    other.tools.reject(other.tools.waiting[0].pod, "changed my mind")
    effects = tick(core, at=seconds(1))
    assert core.why("default/a").message == "0/1 nodes are available: 1 changed my mind."
    assert core.queue.find("uid-of-a").rejectors == {"Other"}
    assert core.free("n1")["cpu"] == 1000
    assert Publish.match(reason="FailedScheduling") in effects
    assert len(core.timers) == 0


def test_patience_that_is_used_up_rejects(cluster: Any):
    core = waiting(cluster, Patience(seconds(20), name="Long"), Patience(seconds(10), name="Short"))
    assert core.deadline == seconds(10)
    tick(core, at=seconds(10))
    text = "rejected due to timeout after waiting 10s at plugin Short"
    assert core.why("default/a").message == f"0/1 nodes are available: 1 {text}."
    assert core.state("default/a") is State.PARKED


def test_patience_has_an_end_of_fifteen_minutes(cluster: Any):
    core = waiting(cluster, Patience(seconds(100_000)))
    assert core.deadline == seconds(15 * 60)


def test_a_later_word_comes_in_time_or_not_at_all(cluster: Any):
    patience = Patience(seconds(10))
    core = waiting(cluster, patience)
    pod_held = patience.tools.waiting[0].pod
    patience.tools.allow_after(pod_held, seconds(3))
    patience.tools.reject_after(pod_held, seconds(5), "too late")
    tick(core, at=seconds(1))
    assert core.deadline == seconds(4)
    [bind] = tick(core, at=seconds(4))
    answer(core, bind)
    tick(core, at=seconds(7))
    assert core.state("default/a") is State.BOUND


def test_a_word_given_before_the_pod_waits_counts(cluster: Any):
    class Eager(Patience):
        def permit(self, cycle, pod, node):
            self.tools.allow(pod)
            return super().permit(cycle, pod, node)

    core, effects = flown(cluster, Eager(seconds(10)))
    [bind] = [effect for one in effects for effect in answer(core, one)]
    assert isinstance(bind, Bind)


def test_a_plugin_speaks_for_itself_alone(cluster: Any):
    one, other = Patience(seconds(10), name="One"), Patience(seconds(20), "nobody", name="Other")
    core = waiting(cluster, one, other)
    other.tools.allow(other.tools.waiting[0].pod)
    tick(core, at=seconds(1))
    assert core.state("default/a") is State.WAITING
    assert other.tools.waiting[0].plugins == ("One",)


@pytest.mark.parametrize(("verb", "state"), [("allow", State.BINDING), ("reject", State.PARKED)])
def test_an_operators_word_stands_for_every_plugins(cluster: Any, verb: Any, state: State):
    core = waiting(cluster, Patience(seconds(10), name="One"), Patience(seconds(20), name="Other"))
    core.handle(Commanded(verb, "default/a"), core.now)
    assert core.state("default/a") is state


def test_others_are_tried_while_one_waits_and_see_its_room_taken(cluster: Any):
    core = waiting(cluster, Patience(seconds(10), "a"))
    observe(core, pod("b", cpu=1))
    run(core)
    assert core.state("default/b") is State.PARKED
    assert core.why("default/b").message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_rejection_wakes_others_and_not_itself(cluster: Any):
    core = waiting(cluster, Patience(seconds(10), "a"))
    observe(core, pod("b", cpu=1))
    run(core)
    core.handle(Commanded("reject", "default/a"), core.now)
    assert core.state("default/b") is not State.PARKED
    assert core.state("default/a") is State.PARKED


def test_a_rejected_pod_comes_back_as_it_is_by_then(cluster: Any):
    core = waiting(cluster, Patience(seconds(10), "a"))
    observe(core, node("n2", cpu=1))
    observe(core, pod("a", cpu=2, version=2))
    tick(core, at=seconds(10))
    run(core, at=seconds(20))
    assert core.state("default/a") is State.PARKED, "it was placed as it had been"


def test_a_rejected_pod_hears_what_happened_while_it_waited(cluster: Any):
    core = waiting(cluster, Patience(seconds(10), "a"))
    observe(core, node("n2", cpu=1))
    tick(core, at=seconds(10))
    assert core.state("default/a") in (State.BACKOFF, State.BINDING, State.WAITING)
