from typing import Any

import pytest
from tests.plugins.small_cluster import Cluster, container, node, pod, wakes, wakes_on_any

from kubesched.api.objects import Node, Pod
from kubesched.framework.events import NODE, UNSCHEDULED_POD, Action, ClusterEvent, node_changes
from kubesched.framework.features import Features
from kubesched.framework.status import SKIP, Code
from kubesched.framework.tools import Tools
from kubesched.plugins.node_declared_features import REASON, NodeDeclaredFeatures, required_features

RESTART_ALL, USER_NAMESPACES = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
RESTARTING = container(restartPolicyRules=[{"action": "Restart"}, {"action": "RestartAllContainers"}])
OFF = Tools("NodeDeclaredFeatures", Features(node_declared_features=False))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, set(), id="an ordinary pod"),
        pytest.param({"containers": [container(), RESTARTING]}, {RESTART_ALL}, id="a container restarts all"),
        pytest.param({"initContainers": [RESTARTING]}, {RESTART_ALL}, id="an init container restarts all"),
        pytest.param(
            {"containers": [container(restartPolicyRules=[{"action": "Restart"}])]}, set(), id="only itself restarts"
        ),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False}, {USER_NAMESPACES}, id="own users on the host's network"
        ),
        pytest.param({"hostNetwork": True}, set(), id="the host's users on the host's network"),
        pytest.param({"hostNetwork": True, "hostUsers": True}, set(), id="said aloud"),
        pytest.param({"hostUsers": False}, set(), id="own users on its own network"),
        pytest.param(
            {"containers": [RESTARTING], "hostNetwork": True, "hostUsers": False},
            {RESTART_ALL, USER_NAMESPACES},
            id="both",
        ),
    ],
)
def test_what_a_pod_needs(spec: dict[str, Any], expected: set[str]) -> None:
    assert required_features(pod(**spec)) == expected


BOTH = pod(containers=[RESTARTING], hostNetwork=True, hostUsers=False)


@pytest.mark.parametrize(
    ("declared", "fits"),
    [
        ([], False),
        ([RESTART_ALL], False),
        ([RESTART_ALL, USER_NAMESPACES], True),
        (["Other", USER_NAMESPACES, RESTART_ALL], True),
        (["Other"], False),
    ],
)
def test_a_node_must_declare_all_of_it(declared: list[str], fits: bool) -> None:
    cluster = Cluster(node(features=declared))
    assert cluster.rejects(NodeDeclaredFeatures(), BOTH) == ({} if fits else {"n1": REASON})


def test_evicting_pods_would_not_help() -> None:
    [status] = Cluster(node()).filter(NodeDeclaredFeatures(), BOTH).values()
    assert status.code is Code.UNRESOLVABLE


@pytest.mark.parametrize(("plugin", "wanting"), [(NodeDeclaredFeatures(), pod()), (NodeDeclaredFeatures(OFF), BOTH)])
def test_it_skips_pods_that_need_nothing_and_everything_without_the_gate(
    plugin: NodeDeclaredFeatures, wanting: Pod
) -> None:
    cycle = Cluster(node()).cycle(wanting)
    assert plugin.pre_filter(cycle, cycle.pod, cycle.nodes) is SKIP


def test_without_the_gate_it_listens_to_nothing() -> None:
    assert list(NodeDeclaredFeatures(OFF).events_to_register()) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, node(features=[RESTART_ALL]), True, id="a new node"),
        pytest.param(node(), node(features=[RESTART_ALL]), True, id="it can do more"),
        pytest.param(node(features=[RESTART_ALL]), node(features=[RESTART_ALL]), False, id="it can do the same"),
    ],
)
def test_nodes_that_wake(old: Node | None, new: Node, expected: bool) -> None:
    event = ClusterEvent(NODE, Action.ADD if old is None else Action.UPDATE_NODE_DECLARED_FEATURE)
    assert wakes(NodeDeclaredFeatures(), event, BOTH, old, new) is expected


def test_declaring_a_feature_is_told_as_such_an_event() -> None:
    old, new = node(), node(features=[RESTART_ALL])
    assert wakes_on_any(NodeDeclaredFeatures(), node_changes(old, new), BOTH, old, new)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(BOTH, pod(containers=[RESTARTING]), True, id="it needs less"),
        pytest.param(pod(), BOTH, True, id="it needs more"),
        pytest.param(BOTH, BOTH, False, id="it needs the same"),
        pytest.param(pod("q"), pod("q", containers=[RESTARTING]), False, id="another pod changed"),
    ],
)
def test_updates_that_wake(old: Pod, new: Pod, expected: bool) -> None:
    event = ClusterEvent(UNSCHEDULED_POD, Action.UPDATE)
    assert wakes(NodeDeclaredFeatures(), event, BOTH, old, new) is expected
