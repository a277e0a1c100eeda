from typing import Any

import pytest
from tests.plugins.small_cluster import Cluster, container, node, pod, port, ports, wakes

from kubesched.api.objects import Pod
from kubesched.framework.events import ASSIGNED_POD_DELETE, NODE, UNSCHEDULED_POD, Action, ClusterEvent
from kubesched.framework.status import SKIP, Code
from kubesched.plugins.node_ports import REASON, NodePorts


@pytest.mark.parametrize(
    ("used", "wanted", "fits"),
    [
        pytest.param([], [port(80)], True, id="nothing used"),
        pytest.param([port(80)], [port(80)], False, id="the same port"),
        pytest.param([port(80)], [port(81)], True, id="another port"),
        pytest.param([port(80)], [port(80, protocol="UDP")], True, id="another protocol"),
        pytest.param([port(80, "127.0.0.1")], [port(80, "127.0.0.1")], False, id="the same address"),
        pytest.param([port(80, "127.0.0.1")], [port(80, "127.0.0.2")], True, id="another address"),
        pytest.param([port(80, "127.0.0.1")], [port(80, "0.0.0.0")], False, id="wants every address"),
        pytest.param([port(80, "0.0.0.0")], [port(80, "127.0.0.1")], False, id="every address is used"),
        pytest.param([port(80, "0.0.0.0")], [port(80)], False, id="no address is every address"),
        pytest.param([port(80, "127.0.0.1")], [port(80, "", "UDP")], True, id="every address, another protocol"),
        pytest.param([port(80, "127.0.0.1", "")], [port(80, "127.0.0.1")], False, id="no protocol is TCP"),
        pytest.param([port(80, protocol="SCTP")], [port(80, protocol="SCTP")], False, id="SCTP"),
        pytest.param([port(80), port(81)], [port(82), port(81)], False, id="one of two"),
        pytest.param([port(80, "127.0.0.1"), port(81)], [port(80, "127.0.0.2"), port(82)], True, id="none of two"),
    ],
)
def test_two_pods_cannot_have_the_same_port(used: list[Any], wanted: list[Any], fits: bool) -> None:
    there = pod("there", on="n1", containers=ports(*used))
    cluster = Cluster(node("n1"), node("n2"), there)

    assert cluster.rejects(NodePorts(), pod(containers=ports(*wanted))) == ({} if fits else {"n1": REASON})


def test_sidecars_hold_ports_and_ordinary_init_containers_do_not() -> None:
    sidecar = pod("a", on="n1", initContainers=[container(ports=[port(80)], restartPolicy="Always")])
    init = pod("b", on="n2", initContainers=[container(ports=[port(80)])])
    cluster = Cluster(node("n1"), node("n2"), sidecar, init)

    assert cluster.rejects(NodePorts(), pod(containers=ports(port(80)))) == {"n1": REASON}
    asks_in_sidecar = pod("c", initContainers=[container(ports=[port(80)], restartPolicy="Always")])
    assert cluster.rejects(NodePorts(), asks_in_sidecar) == {"n1": REASON}


def test_a_pod_without_host_ports_is_not_looked_at() -> None:
    cycle = Cluster(node()).cycle(pod(containers=ports(port(0))))
    assert NodePorts().pre_filter(cycle, cycle.pod, cycle.nodes) is SKIP


def test_evicting_the_other_pod_would_help() -> None:
    cluster = Cluster(node(), pod("there", on="n1", containers=ports(port(80))))
    [status] = cluster.filter(NodePorts(), pod(containers=ports(port(80)))).values()
    assert status.code is Code.UNSCHEDULABLE


def test_the_last_user_frees_the_port() -> None:
    first, second = (pod(name, on="n1", containers=ports(port(80))) for name in ("a", "b"))
    cluster = Cluster(node(), first, second)  # the kubelet would refuse one of them; it is there all the same
    wanted = pod(containers=ports(port(80)))

    cluster.mirror.observe(first, gone=True)
    assert cluster.rejects(NodePorts(), wanted) == {"n1": REASON}
    cluster.mirror.observe(second, gone=True)
    assert cluster.rejects(NodePorts(), wanted) == {}


WAITING = pod(containers=ports(port(80)))


@pytest.mark.parametrize(
    ("deleted", "expected"),
    [
        pytest.param(pod("q", on="n1", containers=ports(port(80))), True, id="it had the port"),
        pytest.param(pod("q", on="n1", containers=ports(port(80, "10.0.0.1"))), True, id="on one address"),
        pytest.param(pod("q", on="n1", containers=ports(port(81))), False, id="it had another port"),
        pytest.param(pod("q", on="n1", containers=ports(port(80, protocol="UDP"))), False, id="another protocol"),
        pytest.param(pod("q", on="n1"), False, id="it had no port"),
        pytest.param(pod("q", containers=ports(port(80))), False, id="it was nowhere"),
        pytest.param(
            pod("q", containers=ports(port(80)), status={"nominatedNodeName": "n1"}), True, id="it was nominated"
        ),
    ],
)
def test_deletions_that_wake(deleted: Pod, expected: bool) -> None:
    event = ASSIGNED_POD_DELETE if deleted.spec.node_name else ClusterEvent(UNSCHEDULED_POD, Action.DELETE)
    assert wakes(NodePorts(), event, WAITING, deleted, None) is expected


def test_a_new_node_wakes() -> None:
    assert wakes(NodePorts(), ClusterEvent(NODE, Action.ADD), WAITING, None, node())
