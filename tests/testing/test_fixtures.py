"""The fixture that makes clusters, used as its users do."""

from __future__ import annotations

from kubesched.api.time import seconds
from kubesched.testing import node, pod
from kubesched.testing.fixtures import Clusters
from kubesched.testing.fixtures import cluster as cluster
from kubesched.testing.harness import tick

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}


def test_by_hand(cluster: Clusters) -> None:
    core = cluster(node("n1"), pod("a"))
    [bind] = tick(core)
    assert getattr(bind, "node", "") == "n1"


def test_in_virtual_time(cluster: Clusters) -> None:
    sim = cluster.virtual(nodes=3, zones=["za", "zb"])
    sim.client.create(DEPLOYMENT)
    sim.run(seconds(10))
    pods = sim.client.list("Pod")
    assert {found["spec"]["nodeName"] for found in pods} == {"node-0", "node-1", "node-2"}
    assert [found["status"]["phase"] for found in pods] == ["Running"] * 3


def test_on_a_port(cluster: Clusters) -> None:
    box = cluster.up(nodes=1)
    created = box.call(box.client.create, DEPLOYMENT)
    assert created["spec"]["strategy"]["type"] == "RollingUpdate", "with what the API server defaults"


def test_two_at_once_are_strangers(cluster: Clusters) -> None:
    one, other = cluster.up(nodes=1), cluster.up(nodes=2)
    assert one.url != other.url
    assert one.token != other.token
    assert one.call(one.server.store.count, "nodes") == 1
