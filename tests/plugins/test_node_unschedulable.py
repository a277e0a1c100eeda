import pytest
from tests.plugins.small_cluster import Cluster, node, pod, wakes, wakes_on_any

from kubesched.api.objects import Node, Pod
from kubesched.framework.events import NODE, UNSCHEDULED_POD, Action, ClusterEvent, node_changes, pod_changes
from kubesched.framework.features import Features
from kubesched.framework.status import Code
from kubesched.framework.tools import Tools
from kubesched.plugins.node_unschedulable import REASON, NodeUnschedulable

CORDON = "node.kubernetes.io/unschedulable"
OPEN, CORDONED = node(), node(unschedulable=True)


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param({"key": CORDON, "operator": "Exists", "effect": "NoSchedule"}, True, id="tolerates the cordon"),
        pytest.param({"key": CORDON, "effect": "NoSchedule"}, True, id="tolerates its empty value"),
        pytest.param({"key": CORDON, "value": "yes", "effect": "NoSchedule"}, False, id="tolerates another value"),
        pytest.param(
            {"key": CORDON, "operator": "Exists", "effect": "NoExecute"}, False, id="tolerates another effect"
        ),
        pytest.param({"key": CORDON, "operator": "Exists"}, True, id="tolerates any effect"),
        pytest.param({"operator": "Exists"}, True, id="tolerates everything"),
        pytest.param({"key": "other", "operator": "Exists"}, False, id="tolerates something else"),
    ],
)
def test_a_cordoned_node_takes_only_who_tolerates_that(toleration: dict[str, str], fits: bool) -> None:
    cluster = Cluster(node("open"), node("cordoned", unschedulable=True))
    expected = {} if fits else {"cordoned": REASON}
    assert cluster.rejects(NodeUnschedulable(), pod(tolerations=[toleration])) == expected


def test_an_ordinary_pod_keeps_off_and_eviction_would_not_help() -> None:
    [status] = Cluster(CORDONED).filter(NodeUnschedulable(), pod()).values()
    assert (status.code, status.message) == (Code.UNRESOLVABLE, REASON)


def test_comparisons_are_understood_where_the_gate_is_on() -> None:
    on = Tools("NodeUnschedulable", Features(taint_toleration_comparison_operators=True))
    greater = {"key": CORDON, "operator": "Gt", "value": "1", "effect": "NoSchedule"}
    # The cordon has no value to compare with; the gate must not turn this into a yes.
    assert Cluster(CORDONED).rejects(NodeUnschedulable(on), pod(tolerations=[greater])) == {"n1": REASON}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, OPEN, True, id="a new node"),
        pytest.param(None, CORDONED, False, id="a new node, cordoned"),
        pytest.param(CORDONED, OPEN, True, id="uncordoned"),
        pytest.param(OPEN, CORDONED, False, id="cordoned"),
        pytest.param(OPEN, OPEN, False, id="open before and after"),
        pytest.param(CORDONED, CORDONED, False, id="cordoned before and after"),
        pytest.param(OPEN, node(taints=[{"key": "a", "effect": "NoSchedule"}]), False, id="only a taint changed"),
    ],
)
def test_nodes_that_wake(old: Node | None, new: Node, expected: bool) -> None:
    event = ClusterEvent(NODE, Action.ADD if old is None else Action.UPDATE_NODE_TAINT)
    assert wakes(NodeUnschedulable(), event, pod(), old, new) is expected


def test_uncordoning_is_told_as_such_an_event() -> None:
    assert wakes_on_any(NodeUnschedulable(), node_changes(CORDONED, OPEN), pod(), CORDONED, OPEN)


TOLERATES = [{"key": CORDON, "operator": "Exists", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(pod(), pod(tolerations=TOLERATES), True, id="it tolerates cordons now"),
        pytest.param(
            pod(), pod(tolerations=[{"key": "a", "operator": "Exists"}]), False, id="it tolerates other things"
        ),
        pytest.param(pod("q"), pod("q", tolerations=TOLERATES), False, id="another pod does"),
    ],
)
def test_tolerations_that_wake(old: Pod, new: Pod, expected: bool) -> None:
    event = ClusterEvent(UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION)
    assert wakes(NodeUnschedulable(), event, pod(), old, new) is expected


def test_gaining_a_toleration_is_told_as_such_an_event() -> None:
    old, new = pod(), pod(tolerations=TOLERATES)
    assert wakes_on_any(NodeUnschedulable(), pod_changes(old, new), old, old, new)
