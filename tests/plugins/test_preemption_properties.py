"""Random crowds: whoever is evicted is lower, is really needed, and nobody less missed would have done."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.plugins.preempting import Crowd, budget, node, outcome, pod, said

from kubesched.api.objects import KubeObject, Node, Pod, PodDisruptionBudget
from kubesched.framework.status import SUCCESS, Status

NODES = ("n0", "n1", "n2", "n3")
APPS = ("web", "db")


@st.composite
def neighbours(draw: st.DrawFn, name: str) -> Pod:
    """A pod on a node; hours of a day are few, so that some start together."""
    app = draw(st.sampled_from([None, *APPS]))
    hour = draw(st.integers(1, 5))
    return pod(
        name,
        draw(st.integers(-2, 4)),
        draw(st.integers(0, 3)),
        on=draw(st.sampled_from(NODES)),
        started=f"0{hour}:00" if draw(st.booleans()) else "",
        labels={} if app is None else {"app": app},
    )


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Node], list[Pod], list[PodDisruptionBudget], Pod]:
    nodes = [node(name, draw(st.integers(0, 5)), cordoned=draw(st.integers(0, 5)) == 0) for name in NODES]
    pods = [draw(neighbours(f"p{i}")) for i in range(draw(st.integers(0, 12)))]
    budgets = [budget(app, draw(st.integers(0, 2)), {"app": app}) for app in draw(st.sets(st.sampled_from(APPS)))]
    wanted = pod("wanted", draw(st.integers(-1, 4)), draw(st.integers(1, 4)))
    return nodes, pods, sorted(budgets, key=lambda one: one.name), wanted


def cpu(one: Pod) -> int:
    return int(one.spec.containers[0].resources.requests["cpu"])


def room(on: Node) -> int:
    return int(on.status.allocatable["cpu"])


def would_go(on: Node, pods: list[Pod], budgets: list[PodDisruptionBudget], wanted: Pod) -> list[Pod] | None:
    """By pencil and paper: who would have to leave a node; None where that would not help."""
    here = [one for one in pods if one.spec.node_name == on.name]
    lower = [one for one in here if one.priority < wanted.priority]
    left = room(on) - cpu(wanted) - sum(cpu(one) for one in here if one not in lower)
    if on.spec.unschedulable or not lower or left < 0 or sum(map(cpu, here)) + cpu(wanted) <= room(on):
        return None
    lower.sort(key=lambda one: (-one.priority, one.status.start_time or "9"))
    allowed = {one.name: one.status.disruptions_allowed for one in budgets}
    first: list[Pod] = []
    second: list[Pod] = []
    for one in lower:
        app = one.labels.get("app", "")
        if app in allowed:
            allowed[app] -= 1
        (first if allowed.get(app, 0) < 0 else second).append(one)
    gone = []
    for one in (*first, *second):
        if cpu(one) <= left:
            left -= cpu(one)
        else:
            gone.append(one)
    return gone


def harm(victims: list[Pod], pods: list[Pod], budgets: list[PodDisruptionBudget], wanted: Pod) -> tuple[int, ...]:
    """The six criteria, smaller is better; starting times as hours."""
    here = [one for one in pods if one.spec.node_name == victims[0].spec.node_name and one.priority < wanted.priority]
    here.sort(key=lambda one: (-one.priority, one.status.start_time or "9"))
    allowed = {one.name: one.status.disruptions_allowed for one in budgets}
    overdrawn = 0
    for one in here:
        app = one.labels.get("app", "")
        if app in allowed:
            allowed[app] -= 1
            overdrawn += allowed[app] < 0 and one in victims
    highest = max(one.priority for one in victims)
    hours = [int((one.status.start_time or "2026-01-01T99")[11:13]) for one in victims if one.priority == highest]
    return overdrawn, highest, sum(one.priority + 2**31 for one in victims), len(victims), -min(hours)


@given(situations(), st.integers(0, 9))
def test_the_victims_are_lower_and_needed_and_the_least_missed(
    situation: tuple[list[Node], list[Pod], list[PodDisruptionBudget], Pod], offset: int
) -> None:
    nodes, pods, budgets, wanted = situation
    objects: list[KubeObject] = [*nodes, *pods, *budgets]
    decision = Crowd(*objects).decide(wanted, offset=offset)
    if decision.placed:
        return
    possible = {on.name: gone for on in nodes if (gone := would_go(on, pods, budgets, wanted)) is not None}
    name, victims = outcome(decision)
    if not possible:
        assert (name, victims) == ("", [])
        assert said(decision).startswith("preemption: 0/4 nodes are available: ")
        return

    evicted = [one for one in pods if one.name in victims]
    assert all(one.spec.node_name == name and one.priority < wanted.priority for one in evicted)
    [on] = [one for one in nodes if one.name == name]
    left = room(on) - sum(cpu(one) for one in pods if one.spec.node_name == name and one not in evicted)
    assert cpu(wanted) <= left
    assert all(cpu(wanted) > left - cpu(one) for one in evicted), "one of them could have stayed"

    assert sorted(victims) == sorted(one.name for one in possible[name])
    harms = {where: harm(gone, pods, budgets, wanted) for where, gone in possible.items()}
    assert harms[name] == min(harms.values())


class Onlooker:
    """Looks at who is on a node, and does not mind: with two filters that look, victims must be found by trying."""

    def __init__(self) -> None:
        self.asked = 0

    def filter(self, cycle: Any, pod: Any, node: Any) -> Status:
        self.asked += 1
        return SUCCESS


@given(situations(), st.integers(0, 9), st.sampled_from([None, *NODES]), st.integers(-1, 5))
def test_victims_worked_out_are_victims_found_by_trying(
    situation: tuple[list[Node], list[Pod], list[PodDisruptionBudget], Pod],
    offset: int,
    promised: str | None,
    priority: int,
) -> None:
    nodes, pods, budgets, wanted = situation
    crowd = Crowd(*nodes, *pods, *budgets)
    nominated = {promised: [pod("promised", priority, 1)]} if promised else {}
    onlooker = Onlooker()
    worked_out = crowd.decide(wanted, offset=offset, nominated=nominated)
    tried = crowd.decide(wanted, offset=offset, nominated=nominated, besides=[onlooker])

    assert worked_out.message == tried.message
    assert worked_out.node == tried.node
    if not tried.placed:
        assert (outcome(worked_out), said(worked_out)) == (outcome(tried), said(tried))


def test_nobody_is_taken_off_a_node_where_victims_can_be_worked_out() -> None:
    crowd = Crowd(node("n0", 5), *(pod(f"p{i}", 0, 1, on="n0") for i in range(5)))
    moved: list[str] = []
    account = crowd.mirror.table.neighbours.account

    def noting(info: Any, row: int, sign: int) -> None:
        moved.append(info.name)
        account(info, row, sign)

    crowd.mirror.table.neighbours.account = noting
    assert outcome(crowd.decide(pod("wanted", 1, 2))) == ("n0", ["p3", "p4"])
    assert not moved
    assert outcome(crowd.decide(pod("wanted", 1, 2), besides=[Onlooker()])) == ("n0", ["p3", "p4"])
    assert "p4" in moved
