"""The real kube-scheduler on the embedded API server: it binds, it says why not, it preempts, volumes included."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.realserver import binaries
from tests.realserver.client import Client
from tests.realserver.fixtures import pod
from tests.realserver.process import Server, free_port

from kubesched.live.cluster import EmbeddedCluster, make_nodes

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
WAYS = {
    "as it comes": {},
    "JSON only": {"contentType": "application/json", "acceptContentTypes": "application/json"},
}


@pytest.fixture
def box() -> Iterator[EmbeddedCluster]:
    """A cluster in this process, kubelets and controllers played; nobody schedules."""
    with EmbeddedCluster(nodes=make_nodes(2, ["za", "zb"])).in_background() as cluster:
        yield cluster


@pytest.fixture
def client(box: EmbeddedCluster) -> Client:
    return Client(box.url, ssl.create_default_context(cadata=box.ca.decode()), box.token)


@pytest.fixture(params=WAYS)
def kube_scheduler(
    request: pytest.FixtureRequest, real_binaries: None, box: EmbeddedCluster, tmp_path: Path
) -> Iterator[Server]:
    """kube-scheduler with its own defaults, its Lease included, or speaking JSON alone."""
    kubeconfig = str(box.write_kubeconfig(tmp_path / "kubeconfig"))
    config = tmp_path / "config.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": kubeconfig, **WAYS[request.param]},
            }
        )
    )
    flags = {
        "config": str(config),
        "bind-address": "127.0.0.1",
        "secure-port": str(free_port()),
        "cert-dir": str(tmp_path / "certificates"),
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
    }
    command = [str(binaries.find("kube-scheduler")), *(f"--{name}={value}" for name, value in flags.items())]
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
    asking = Client(box.url, ssl.create_default_context(cadata=box.ca.decode()), box.token)
    server = Server("kube-scheduler", command, log=tmp_path / "kube-scheduler.log",
                    ready=lambda: asking.request("GET", lease).status == 200)
    server.start()
    yield server
    server.stop()


def condition(obj: Any, kind: str) -> Any:
    return next((each for each in obj.get("status", {}).get("conditions", []) if each["type"] == kind), None)


def running(seen: Any) -> bool:
    return bool(seen["status"]["phase"] == "Running")


def test_it_binds_pods_and_they_run(kube_scheduler: Server, client: Client) -> None:
    for number in range(10):
        client.create(PODS, pod(f"web-{number}"))
    nodes = {client.until(PODS, f"web-{number}", running)["spec"]["nodeName"] for number in range(10)}
    assert nodes == {"node-0", "node-1"}
    events = client.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    assert "Scheduled" in {event["reason"] for event in events}


def test_it_says_why_not_and_hears_of_a_new_node(kube_scheduler: Server, client: Client) -> None:
    client.create(PODS, pod("web", nodeSelector={"disk": "ssd"}))
    waiting = client.until(PODS, "web", lambda seen: condition(seen, "PodScheduled") is not None)
    assert condition(waiting, "PodScheduled")["reason"] == "Unschedulable"
    client.create("/api/v1/nodes", {"metadata": {"name": "late", "labels": {"disk": "ssd"}}})
    assert client.until(PODS, "web", running)["spec"]["nodeName"] == "late"


def test_it_preempts(kube_scheduler: Server, client: Client) -> None:
    client.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    big = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "7"}}}
    for name in ("low-0", "low-1"):
        client.create(PODS, pod(name, containers=[big], terminationGracePeriodSeconds=1))
        client.until(PODS, name, running)
    client.create(PODS, pod("high", containers=[big], priorityClassName="high"))
    client.until(PODS, "high", running)
    assert len([one for one in client.get(PODS)["items"] if one["metadata"]["name"].startswith("low")]) == 1


def test_it_binds_a_claim_to_where_its_first_consumer_goes(kube_scheduler: Server, client: Client) -> None:
    storage = {"metadata": {"name": "slow"}, "provisioner": "example.com/disk",
               "volumeBindingMode": "WaitForFirstConsumer"}
    client.create("/apis/storage.k8s.io/v1/storageclasses", storage)
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    client.create(CLAIMS, {"metadata": {"name": "data"}, "spec": {**asked, "storageClassName": "slow"}})
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    client.create(PODS, pod("web", volumes=[volume]))
    node = client.until(PODS, "web", running)["spec"]["nodeName"]
    claim = client.get(f"{CLAIMS}/data")
    assert claim["status"]["phase"] == "Bound"
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
