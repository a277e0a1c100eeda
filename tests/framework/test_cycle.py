"""A cycle's scratch space, and what a dry run may and may not change."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.trial import Trial
from kubesched.framework.cycle import Cycle, NotWritten
from kubesched.framework.status import SUCCESS, Status, unschedulable
from kubesched.testing import node, pod, scheduler

GUESTS = (PodInfo(pod("x")), PodInfo(pod("y")))


@dataclass
class Count:
    there: int = 0
    names: list[str] = field(default_factory=list)

    def clone(self) -> Count:
        return Count(self.there, list(self.names))


@dataclass(frozen=True)
class Wish:
    most: int


class Crowd:
    """No more pods on a node than so many; counts them in scratch space, as others come and go."""

    def pre_filter(self, cycle, pod, nodes) -> Status:
        assert cycle.find(Count) is None, "every attempt begins with nothing"
        cycle.put(Count(sum(len(one.pods) for one in nodes)))
        cycle.put(Wish(1))
        return SUCCESS

    def add_pod(self, cycle, pod, other, node) -> None:
        cycle.get(Count).there += 1

    def remove_pod(self, cycle, pod, other, node) -> None:
        cycle.get(Count).there -= 1
        cycle.get(Count).names.append(other.name)

    def filter(self, cycle, pod, node) -> Status:
        return SUCCESS if cycle.get(Count).there <= cycle.get(Wish).most else unschedulable("crowded")


class Asking:
    """Asks what if all pods were gone, and looks at what is left of that."""

    def post_filter(self, cycle, pod, rejected) -> Status:
        [one] = list(cycle.nodes)
        before = cycle.get(Count)
        with Trial(cycle.table) as trial:
            for other in list(one.pods):
                trial.evict(other, one.name)
            assert cycle.fits(one, trial).ok
            mark = trial.checkpoint()
            for guest in GUESTS:
                trial.place(guest, one.name)
            assert not cycle.fits(one, trial).ok
            trial.rollback(mark)
            assert cycle.fits(one, trial).ok, "what is taken back is told as well"
        assert cycle.get(Count) is before
        assert (before.there, before.names) == (3, []), "it was a clone that changed"
        assert len(list(NodeInfo(cycle.table, one.row).pods)) == 3
        return unschedulable("as it should be")


def test_a_dry_run_changes_clones_of_the_scratch_values() -> None:
    core = scheduler(node("n1"), *(pod(f"p{i}", on="n1") for i in range(3)), plugins=[Crowd(), Asking()])
    assert core.what_if(pod("a")).message == "0/1 nodes are available: 1 crowded. as it should be"


def test_scratch_is_by_class_and_lives_for_one_attempt() -> None:
    core = scheduler(node("n1"), plugins=[Crowd()])
    for name in "ab":
        assert core.what_if(pod(name)).placed


def test_what_nobody_wrote_is_not_there() -> None:
    seen: list[Cycle] = []

    class Keeps:
        def pre_filter(self, cycle, pod, nodes) -> Status:
            seen.append(cycle)
            return SUCCESS

    scheduler(node("n1"), plugins=[Keeps()]).what_if(pod("a"))
    [cycle] = seen
    assert cycle.find(Wish) is None
    with pytest.raises(NotWritten, match="not found"):
        cycle.get(Wish)
    cycle.put(Wish(3))
    assert cycle.get(Wish) == Wish(3)
    cycle.forget()
    assert cycle.find(Wish) is None


def test_luck_depends_on_what_it_is_for_and_on_nothing_that_was_drawn_before() -> None:
    drawn: list[list[int]] = []

    class Draws:
        def pre_filter(self, cycle, pod, nodes) -> Status:
            draws = [cycle.luck.below(1000, purpose) for purpose in ("one", "two", "one")]
            drawn.append(draws)
            return SUCCESS

    core = scheduler(node("n1"), plugins=[Draws()], seed=7)
    core.what_if(pod("a"))
    core.what_if(pod("a"))
    assert drawn[0] == drawn[1]
    one, two, again = drawn[0]
    assert one == again != two
