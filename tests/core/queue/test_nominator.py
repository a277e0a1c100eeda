"""Promises of room on a node: made, kept when a pod changes, and taken back."""

import pytest
from tests.core.queue.bench import Bench, Rejector, at, pod

from kubesched.core.queue.nominator import Nominator


def names(nominator: Nominator) -> dict[str, list[str]]:
    return {node: [info.name for info in pods] for node, pods in nominator.by_node.items()}


def test_a_promise_is_what_the_status_says_or_what_one_is_told():
    nominator = Nominator()
    nominator.nominate(pod("a", nominated="n1"), None)
    nominator.nominate(pod("b", nominated="n1"), "n2")
    nominator.nominate(pod("c"), None)
    assert names(nominator) == {"n1": ["a"], "n2": ["b"]}
    assert nominator.node_of("uid-c") == ""


def test_a_pod_is_promised_one_place():
    nominator = Nominator()
    nominator.nominate(pod("a"), "n1")
    nominator.nominate(pod("b"), "n1")
    nominator.nominate(pod("a"), "n2")
    assert names(nominator) == {"n1": ["b"], "n2": ["a"]}


def test_an_empty_name_takes_a_promise_back():
    nominator = Nominator()
    nominator.nominate(pod("a", nominated="n1"), None)
    nominator.nominate(pod("a", nominated="n1"), "")
    assert names(nominator) == {}


def test_a_pod_on_a_node_is_promised_nothing():
    nominator = Nominator()
    nominator.nominate(pod("a", node="n3"), "n1")
    assert names(nominator) == {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", "promised"),  # the promise has not reached the API server yet
        ("", "said", "said"),
        ("said", "other", "other"),
        ("said", "", ""),  # taken back by whoever wrote the status
    ],
)
def test_a_change_of_the_pod_keeps_a_promise_that_its_status_never_knew(before, after, expected):
    nominator = Nominator()
    nominator.nominate(pod("a", nominated=before), "promised")
    nominator.update(pod("a", nominated=before).pod, pod("a", nominated=after))
    assert nominator.node_of("uid-a") == expected


def test_a_change_of_the_pod_is_what_a_promise_shows():
    nominator = Nominator()
    nominator.nominate(pod("a"), "n1")
    nominator.update(pod("a").pod, changed := pod("a", priority=7))
    assert nominator.by_node["n1"] == [changed]


def test_pods_that_arrive_with_a_promise_in_their_status_keep_it():
    bench = Bench()
    bench.add(pod("a", nominated="n1"))
    assert [info.name for info in bench.queue.nominated()["n1"]] == ["a"]


def test_a_promise_goes_with_the_pod_wherever_it_is():
    bench = Bench(Rejector("Fit"))
    for name in ("active", "tried"):
        bench.add(pod(name, nominated="n1"))
    assert bench.pop() == "active"
    bench.back("active", "Fit")
    assert bench.pop() == "tried"
    bench.add(pod("waiting", nominated="n1"))
    for name in ("active", "tried", "waiting"):
        bench.queue.delete(f"uid-{name}", at(0))
    assert bench.queue.nominated() == {}


def test_a_pod_nobody_waits_for_is_promised_nothing():
    bench = Bench()
    bench.queue.nominate(pod("stranger"), "n1")
    gone = bench.add(pod("gone"))
    bench.queue.delete(gone.uid, at(0))
    bench.life.move(gone, "gone")
    bench.queue.nominate(gone, "n1")
    assert bench.queue.nominated() == {}


def test_a_pod_that_came_back_may_be_promised_room():
    bench = Bench(Rejector("Fit"))
    bench.park(info := pod("a"), "Fit")
    bench.queue.nominate(info, "n1")
    assert [nominee.name for nominee in bench.queue.nominated()["n1"]] == ["a"]
