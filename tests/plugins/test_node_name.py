import pytest
from tests.plugins.small_cluster import Cluster, node, pod, wakes

from kubesched.framework.events import NODE, Action, ClusterEvent
from kubesched.framework.status import Code
from kubesched.plugins.node_name import REASON, NodeName


@pytest.mark.parametrize(
    ("wanted", "rejected"),
    [
        pytest.param("", [], id="no name, any node"),
        pytest.param("n1", ["n2", "n3"], id="the named node only"),
        pytest.param("gone", ["n1", "n2", "n3"], id="a node that is not there"),
    ],
)
def test_a_pod_goes_to_the_node_it_names(wanted: str, rejected: list[str]) -> None:
    cluster = Cluster(node("n1"), node("n2"), node("n3"))
    assert cluster.rejects(NodeName(), pod(on=wanted)) == dict.fromkeys(rejected, REASON)


def test_evicting_pods_would_not_help() -> None:
    [status] = Cluster(node()).filter(NodeName(), pod(on="elsewhere")).values()
    assert status.code is Code.UNRESOLVABLE


def test_a_new_node_may_be_the_one() -> None:
    assert wakes(NodeName(), ClusterEvent(NODE, Action.ADD), pod(on="n2"), None, node("n2"))
    assert not wakes(NodeName(), ClusterEvent(NODE, Action.UPDATE_NODE_LABEL), pod(on="n2"), node("n2"), node("n2"))
