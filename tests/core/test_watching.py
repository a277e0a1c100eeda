"""What news mean: for the queue, for flights, for pods that wait for room; whatever order they come in."""

import gc
import weakref
from typing import Any

import pytest
from tests.core.little import Fit, Ledger, Patience, Steps

from kubesched.api.objects import KINDS, Invalid, Pod, read_or_invalid
from kubesched.api.time import seconds
from kubesched.core.core import Core
from kubesched.core.messages import Bind, Completed, PatchPod, Publish
from kubesched.framework.events import Action, Hint
from kubesched.framework.records import State
from kubesched.framework.status import SUCCESS, unschedulable
from kubesched.framework.steps import Answer, Patch
from kubesched.testing import answer, bound, changed, fail, node, observe, pod, run, tick, vanish

STATES = ("Gated", "Active", "Backoff", "Parked", "Waiting", "PreBinding", "Binding", "Ambiguous", "Bound", "Invalid")


class Gate:
    def pre_enqueue(self, pod):
        return unschedulable("gated") if pod.pod.metadata.labels.get("gate") else SUCCESS

    def events_to_register(self):
        return (Hint("Pod", Action.UPDATE_POD_LABEL),)


def patching(cycle: Any, pod: Any, node: str) -> Any:
    yield Patch("Pod", pod.key, {})
    return SUCCESS


def in_state(cluster: Any, state: str) -> tuple[Core, Pod, Ledger]:
    """A core whose pod `a` is in a state; it asks for the whole of n1, and there is another node, closed."""
    ledger = Ledger()
    plugins = [Gate(), Fit(), ledger]
    plugins += [Patience(seconds(60))] if state == "Waiting" else []
    plugins += [Steps(patching)] if state == "PreBinding" else []
    a = pod("a", cpu=9 if state == "Parked" else 1, labels={"gate": "shut"} if state == "Gated" else {}, version=2)
    core = cluster(node("n1", cpu=1), node("n2", cpu=1, unschedulable=True), plugins=plugins)
    if state == "Invalid":
        observe(core, unreadable(a))
    else:
        observe(core, a)
    if state not in ("Gated", "Active", "Invalid"):
        effects = tick(core)
        bind = next((effect for effect in effects if isinstance(effect, Bind)), None)
        if state == "Backoff":
            fail(core, bind, "InternalError")
        elif state == "Ambiguous":
            fail(core, bind, "Timeout", unknown=True)
        elif state == "Bound":
            answer(core, bind)
    assert core.state("default/a").value == state
    return core, a, ledger


def unreadable(of: Pod, version: int = 2) -> Invalid:
    raw = {"metadata": {"name": of.name, "namespace": of.namespace, "uid": of.uid, "resourceVersion": str(version)}}
    found = read_or_invalid({**raw, "spec": {"containers": 3}}, Pod)
    assert isinstance(found, Invalid)
    return found


def answered(core: Core) -> list[Any]:
    """Everything that is asked for is answered, twice over: the promise, and then the step of the plugin."""
    effects = core.handle(Completed(max(core.outbox._heirs)), core.now)
    return effects + core.handle(Completed(max(core.outbox._heirs)), core.now)


HELD = ("Waiting", "PreBinding", "Binding", "Ambiguous", "Bound")


# ── a pod goes ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", STATES)
def test_a_pod_that_goes_leaves_nothing_behind(cluster: Any, state: str):
    core, a, ledger = in_state(cluster, state)
    vanish(core, a)
    assert core.state("default/a") is None
    assert core.free("n1")["cpu"] == 1000
    assert core.why("default/a") is None
    assert list(core.queue) == []
    assert core.queue.events_kept == 0
    reserved = [line for line in ledger.lines if line == "reserve a n1"]
    undone = [line for line in ledger.lines if line in ("unreserve a n1", "post_bind a n1")]
    assert len(undone) == len(reserved), "what was reserved is given back, or was used, exactly once"


@pytest.mark.parametrize("state", STATES)
def test_the_end_of_a_pod_nobody_can_read_any_more_is_its_end(cluster: Any, state: str):
    core, a, _ = in_state(cluster, state)
    vanish(core, unreadable(a, version=9))
    assert core.state("default/a") is None
    assert core.free("n1")["cpu"] == 1000
    assert list(core.queue) == []


@pytest.mark.parametrize("state", [state for state in STATES if state != "Bound"])
def test_room_given_up_serves_whoever_waits_for_it(cluster: Any, state: str):
    core, a, _ = in_state(cluster, state)
    observe(core, pod("next", cpu=1))
    run(core, at=seconds(3))
    if state in HELD:
        assert core.state("default/next") is State.PARKED
    vanish(core, a, at=seconds(3))
    run(core, at=seconds(30))
    assert core.state("default/next") in (State.BINDING, State.WAITING, State.PREBINDING)


def test_a_pod_that_is_deleted_is_called_back_before_its_bind_is_sent_and_not_after(cluster: Any):
    for state in ("Waiting", "PreBinding", "Binding", "Ambiguous"):
        core, a, _ = in_state(cluster, state)
        observe(core, changed(a, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "3"}))
        recalled = state in ("Waiting", "PreBinding")
        assert (core.state("default/a") is State.GONE) is recalled
        assert (core.free("n1")["cpu"] == 1000) is recalled


def test_a_pod_on_its_way_out_is_not_tried(cluster: Any):
    core = cluster(node("n1"), pod("a", deleting=True), plugins=[Fit()])
    [said] = tick(core)
    assert said == Publish.match(reason="FailedScheduling", note="skip schedule deleting pod: default/a")
    assert core.state("default/a") is State.GONE
    assert core.queue.events_kept == 0


def test_a_finished_pod_frees_its_node(cluster: Any):
    core = cluster(node("n1", cpu=1), pod("a", cpu=1, on="n1"), plugins=[Fit()])
    observe(core, pod("a", cpu=1, on="n1", phase="Succeeded"))
    assert core.free("n1")["cpu"] == 1000


# ── a pod comes back as somebody else ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", STATES)
def test_a_namesake_is_another_pod(cluster: Any, state: str):
    """The watch skipped the end of one and tells of the other under the same name."""
    core, _, ledger = in_state(cluster, state)
    observe(core, pod("a", cpu=1, uid="uid-of-another", version=50))
    assert core.life.state("uid-of-a") is None
    assert core.state("default/a") is State.ACTIVE
    assert core.free("n1")["cpu"] == 1000
    told = {what: ledger.lines.count(f"{what} a n1") for what in ("reserve", "unreserve", "post_bind")}
    assert told["reserve"] == told["unreserve"] + told["post_bind"]
    effects = run(core, at=seconds(1))
    binds = [effect for effect in effects if isinstance(effect, Bind)]
    assert all(bind.uid == "uid-of-another" for bind in binds)


def test_a_late_answer_about_the_first_does_not_concern_the_second(cluster: Any):
    core = cluster(node("n1", cpu=1), pod("a", cpu=1), plugins=[Fit()])
    [bind] = tick(core)
    observe(core, pod("a", cpu=1, uid="uid-of-another"))
    assert fail(core, bind, "NotFound") == []
    assert core.state("default/a") is State.ACTIVE


# ── a pod is bound, by us or by others ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", [state for state in STATES if state != "Bound"])
@pytest.mark.parametrize("where", ["n1", "n2", "nowhere"])
def test_a_pod_that_somebody_bound_is_where_they_put_it(cluster: Any, state: str, where: str):
    core, a, ledger = in_state(cluster, state)
    observe(core, pod("waits", cpu=1, version=3))
    observe(core, bound(a, where, version=9))
    assert core.state("default/a") is State.BOUND
    taken = {name: 1000 - core.free(name)["cpu"] for name in ("n1", "n2")}
    size = 9000 if state == "Parked" else 1000
    assert taken == {"n1": size if where == "n1" else 0, "n2": size if where == "n2" else 0}
    if where != "n1":
        assert ledger.lines.count("unreserve a n1") == ledger.lines.count("reserve a n1")


def test_our_own_echo_before_the_answer_lands_the_flight(cluster: Any):
    core, a, ledger = in_state(cluster, "Binding")
    [said] = observe(core, bound(a, "n1", version=3))
    assert said == Publish.match(reason="Scheduled", note="Successfully assigned default/a to n1")
    assert ledger.lines == ["reserve a n1", "post_bind a n1"]


def test_a_flight_that_landed_by_its_echo_is_gone_with_its_answer(cluster: Any):
    core, a, _ = in_state(cluster, "Binding")
    [flight] = map(weakref.ref, core.flights.values())
    [bind] = core.outbox._heirs
    gc.disable()
    try:
        observe(core, bound(a, "n1", version=3))
        core.handle(Completed(bind, Answer()), seconds(1))
        assert flight() is None, "it holds its whole Decision, and no collection of garbage may be needed to free it"
    finally:
        gc.enable()


def test_bound_elsewhere_wakes_those_who_waited_for_the_room_it_held_here(cluster: Any):
    core, a, _ = in_state(cluster, "Waiting")
    observe(core, pod("next", cpu=1))
    run(core, at=seconds(2))
    assert core.state("default/next") is State.PARKED
    observe(core, bound(a, "n2", version=9), at=seconds(3))
    run(core, at=seconds(3))
    assert core.state("default/next") is State.WAITING


def test_pods_of_other_schedulers_are_counted_and_otherwise_left_alone(cluster: Any):
    core = cluster(node("n1", cpu=2), pod("theirs", scheduler="other", cpu=1), plugins=[Fit()])
    assert core.state("default/theirs") is None
    assert not core.ready
    observe(core, pod("theirs", scheduler="other", cpu=1, on="n1"))
    assert core.free("n1")["cpu"] == 1000
    assert core.state("default/theirs") is None


# ── news repeat themselves, and come late ────────────────────────────────────────────────────────────────────


def test_the_same_news_twice_are_news_once(cluster: Any):
    core, a, _ = in_state(cluster, "Parked")
    moves = len(core.story("default/a"))
    observe(core, a, a)
    assert len(core.story("default/a")) == moves
    assert core.mirror.duplicates == 2


def test_news_from_before_its_bind_do_not_queue_a_bound_pod_again(cluster: Any):
    """Somebody labelled it a moment before it was bound, and the watch is slower than the answer to the bind."""
    core, a, _ = in_state(cluster, "Bound")
    observe(core, changed(a, metadata={"resourceVersion": "3", "labels": {"seen": "yes"}}))
    assert core.state("default/a") is State.BOUND
    assert "default/a" not in [queued.info.key for queued in core.queue]


def test_the_end_of_a_pod_is_for_the_watch_to_tell(cluster: Any):
    """An answer says that it has finished; what the watch tells from before must not bring it back."""
    core, a, _ = in_state(cluster, "Parked")
    finished = changed(a, status={"phase": "Succeeded"}, metadata={"resourceVersion": "9"})
    core.handle(Completed(0, Answer(obj=finished)), core.now)
    observe(core, changed(a, metadata={"resourceVersion": "5", "labels": {"seen": "yes"}}))
    assert core.state("default/a") is State.PARKED
    observe(core, finished)
    assert core.state("default/a") is None
    assert "default/a" not in core.mirror.pods


def test_an_older_version_changes_nothing(cluster: Any):
    core = cluster(node("n1", cpu=4, version=10), plugins=[Fit()])
    observe(core, node("n1", cpu=1, version=9))
    assert core.free("n1")["cpu"] == 4000


def test_a_node_recreated_under_its_name_has_none_of_its_pods_and_no_bind(cluster: Any):
    core, _, ledger = in_state(cluster, "PreBinding")
    assert observe(core, node("n1", cpu=4, uid="another")) == []
    effects = answered(core)
    assert not any(isinstance(effect, Bind) for effect in effects)
    assert 'node "n1" was replaced by another of the same name' in core.why("default/a").message
    assert ledger.lines[-1] == "unreserve a n1"


def test_a_bind_is_not_sent_to_a_node_that_is_gone(cluster: Any):
    core, _, _ = in_state(cluster, "PreBinding")
    vanish(core, node("n1"))
    effects = answered(core)
    assert not any(isinstance(effect, Bind) for effect in effects)
    assert 'node "n1" is gone' in core.why("default/a").message


def test_pods_outlive_their_node_until_they_are_told_to_be_gone(cluster: Any):
    core = cluster(node("n1", cpu=1), pod("a", cpu=1, on="n1"), plugins=[Fit()])
    vanish(core, node("n1"))
    observe(core, pod("b", cpu=1))
    tick(core)
    assert core.why("default/b").message == "no nodes available to schedule pods"
    observe(core, node("n1", cpu=1, uid="again"))
    assert core.free("n1")["cpu"] == 0
    vanish(core, pod("a", cpu=1, on="n1"))
    assert core.free("n1")["cpu"] == 1000


# ── pods nobody can read ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", [state for state in STATES if state != "Bound"])
def test_a_pod_that_becomes_unreadable_is_visible_and_holds_nothing(cluster: Any, state: str):
    core, a, ledger = in_state(cluster, state)
    observe(core, unreadable(a, version=9))
    assert core.state("default/a") is State.INVALID
    assert "spec.containers: expected array, got int" in core.story("default/a")[-1].note
    assert core.free("n1")["cpu"] == 1000
    assert ledger.lines.count("unreserve a n1") == ledger.lines.count("reserve a n1")
    observe(core, changed(a, metadata={"resourceVersion": "10"}))
    assert core.state("default/a") in (State.ACTIVE, State.GATED)


def test_a_bound_pod_that_becomes_unreadable_keeps_its_room(cluster: Any):
    core, a, _ = in_state(cluster, "Bound")
    observe(core, bound(a, "n1", version=3), unreadable(a, version=9))
    assert core.free("n1")["cpu"] == 0


def test_an_unreadable_pod_is_told_so_once_for_every_reason(cluster: Any):
    core = cluster(plugins=[Fit()])
    said, patch = observe(core, unreadable(pod("a")))
    text = "Pod 'default/a': spec.containers: expected array, got int"
    assert said == Publish.match(type="Warning", reason="FailedScheduling")
    assert said.note == f"skip schedule unreadable pod: {text}"
    assert isinstance(patch, PatchPod)
    assert (patch.condition.status, patch.condition.reason) == ("False", "SchedulerError")
    assert patch.condition.message == text
    assert observe(core, unreadable(pod("a"), version=3)) == []
    raw = {"metadata": {"name": "a", "namespace": "default", "uid": "uid-of-a"}, "spec": {"nodeSelector": []}}
    other, again = observe(core, read_or_invalid(raw, Pod))
    assert "nodeSelector" in other.note
    assert again == PatchPod.match(pod="default/a")


@pytest.mark.parametrize("spec", [{"schedulerName": "other", "containers": 3}, {"nodeName": "n1", "containers": 3}])
def test_an_unreadable_pod_that_is_not_ours_to_place_is_left_alone(cluster: Any, spec: dict):
    core = cluster(plugins=[Fit()])
    raw = {"metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1"}, "spec": spec}
    assert observe(core, read_or_invalid(raw, Pod)) == []


def test_an_unreadable_pod_does_not_stop_the_others(cluster: Any):
    core = cluster(node("n1"), pod("good"), unreadable(pod("a")), plugins=[Fit()])
    [bind] = run(core)
    assert bind == Bind.match(pod="default/good")


@pytest.mark.parametrize("kind", ["Node", "PersistentVolumeClaim", "Namespace"])
def test_other_objects_nobody_can_read_stop_nobody(cluster: Any, kind: str):
    core = cluster(node("n1"), plugins=[Fit()])
    raw = {"metadata": {"name": "odd", "uid": "u", "resourceVersion": "1"}, "spec": 3, "status": 4}
    assert observe(core, read_or_invalid(raw, KINDS[kind])) == []
    observe(core, pod("a"))
    assert [type(effect) for effect in run(core)] == [Bind]
    vanish(core, read_or_invalid(raw, KINDS[kind]))


def test_pods_without_a_uid_are_told_apart_by_their_names(cluster: Any):
    core = cluster(plugins=[Fit()])
    nameless = [read_or_invalid({"metadata": {"name": name, "namespace": "x"}, "spec": {}}, Pod) for name in "ab"]
    observe(core, *nameless)
    assert [core.state(f"x/{name}") for name in "ab"] == [State.INVALID, State.INVALID]
    vanish(core, nameless[0])
    assert [core.state(f"x/{name}") for name in "ab"] == [None, State.INVALID]
