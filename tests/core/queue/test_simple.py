"""First in, first out, and what does not fit is forgotten."""

from tests.core.queue.bench import NODE_ADD, POD_LABEL, Bench, Gate, Rejector, at, pod

from kubesched.core.queue import SimpleQueue
from kubesched.framework.records import State


def bench(**pods: int) -> Bench:
    world = Bench(Rejector("Fit", NODE_ADD, POD_LABEL), queue=SimpleQueue())
    for name, priority in pods.items():
        world.add(pod(name, priority=priority))
    return world


def test_pods_are_taken_in_the_order_they_came():
    world = bench(b=1, a=9, c=5)
    assert world.queue.ready
    assert world.drain() == ["b", "a", "c"]
    assert world.pop() is None


def test_what_does_not_fit_is_forgotten_whatever_happens():
    world = bench(a=1)
    world.pop()
    world.notify(NODE_ADD)
    world.back("a", "Fit", note="no room")
    world.notify(NODE_ADD, 10)
    world.update(pod("a", labels={"x": "y"}), POD_LABEL, seconds=20)
    world.tick(10_000)
    assert world.state("a") is State.PARKED
    assert world.queue.deadline is None
    assert not world.queue.ready
    assert world.queue.alarm("uid-a") == "never: SimpleQueue forgets what does not fit"
    assert world.queue.counts() == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}
    assert "uid-a" in world.queue


def test_what_broke_is_forgotten_too():
    world = bench(a=1)
    world.pop()
    world.back("a")
    assert world.state("a") is State.PARKED


def test_a_forgotten_pod_can_be_asked_for_by_name():
    world = bench(a=1)
    world.pop()
    world.back("a", "Fit")
    world.queue.activate(["uid-a", "stranger"], at(5))
    assert world.pop(5) == "a"
    assert world.taken["a"].attempts == 2


def test_no_gate_holds_a_pod_back():
    gate = Gate("Gate", "a")
    world = Bench(gate, queue=SimpleQueue())
    world.add(pod("a"))
    assert world.pop() == "a"
    assert gate.heard == []


def test_a_pod_is_updated_wherever_it_is():
    world = bench(line=1, tried=2)
    world.update(pod("line", priority=5))
    assert world.pop() == "line"
    assert world.taken["line"].priority == 5
    world.pop()
    world.update(pod("tried", priority=6))
    assert world.taken["tried"].priority == 2
    world.back("tried", "Fit")
    world.queue.activate(["uid-tried"], at(1))
    world.pop()
    assert world.taken["tried"].priority == 6
    world.update(pod("new"))
    assert world.pop() == "new"
    assert world.queue.alarm("uid-new") is None


def test_a_pod_being_bound_is_left_alone():
    world = bench(a=1)
    world.pop()
    world.queue.done("uid-a")
    world.update(pod("a", labels={"x": "y"}), POD_LABEL)
    assert len(world.queue) == 0
    assert world.state("a") is State.TRYING


def test_a_deleted_pod_is_gone_from_the_line_and_from_memory():
    world = bench(a=1, b=2)
    world.queue.nominate(world.pods["a"], "n1")
    world.queue.delete("uid-a", at(1))
    assert world.queue.nominated() == {}
    assert world.drain() == ["b"]
    world.back("b", "Fit")
    world.queue.delete("uid-b", at(2))
    assert len(world.queue) == 0
    assert world.queue.alarm("uid-b") is None


def test_promises_are_kept_but_not_to_strangers():
    world = bench(a=1)
    world.queue.nominate(world.pods["a"], "n1")
    world.queue.nominate(pod("stranger"), "n1")
    assert [info.name for info in world.queue.nominated()["n1"]] == ["a"]
