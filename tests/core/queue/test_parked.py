"""The pods that sleep: filed by who turned them down, and by when they have slept too long."""

import pytest
from tests.core.queue.bench import SECOND, at, pod

from kubesched.api.time import minutes, seconds
from kubesched.core.queue.parked import Parked
from kubesched.framework.queued import QueuedPod


def sleeper(name: str, *rejectors: str, since: float = 0) -> QueuedPod:
    queued = QueuedPod(pod(name), at(since), 1)
    queued.rejectors = frozenset(rejectors)
    return queued


def names(pods) -> list[str]:
    return [pod.info.name for pod in pods]


def test_pods_are_found_by_who_turned_them_down_in_the_order_they_came():
    parked = Parked(minutes(5), at(0))
    for pod_ in (sleeper("c", "Fit"), sleeper("a", "Taints", "Fit"), sleeper("b", "Taints")):
        parked.put(pod_)
    assert names(parked.rejected_by(["Taints"])) == ["a", "b"]
    assert names(parked.rejected_by(["Taints", "Fit"])) == ["c", "a", "b"]
    assert names(parked.rejected_by(["Ports"])) == []
    assert names(parked) == ["c", "a", "b"]


def test_a_pod_put_again_is_filed_afresh_and_keeps_its_place():
    parked = Parked(minutes(5), at(0))
    first = sleeper("first", "Fit")
    parked.put(first)
    parked.put(sleeper("second", "Gate"))
    first.rejectors, first.gate = frozenset(("Gate",)), "Gate"
    parked.put(first)
    assert names(parked.rejected_by(["Fit"])) == []
    assert names(parked.rejected_by(["Gate"])) == ["first", "second"]
    assert (len(parked), parked.gated) == (2, 1)
    first.gate = ""
    parked.put(first)
    assert parked.gated == 0


def test_a_pod_that_leaves_is_in_no_file():
    parked = Parked(minutes(5), at(0))
    parked.put(sleeper("a", "Fit"))
    assert parked.remove("uid-a") is not None
    assert parked.remove("uid-a") is None
    assert "uid-a" not in parked
    assert parked.rejected_by(["Fit"]) == []
    assert parked.deadline is None
    assert parked._files == {}


@pytest.mark.parametrize(
    ("since", "longest", "start", "due"),
    [
        (0, 300, 0, 330),  # at 300 it has not slept longer than five minutes yet
        (0.1, 300, 0, 330),
        (29.9, 300, 0, 330),
        (30, 300, 0, 360),
        (12.5, 300, 7.25, 337.25),  # looks are counted from the start
        (7.25, 300, 7.25, 337.25),
        (1, 0, 0, 30),
        (30, 0, 0, 60),
        (0, 45, 0, 60),
    ],
)
def test_a_pod_has_slept_too_long_at_the_first_look_after_its_time(since, longest, start, due):
    parked = Parked(seconds(longest), at(start))
    parked.put(sleeper("a", "Fit", since=since))
    assert parked.deadline == at(due)
    assert parked.overdue(at(due - 1e-9)) == []
    assert names(parked.overdue(at(due))) == ["a"]


def test_a_pod_flushed_and_still_asleep_is_next_looked_for_when_as_long_has_passed_again():
    parked = Parked(minutes(5), at(0))
    pod_ = sleeper("a", "Fit")
    parked.put(pod_)
    pod_.flushed = at(330)
    parked.put(pod_)
    assert parked.deadline == at(660)
    assert parked.overdue(at(659.9)) == []


def test_only_those_who_slept_too_long_are_found():
    parked = Parked(minutes(5), at(0))
    for number in range(10):
        parked.put(sleeper(f"p{number}", "Fit", since=number * 30))
    assert parked.deadline == 330 * SECOND
    assert names(parked.overdue(at(390))) == ["p0", "p1", "p2"]
