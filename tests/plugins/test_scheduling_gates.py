import pytest
from tests.plugins.small_cluster import node, pod, wakes, wakes_on_any

from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.events import NODE, UNSCHEDULED_POD, Action, ClusterEvent, pod_changes
from kubesched.framework.status import SUCCESS, Code
from kubesched.plugins.scheduling_gates import SchedulingGates

GATES_OPENED = ClusterEvent(UNSCHEDULED_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


def test_a_pod_without_gates_may_come_in() -> None:
    assert SchedulingGates().pre_enqueue(PodInfo(pod())) is SUCCESS


def test_a_gated_pod_is_told_its_gates_in_the_order_listed() -> None:
    gated = pod(schedulingGates=[{"name": "quota"}, {"name": "a.example/licence"}])

    status = SchedulingGates().pre_enqueue(PodInfo(gated))

    assert status.code is Code.UNRESOLVABLE
    assert status.message == "waiting for scheduling gates: [quota a.example/licence]"


GATED, OPENED = pod(schedulingGates=[{"name": "quota"}]), pod()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [("p", True), ("someone else", False)],
)
def test_only_its_own_gates_matter(changed: str, expected: bool) -> None:
    assert wakes(SchedulingGates(), GATES_OPENED, GATED, pod(changed), pod(changed)) is expected


def test_opening_the_last_gate_is_such_an_event() -> None:
    assert wakes_on_any(SchedulingGates(), pod_changes(GATED, OPENED), GATED, GATED, OPENED)


def test_opening_one_of_two_gates_is_not() -> None:
    before = pod(schedulingGates=[{"name": "quota"}, {"name": "licence"}])
    assert not wakes_on_any(SchedulingGates(), pod_changes(before, GATED), before, before, GATED)


def test_nodes_do_not_open_gates() -> None:
    assert not wakes(SchedulingGates(), ClusterEvent(NODE, Action.ADD), GATED, None, node())
