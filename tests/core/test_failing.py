"""An attempt that came to nothing: what is said of it, once, in kube-scheduler's words, and how it is retried."""

from typing import Any

import pytest
from tests.core.little import Evictor, Fit, Patience

from kubesched.api.objects import PodCondition
from kubesched.api.time import milliseconds, seconds
from kubesched.core.core import Core
from kubesched.core.failing import NOTE_AT_MOST, SAY_AT_MOST, cut
from kubesched.core.messages import Commanded, PatchPod, Publish
from kubesched.framework.hooks import Nomination
from kubesched.framework.records import State
from kubesched.framework.status import unschedulable
from kubesched.testing import answer, bound, changed, fail, node, observe, pod, run, tick, vanish


def patches(effects: list[Any]) -> list[PatchPod]:
    return [effect for effect in effects if isinstance(effect, PatchPod)]


def test_a_pod_that_does_not_fit_is_told_in_kube_schedulers_words(cluster: Any):
    core = cluster(node("n1", cpu=1), pod("a", cpu=2, generation=3), plugins=[Fit()])
    said, patch = tick(core, at=seconds(1_767_225_600))
    text = "0/1 nodes are available: 1 Insufficient cpu."
    assert said == Publish.match(
        regarding="default/a", uid="uid-of-a", type="Warning", reason="FailedScheduling", action="Scheduling", note=text
    )
    assert said.reporter == "default-scheduler"
    assert patch.condition == PodCondition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        message=text,
        last_transition_time="2026-01-01T00:00:00Z",
        observed_generation=3,
    )


def test_what_breaks_is_another_reason(cluster: Any):
    class Broken:
        def filter(self, cycle, pod, node):
            raise ValueError("no idea")

    core = cluster(node("n1"), pod("a"), plugins=[Broken()])
    _, patch = tick(core)
    assert patch.condition.reason == "SchedulerError"
    assert patch.condition.message == 'running "Broken" filter plugin: ValueError: no idea'
    assert core.queue.find("uid-of-a").rejectors == frozenset()
    assert core.state("default/a") is State.BACKOFF


def test_without_nodes_nobody_is_to_blame_and_the_pod_backs_off(cluster: Any):
    core = cluster(pod("a"), plugins=[Fit()])
    _, patch = tick(core)
    assert (patch.condition.reason, patch.condition.message) == ("Unschedulable", "no nodes available to schedule pods")
    assert core.state("default/a") is State.BACKOFF


def test_the_same_is_not_written_twice_and_the_event_is(cluster: Any):
    core = cluster(node("n1", cpu=1), pod("a", cpu=2), plugins=[Fit()])
    tick(core)
    observe(core, node("n1", cpu=1, version=2, unschedulable=False, labels={"x": "y"}))
    core.queue.activate(["uid-of-a"], core.now)
    effects = tick(core, at=seconds(5))
    assert [type(effect) for effect in effects] == [Publish]


def test_something_else_is_written_and_the_time_it_turned_is_kept(cluster: Any):
    core = cluster(node("n1", cpu=1), pod("a", cpu=2), plugins=[Fit()])
    [first] = patches(tick(core, at=seconds(10)))
    observe(core, node("n2", cpu=1), at=seconds(20))
    [second] = patches(run(core, at=seconds(20)))
    assert second.condition.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert second.condition.last_transition_time == first.condition.last_transition_time == "1970-01-01T00:00:10Z"


def test_what_the_status_says_already_is_not_written_again(cluster: Any):
    text = "0/1 nodes are available: 1 Insufficient cpu."
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
    core = cluster(node("n1", cpu=1), changed(pod("a", cpu=2), status={"conditions": [said]}), plugins=[Fit()])
    assert patches(tick(core)) == []


@pytest.mark.parametrize("length", [1023, 1024, 1025, 5000])
@pytest.mark.parametrize("letter", ["x", "ü", "€", "😀"])
def test_a_note_holds_so_many_bytes_and_no_half_letter(length: int, letter: str):
    text = (letter * length).encode()[:length].decode(errors="ignore")
    note = cut(text)
    assert len(note.encode()) <= NOTE_AT_MOST
    assert (note == text) is (len(text.encode()) <= NOTE_AT_MOST)
    if note != text:
        assert note.endswith(" ...")
        assert len(note.encode()) > NOTE_AT_MOST - 8


def test_a_condition_keeps_its_whole_message(cluster: Any):
    class Wordy:
        def filter(self, cycle, pod, node):
            return unschedulable("w" * 3000)

    core = cluster(node("n1"), pod("a"), plugins=[Wordy()])
    said, patch = tick(core)
    assert len(said.note) == NOTE_AT_MOST
    assert len(patch.condition.message) > 3000


# ── writing it ───────────────────────────────────────────────────────────────────────────────────────────────


def unwritten(cluster: Any) -> tuple[Core, PatchPod]:
    core = cluster(node("n1", cpu=1), pod("a", cpu=2), plugins=[Fit()])
    _, patch = tick(core)
    return core, patch


def test_a_status_that_cannot_be_written_is_tried_again_a_few_times(cluster: Any):
    core, patch = unwritten(cluster)
    waits = []
    for _ in range(SAY_AT_MOST - 1):
        before = core.now
        assert fail(core, patch, "Conflict") == []
        waits.append(core.deadline - before)
        [patch] = patches(tick(core, at=core.deadline))
    assert waits == [milliseconds(10), milliseconds(50), milliseconds(250)]
    fail(core, patch, "Conflict")
    assert len(core.timers) == 0


def test_a_server_that_asks_for_patience_gets_it(cluster: Any):
    core, patch = unwritten(cluster)
    fail(core, patch, "TooManyRequests", retry_after=seconds(2))
    assert core.deadline == seconds(2)


def test_a_status_nobody_could_write_is_written_at_the_next_attempt(cluster: Any):
    core, patch = unwritten(cluster)
    for _ in range(SAY_AT_MOST):
        fail(core, patch, "InternalError")
        again = patches(tick(core, at=max(core.now, min(core.deadline or 0, core.now + seconds(1)))))
        patch = again[0] if again else patch
    core.queue.activate(["uid-of-a"], core.now)
    assert len(patches(tick(core, at=seconds(5)))) == 1


@pytest.mark.parametrize("how", ["gone", "NotFound"])
def test_a_pod_that_is_gone_is_not_written_about(cluster: Any, how: str):
    core, patch = unwritten(cluster)
    if how == "gone":
        fail(core, patch, "InternalError")
        vanish(core, pod("a"))
    else:
        fail(core, patch, "NotFound")
    assert patches(tick(core, at=seconds(2))) == []


def test_a_pod_that_is_tried_meanwhile_is_not_written_about_from_before(cluster: Any):
    core, patch = unwritten(cluster)
    fail(core, patch, "InternalError")
    observe(core, node("n2", cpu=4))
    assert patches(run(core, at=milliseconds(5))) == []
    assert core.state("default/a") is State.BINDING
    assert patches(tick(core, at=seconds(2))) == []


# ── what became of the pod meanwhile ─────────────────────────────────────────────────────────────────────────


def test_a_pod_comes_back_as_it_is_by_now(cluster: Any):
    core = cluster(node("n1", cpu=1), pod("a", cpu=1, version=1), plugins=[Fit()])
    [bind] = tick(core)
    observe(core, pod("a", cpu=1, version=2, labels={"new": "yes"}))
    fail(core, bind, "InternalError")
    assert core.queue.find("uid-of-a").info.pod.metadata.labels == {"new": "yes"}


def test_a_pod_bound_by_others_in_the_meantime_does_not_come_back(cluster: Any):
    core = cluster(node("n1", cpu=1), node("n2", cpu=1), pod("a", cpu=1, version=1), plugins=[Fit()])
    [bind] = tick(core)
    observe(core, bound(pod("a", cpu=1), "n2", version=2))
    fail(core, bind, "Conflict")
    assert core.state("default/a") is State.BOUND
    assert core.free("n1")["cpu"] == 1000


# ── promises ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_nomination_is_written_and_taken_back_when_the_pod_is_placed_elsewhere(cluster: Any):
    victim = pod("low", cpu=1, on="n1", priority=1)
    core = cluster(node("n1", cpu=1), victim, pod("high", cpu=1, priority=9), plugins=[Fit(), Evictor()])
    [patch] = patches(tick(core))
    assert patch.nominated_node_name == "n1"
    assert [info.name for info in core.queue.nominated()["n1"]] == ["high"]


def test_a_failure_without_room_to_be_made_takes_a_promise_back(cluster: Any):
    class Hopeless:
        def post_filter(self, cycle, pod, rejected):
            return Nomination("", (), unschedulable("no victims"))

    core = cluster(node("n1", cpu=1), pod("a", cpu=2, nominated="n1"), plugins=[Fit(), Hopeless()])
    [patch] = patches(tick(core))
    assert patch.nominated_node_name == ""
    assert dict(core.queue.nominated()) == {}


def test_a_promise_is_kept_where_the_plugin_says_nothing_of_it(cluster: Any):
    class Silent:
        def post_filter(self, cycle, pod, rejected):
            return unschedulable("no victims")

    core = cluster(node("n1", cpu=1), pod("a", cpu=2, nominated="n1"), plugins=[Fit(), Silent()])
    [patch] = patches(tick(core))
    assert patch.nominated_node_name is None
    assert list(core.queue.nominated()) == ["n1"]


@pytest.mark.parametrize("how", ["unanswered", "to be said again"])
def test_a_promise_that_is_being_taken_back_is_not_brought_back(cluster: Any, how: str):
    class Hopeless:
        def __init__(self) -> None:
            self.answers = [Nomination("", (), unschedulable("no victims")), unschedulable("too early")]

        def post_filter(self, cycle, pod, rejected):
            return self.answers.pop(0)

    before = pod("a", cpu=2, nominated="n1")
    core = cluster(node("n1", cpu=1), before, plugins=[Fit(), Hopeless()])
    [patch] = patches(tick(core))
    if how != "unanswered":
        fail(core, patch, "Timeout")
    before = changed(before, metadata={"labels": {"old": "news"}})
    observe(core, before)
    assert dict(core.queue.nominated()) == {}

    core.queue.activate(["uid-of-a"], core.now)
    run(core, at=milliseconds(5))
    assert dict(core.queue.nominated()) == {}, "another attempt has nothing to say of it"

    if how != "unanswered":
        [patch] = [patch for patch in patches(tick(core, at=milliseconds(10))) if patch.nominated_node_name == ""]
    answer(core, patch, changed(before, status={"nominatedNodeName": None}))
    assert dict(core.queue.nominated()) == {}
    assert not core.failing.promising("uid-of-a")


def test_where_a_pod_was_expected_is_taken_back_when_it_comes_back(cluster: Any):
    """Even if nobody has answered, and no news of it have come."""
    core = cluster(node("n1", cpu=2), pod("a", cpu=2), plugins=[Fit(), Patience(seconds(9))])
    [expected] = patches(run(core))
    assert expected.nominated_node_name == "n1"
    fail(core, expected, "Timeout")

    [patch] = patches(core.handle(Commanded("reject", "default/a"), core.now))

    assert patch.nominated_node_name == ""
    observe(core, pod("a", cpu=2, nominated="n1"))
    assert dict(core.queue.nominated()) == {}


def test_an_event_that_cannot_be_written_is_lost_and_nothing_else(cluster: Any):
    core = cluster(node("n1", cpu=1), pod("a", cpu=2), plugins=[Fit()])
    said, patch = tick(core)
    assert fail(core, said, "Forbidden") == []
    assert answer(core, patch) == []
