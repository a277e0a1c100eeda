"""Whether a pod may be tried at all: where the pre_enqueue plugins are asked, and what follows."""

import pytest
from tests.core.queue.bench import NODE_ADD, POD_LABEL, POD_UNGATED, PVC_ADD, Bench, Gate, Rejector, pod

from kubesched.framework.events import Action, Hint
from kubesched.framework.records import State
from kubesched.framework.status import error, pending, unresolvable

ON_UNGATING = (Hint("Pod", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),)


def test_a_gated_pod_is_not_tried_and_says_why():
    bench = Bench(Gate("Gate", "a", events=ON_UNGATING))
    bench.add(pod("a"))
    bench.add(pod("b"))
    assert bench.drain() == ["b"]
    assert bench.states() == {"a": "Gated", "b": "Trying"}
    [record] = bench.life.story("default/a")
    assert (record.cause, record.note) == ("gated", "Gate: a must wait")
    assert bench.queue.counts() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert bench.queue.alarm("uid-a") == "PodUpdatePodSchedulingGatesEliminated"


def test_a_gated_pod_is_let_in_by_an_update_its_gate_listens_to():
    gate = Gate("Gate", "a", events=ON_UNGATING)
    bench = Bench(gate)
    bench.add(pod("a"))
    bench.update(pod("a", labels={"x": "y"}), POD_LABEL)
    assert gate.heard == ["a"]  # nobody asked it again
    gate.closed.clear()
    bench.update(pod("a"), POD_LABEL, POD_UNGATED)
    assert bench.state("a") is State.ACTIVE
    assert bench.causes("a") == ["gated", "ungated"]
    assert bench.queue.counts()["gated"] == 0
    assert bench.pop() == "a"


def test_an_event_the_gate_registered_asks_it_again():
    gate = Gate("Gate", "a", events=[Hint("PersistentVolumeClaim", Action.ADD)])
    bench = Bench(gate, Rejector("Fit", NODE_ADD))
    bench.add(pod("a"))
    bench.notify(NODE_ADD)
    assert gate.heard == ["a"]
    bench.notify(PVC_ADD)
    assert gate.heard == ["a", "a"]
    assert bench.state("a") is State.GATED
    assert bench.causes("a") == ["gated"]  # staying is no move
    gate.closed.clear()
    bench.notify(PVC_ADD)
    assert bench.state("a") is State.ACTIVE


def test_an_event_of_another_rejector_does_not_disturb_a_gated_pod():
    gate = Gate("Gate", events=ON_UNGATING)
    bench = Bench(gate, Rejector("Fit", NODE_ADD, PVC_ADD))
    bench.park(pod("a"), "Fit")
    gate.closed.add("a")
    bench.notify(NODE_ADD, 0)
    assert bench.state("a") is State.GATED  # its old rejector woke it; the gate stopped it
    gate.closed.clear()
    bench.notify(PVC_ADD, 5)
    assert bench.state("a") is State.GATED


def test_the_gate_that_holds_a_pod_is_asked_first():
    first, second = Gate("First"), Gate("Second", "a")
    bench = Bench(first, second)
    bench.add(pod("a"))
    assert (first.heard, second.heard) == (["a"], ["a"])
    bench.activate("a")
    assert (first.heard, second.heard) == (["a"], ["a", "a"])


@pytest.mark.parametrize("status", [unresolvable("no"), pending("later"), error("what?"), error()])
def test_any_no_holds_a_pod_back(status):
    class Says:
        def pre_enqueue(self, pod):
            return status

    bench = Bench(Says())
    bench.add(pod("a"))
    [record] = bench.life.story("default/a")
    assert record.state is State.GATED
    assert record.note == f"Says: {status.message or 'Error'}"


@pytest.mark.parametrize("answer", [RuntimeError("boom"), None, True])
def test_a_gate_that_raises_or_talks_nonsense_holds_only_its_pod(answer):
    class Breaks:
        def pre_enqueue(self, pod):
            if pod.name == "good":
                return Gate("any").pre_enqueue(pod)
            if isinstance(answer, Exception):
                raise answer
            return answer

    bench = Bench(Breaks())
    bench.add(pod("bad"))
    bench.add(pod("good"))
    assert bench.drain() == ["good"]
    assert bench.state("bad") is State.GATED
    assert bench.life.story("default/bad")[-1].note.startswith("Breaks: raised ")
    assert list(bench.kube.problems) == [("Breaks", "pre_enqueue")]


def test_a_gated_pod_was_not_tried():
    bench = Bench(Gate("Gate", "a"))
    bench.add(pod("a"))
    waiting = bench.waiting("a")
    assert (waiting.attempts, waiting.unschedulable_count, waiting.errors_in_a_row) == (0, 0, 0)
    assert waiting.first_attempt is None
    assert waiting.rejectors == {"Gate"}


def test_the_name_of_a_gate_does_not_outlive_the_next_attempt():
    gate = Gate("Gate", "a")
    bench = Bench(gate, Rejector("Fit", NODE_ADD))
    bench.add(pod("a"))
    gate.closed.clear()
    bench.activate("a")
    assert bench.pop() == "a"
    bench.back("a")  # something broke
    assert bench.state("a") is State.BACKOFF
    assert bench.pop() is None  # an error is not tried early, whatever held the pod back before


def test_a_pod_that_was_gated_once_and_then_turned_down_is_not_gated():
    gate = Gate("Gate", "a", events=ON_UNGATING)
    bench = Bench(gate, Rejector("Fit", NODE_ADD))
    bench.add(pod("a"))
    gate.closed.clear()
    bench.update(pod("a"), POD_UNGATED)
    bench.pop()
    bench.back("a", "Fit")
    assert bench.queue.counts() == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}
    assert bench.waiting("a").gate == ""
    bench.notify(NODE_ADD, 5)
    assert bench.state("a") is State.ACTIVE


@pytest.mark.parametrize(
    ("wake", "rejectors", "expected"),
    [
        ("event while backing off", ("Fit",), "Gated"),
        ("event after the backoff", ("Fit",), "Gated"),
        ("activation", ("Fit",), "Gated"),
        ("event in flight", ("Fit",), "Gated"),
        ("error", (), "Gated"),
        ("nothing", ("Fit",), "Parked"),
    ],
)
def test_whatever_wakes_a_pod_asks_the_gates_first(wake, rejectors, expected):
    gate = Gate("Gate")
    bench = Bench(gate, Rejector("Fit", NODE_ADD))
    bench.add(pod("a"))
    bench.pop()
    gate.closed.add("a")
    if wake == "event in flight":
        bench.notify(NODE_ADD)
    bench.back("a", *rejectors)
    if wake == "event while backing off":
        bench.notify(NODE_ADD, 0.5)
    elif wake == "event after the backoff":
        bench.notify(NODE_ADD, 5)
    elif wake == "activation":
        bench.activate("a")
    assert bench.states() == {"a": expected}


@pytest.mark.parametrize("errs", [False, True])
def test_a_backoff_that_ends_or_is_cut_short_asks_no_gate(errs):
    gate = Gate("Gate")
    bench = Bench(gate, Rejector("Fit", NODE_ADD))
    for name in ("a", "b"):
        bench.add(pod(name))
        bench.pop()
        bench.notify(NODE_ADD)
        bench.back(name, *(() if errs else ("Fit",)))
    asked = len(gate.heard)
    gate.closed.update("ab")
    bench.activate("a")
    bench.tick(2)
    assert bench.states() == {"a": "Active", "b": "Active"}
    assert len(gate.heard) == asked


def test_a_pod_ungated_while_its_backoff_runs_waits_for_the_rest_of_it():
    gate = Gate("Gate", events=[Hint("PersistentVolumeClaim", Action.ADD)])
    bench = Bench(gate, Rejector("Fit", NODE_ADD))
    bench.park(pod("a"), "Fit")
    gate.closed.add("a")
    bench.notify(NODE_ADD, 0.2)
    gate.closed.clear()
    bench.notify(PVC_ADD, 0.4)
    assert bench.state("a") is State.BACKOFF
    assert bench.causes("a")[-2:] == ["gated", "ungated_backoff"]
    assert bench.deadline() == 2
