"""The rights that are granted are the rights that are used: no more, and no fewer."""

import contextlib
import itertools
import re
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.realserver.client import Client
from tests.realserver.faults import LoseRequest
from tests.realserver.fixtures import pod
from tests.realserver.harness import Options, RealCluster
from tests.realserver.process import wait_until
from tests.realserver.scheduling import Json, Kubesched, kubesched

from kubesched.assemble import profiles_of
from kubesched.cli.main import run
from kubesched.config.load import load
from kubesched.live.role import Right, cluster_rights, lease_rights

NAMESPACE, NAME = "kube-system", "kubesched"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
PODS, CLAIMS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/persistentvolumeclaims"
ELECTION = {
    "leaderElect": True,
    "resourceName": NAME,
    "leaseDuration": "4s",
    "renewDeadline": "3s",
    "retryPeriod": "500ms",
}
CONFIGURATION = {"leaderElection": ELECTION, "profiles": [{"schedulerName": NAME}]}


@pytest.fixture
def cluster(own_cluster: Callable[[Options], RealCluster]) -> RealCluster:
    return own_cluster(Options(audit="Metadata"))


@pytest.fixture
def start(cluster: RealCluster, tmp_path: Path) -> Iterator[Callable[..., Kubesched]]:
    started: list[Kubesched] = []

    def start(**told: Any) -> Kubesched:
        one = kubesched(cluster, tmp_path / f"kubesched-{len(started)}", CONFIGURATION, **told)
        started.append(one)
        one.start()
        return one

    yield start
    for one in started:
        one.stop(grace=10)


def granted() -> set[tuple[str, str, str]]:
    """(group, resource, verb) of every right that is granted, whatever its names."""
    configuration = load(CONFIGURATION)
    rights: list[Right] = [
        *cluster_rights(profiles_of(configuration)),
        *lease_rights(configuration.leader_election),
    ]
    return {(right.group, right.resource, verb) for right in rights for verb in right.verbs}


def used(cluster: RealCluster) -> tuple[set[tuple[str, str, str]], list[str]]:
    """What the scheduler has done by the audit log, and what it was refused."""
    done, refused = set(), []
    for event in cluster.audit_events():
        about = event.get("objectRef")
        if event["user"]["username"] != USER or about is None or _everybodys(about):
            continue
        resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
        if event.get("responseStatus", {}).get("code") == 403:
            refused.append(f"{event['verb']} {resource}")
        done.add((about.get("apiGroup", ""), resource, event["verb"]))
    return done, refused


def _everybodys(about: Json) -> bool:
    """What whoever is somebody may do."""
    return bool(about["resource"] == "selfsubjectaccessreviews")


def put_up(cluster: RealCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Apply what `kubesched manifests` prints, and nothing else; a kubeconfig with the account's token."""
    file = tmp_path / "own.yaml"
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(yaml.safe_dump({**head, **CONFIGURATION}))
    assert run(["manifests", "--config", str(file)]) == 0
    applied = cluster.kubectl("apply", "-f", "-", stdin=capsys.readouterr().out)
    assert applied.returncode == 0, applied.stderr
    return cluster.kubeconfig(token=cluster.service_account_token(NAMESPACE, NAME))


def node(name: str, cpu: str) -> Json:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": room, "allocatable": room, "conditions": ready},
    }


def wanting(name: str, cpu: str, **spec: Any) -> Json:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return pod(name, schedulerName=NAME, containers=[container], **spec)


def with_claim(name: str) -> Json:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    return wanting(name, "10m", volumes=volumes)


def claim(client: Client, name: str, provisioner: str) -> None:
    """A claim that waits for its first consumer."""
    mode = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    client.create("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": name}, **mode})
    wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": name}
    client.create(CLAIMS, {"metadata": {"name": name}, "spec": wants})


def make_it_work(client: Client) -> None:
    """Everything a scheduler may be asked to do."""
    client.create("/api/v1/nodes", node("n1", "1"))
    client.create(PODS, wanting("low", "800m"))
    client.until(PODS, "low", lambda seen: "nodeName" in seen["spec"])
    client.create(PODS, wanting("huge", "50"))  # waits, and says so more than once
    client.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    client.create(PODS, wanting("high", "900m", priorityClassName="high"))
    client.until(PODS, "low", lambda seen: "deletionTimestamp" in seen["metadata"])
    client.create("/api/v1/nodes", node("n2", "2"))
    claim(client, "made", "example.com/disks")
    client.create(PODS, with_claim("made"))
    client.until(CLAIMS, "made", lambda seen: "annotations" in seen["metadata"])
    claim(client, "found", "kubernetes.io/no-provisioner")
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}]
    client.create("/api/v1/persistentvolumes", {
        "metadata": {"name": "disk"},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "found",
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    })
    client.patch("/api/v1/persistentvolumes/disk/status", {"status": {"phase": "Available"}})  # a controller's word
    client.create(PODS, with_claim("found"))
    client.until("/api/v1/persistentvolumes", "disk", lambda seen: "claimRef" in seen["spec"])


def test_what_is_granted_is_what_is_used(
    cluster: RealCluster, start: Callable[..., Kubesched], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = cluster.client()
    mine = put_up(cluster, tmp_path, capsys)
    listing = start(kubeconfig=mine, flags=("--feature-gates=WatchListClient=false",))
    make_it_work(client)
    visitor = Client(listing.contact.url, ssl.create_default_context(cadata=listing.contact.authority),
                     cluster.tokens["admin"])
    assert visitor.request("GET", "/metrics").status == 200  # reviewed by the API server
    assert listing.terminate() == 0
    # A binding that is lost, so that its pod must be read; a standby that watches the lease; and views as streams.
    proxy = cluster.proxy()
    proxy.on(r"POST \S*/binding ", LoseRequest())
    other = tmp_path / "via-proxy"
    other.write_text(re.sub(r"https://127\.0\.0\.1:\d+", proxy.url, mine.read_text()))
    start(kubeconfig=other).until_said("Talking to the API server", what="leading")
    start(kubeconfig=mine)
    client.create(PODS, wanting("lost", "10m"))
    client.until(PODS, "lost", lambda seen: "nodeName" in seen["spec"])
    passers_by = itertools.count(1)

    def everything_used() -> bool:
        """Room comes free, so the pod that fits nowhere is tried again, and the same is said of it once more."""
        name = f"passer-by-{next(passers_by)}"
        client.create(PODS, wanting(name, "10m"))
        client.until(PODS, name, lambda seen: "nodeName" in seen["spec"])
        client.delete(f"{PODS}/{name}", grace=0)
        return granted() <= used(cluster)[0]

    with contextlib.suppress(TimeoutError):
        wait_until(everything_used, timeout=60, what="every right to be used")
    done, refused = used(cluster)
    assert refused == []
    assert done == granted()
