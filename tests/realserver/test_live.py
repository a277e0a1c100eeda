"""kubesched schedules on the real API server, through everything that may happen to the way there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.live.driving import Running
from tests.realserver.client import Client
from tests.realserver.faults import BlackHole, CutResponse, HoldRequest, LoseRequest, LoseResponse, Refuse, Reply
from tests.realserver.fixtures import pod
from tests.realserver.harness import SCHEDULER, Options, RealCluster
from tests.realserver.tcpproxy import TcpProxy

from kubesched.api.time import seconds
from kubesched.live import kubeconfig
from kubesched.wire.elector import LeaseOptions

MakeNode = Callable[..., str]
MakeCluster = Callable[[Options], RealCluster]
BINDING = r"POST \S*/binding "
DEFAULT = "/api/v1/namespaces/default/pods"


def running(cluster: RealCluster, via: TcpProxy | None = None, **how: Any) -> Running:
    return Running(kubeconfig.load(cluster.kubeconfig(SCHEDULER, via=via)), **how)


def node_of(client: Client, path: str) -> str:
    return str(client.get(path)["spec"].get("nodeName", ""))


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    return {"metadata": {"name": name}, "status": {"capacity": room, "allocatable": room, "conditions": ready}}


def big(name: str, cpu: str = "3", **spec: Any) -> dict[str, Any]:
    """A pod of which a node takes one."""
    wants = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    return pod(name, containers=[{"name": "main", "image": "pause", "resources": wants}], **spec)


def same_view(scheduler: Running, client: Client) -> bool:
    """Whether the scheduler sees exactly the pods there are."""
    there = {
        (one["metadata"]["uid"], one["metadata"]["resourceVersion"])
        for one in client.get("/api/v1/pods")["items"]
        if one.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    }
    seen = {(one.uid, one.metadata.resource_version) for one in scheduler.core.mirror.pods.values()}
    return there == seen


# ── the everyday ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("streams", [True, False])
def test_pods_are_bound_and_events_say_so(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, streams: bool
) -> None:
    client, pods = real_cluster.client(), f"/api/v1/namespaces/{namespace}/pods"
    client.create(pods, big("early"))
    with running(real_cluster, streams=streams) as scheduler:
        scheduler.until(lambda: bool(client.get(f"{pods}/early")["status"].get("conditions")))
        made = make_node()
        scheduler.until(lambda: node_of(client, f"{pods}/early") == made)
        client.create(pods, big("late", "500m"))
        scheduler.until(lambda: node_of(client, f"{pods}/late") == made)
        scheduler.until(lambda: scheduler.world.client.performer.idle)
        scheduler.until(lambda: same_view(scheduler, client))
    described = real_cluster.kubectl("describe", "pod", "early", "-n", namespace).stdout
    assert "Warning  FailedScheduling" in described
    assert "default-scheduler  no nodes available to schedule pods" in described
    assert f"Successfully assigned {namespace}/early to {made}" in described
    assert [remark for remark in scheduler.remarks if remark.level != "info"] == []


def test_pods_of_other_schedulers_are_left_alone(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode
) -> None:
    client, pods = real_cluster.client(), f"/api/v1/namespaces/{namespace}/pods"
    make_node()
    client.create(pods, pod("theirs", schedulerName="another"))
    client.create(pods, pod("ours"))
    with running(real_cluster) as scheduler:
        scheduler.until(lambda: node_of(client, f"{pods}/ours") != "")
    assert node_of(client, f"{pods}/theirs") == ""


def test_a_victim_is_evicted_and_its_preemptor_bound(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode
) -> None:
    client, pods, made = real_cluster.client(), f"/api/v1/namespaces/{namespace}/pods", make_node()
    low = big("low", terminationGracePeriodSeconds=0)
    client.create(pods, low)
    with running(real_cluster) as scheduler:
        scheduler.until(lambda: node_of(client, f"{pods}/low") == made)
        client.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": namespace}, "value": 1000})
        client.create(pods, big("high", priorityClassName=namespace))
        scheduler.until(lambda: node_of(client, f"{pods}/high") == made)
    assert client.request("GET", f"{pods}/low").status == 404


# ── the way is broken ────────────────────────────────────────────────────────────────────────────────────────


def test_after_a_gap_that_was_compacted_away_the_view_is_what_is_there(own_cluster: MakeCluster) -> None:
    cluster = own_cluster(Options())
    client, proxy = cluster.client(), cluster.proxy(ends_tls=False)
    client.create("/api/v1/nodes", node("n1"))
    for name in ("stays", "goes", "changes"):
        client.create(DEFAULT, pod(name))
    with running(cluster, via=proxy) as scheduler:
        scheduler.until(lambda: all(node_of(client, f"{DEFAULT}/{name}") for name in ("stays", "goes", "changes")))
        proxy.impose(Refuse())
        proxy.drop_connections()
        client.delete(f"{DEFAULT}/goes", grace=0)
        client.delete(f"{DEFAULT}/changes", grace=0)
        client.create(DEFAULT, pod("changes"))
        cluster.compact()
        cluster.apiserver.stop()
        cluster.apiserver.start()
        client.create(DEFAULT, pod("new"))
        proxy.heal()
        scheduler.until(lambda: all(node_of(client, f"{DEFAULT}/{name}") for name in ("new", "changes")))
        scheduler.until(lambda: same_view(scheduler, client))
    assert "expired" in scheduler.what()
    assert set(scheduler.core.mirror.pods) == {f"default/{name}" for name in ("stays", "changes", "new")}


def test_streams_cut_at_any_byte_lose_nothing(real_cluster: RealCluster, namespace: str, make_node: MakeNode) -> None:
    client, pods, proxy = real_cluster.client(), f"/api/v1/namespaces/{namespace}/pods", real_cluster.proxy()
    make_node(pods="500")
    with running(real_cluster, via=proxy) as scheduler:
        scheduler.until(lambda: not scheduler.core.unsynced)
        for i, after in enumerate((300, 700, 1100, 1700, 2300)):
            order = proxy.on(r"GET /api/v1/pods\?watch", CutResponse(after))
            proxy.drop_connections()
            for j in range(3):
                client.create(pods, pod(f"web-{i}-{j}", annotations=None))
            scheduler.until(lambda i=i: all(node_of(client, f"{pods}/web-{i}-{j}") for j in range(3)))  # type: ignore[misc]
            proxy.forget(order)
        scheduler.until(lambda: same_view(scheduler, client))


def test_a_token_that_is_replaced_on_disk_is_taken_up_when_the_old_one_is_refused(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, tmp_path: Path
) -> None:
    client, pods = real_cluster.client(), f"/api/v1/namespaces/{namespace}/pods"
    make_node()
    client.create(pods, pod("web"))
    config = yaml.safe_load(real_cluster.kubeconfig(SCHEDULER).read_text())
    config["users"][0]["user"] = {"tokenFile": "token"}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    (tmp_path / "token").write_text("expired")
    with Running(kubeconfig.load(tmp_path / "config")) as scheduler:
        scheduler.until(lambda: "unauthorized" in scheduler.what())
        (tmp_path / "token").write_text(real_cluster.tokens[SCHEDULER] + "\n")
        scheduler.until(lambda: node_of(client, f"{pods}/web") != "")
    assert not any(real_cluster.tokens[SCHEDULER] in remark.text for remark in scheduler.remarks)


def test_rights_that_are_missing_are_named_and_taken_up_when_granted(real_cluster: RealCluster) -> None:
    admin = real_cluster.client()
    access = kubeconfig.load(real_cluster.kubeconfig("somebody"))
    group = "rbac.authorization.k8s.io"
    rbac = f"/apis/{group}/v1/clusterrolebindings"
    with Running(access) as scheduler:
        scheduler.until(lambda: any("grant get, list and watch of pods" in one.text for one in scheduler.remarks))
        admin.create(rbac, {
            "metadata": {"name": "somebody"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:kube-scheduler"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "somebody"}],
        })  # fmt: skip
        scheduler.until(lambda: "Pod" not in scheduler.core.unsynced)
    admin.delete(f"{rbac}/somebody")


def test_a_silent_network_is_noticed(real_cluster: RealCluster, namespace: str, make_node: MakeNode) -> None:
    """Nobody says goodbye; the time until that is noticed is the reflector's, and tried on virtual time."""
    client, pods, proxy = real_cluster.client(), f"/api/v1/namespaces/{namespace}/pods", real_cluster.proxy()
    make_node()
    with running(real_cluster, via=proxy) as scheduler:
        scheduler.until(lambda: not scheduler.core.unsynced)
        proxy.impose(BlackHole())
        client.create(pods, pod("web"))
        for reflector in scheduler.world.client.reflectors.values():
            reflector._stream.heard -= seconds(70)  # type: ignore[union-attr]
        scheduler.until(lambda: scheduler.what().count("quiet") == len(scheduler.world.client.reflectors))
        proxy.heal()
        scheduler.until(lambda: node_of(client, f"{pods}/web") != "")


# ── LIVE-01: nobody knows whether the pod was bound ──────────────────────────────────────────────────────────


def contended(real_cluster: RealCluster, namespace: str, make_node: MakeNode) -> tuple[Client, str, str]:
    """One node with room for one of two pods, of which `first` is tried first."""
    client, pods, made = real_cluster.client(), f"/api/v1/namespaces/{namespace}/pods", make_node()
    client.create(pods, big("first"))
    return client, pods, made


def bindings(proxy: TcpProxy) -> int:
    return sum("/binding" in request for request in proxy.requests)


@pytest.mark.parametrize(
    ("fault", "applied"),
    [
        (LoseResponse("reset"), True),
        (LoseResponse("close"), True),
        (LoseResponse("hang"), True),  # until our patience ends
        (CutResponse(40), True),  # in the middle of the head
        (LoseRequest("reset"), False),
        (LoseRequest("close"), False),
        (LoseRequest("hang"), False),
    ],
    ids=lambda value: None if isinstance(value, bool) else f"{type(value).__name__}-{value.ending}",
)
def test_a_binding_nobody_answered_is_found_out_about(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, fault: Any, applied: bool
) -> None:
    client, pods, made = contended(real_cluster, namespace, make_node)
    proxy = real_cluster.proxy()
    lost = proxy.on(BINDING, fault)
    with running(real_cluster, via=proxy) as scheduler:
        scheduler.until(lambda: lost.count == 1)
        client.create(pods, big("second"))
        scheduler.until(lambda: node_of(client, f"{pods}/first") == made)
        scheduler.until(lambda: bool(client.get(f"{pods}/second")["status"].get("conditions")))
        scheduler.until(lambda: not scheduler.core.flights)
        assert node_of(client, f"{pods}/second") == ""
        assert bindings(proxy) == (1 if applied else 2)


def test_a_binding_that_arrives_late_changes_nothing(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode
) -> None:
    client, pods, made = contended(real_cluster, namespace, make_node)
    proxy = real_cluster.proxy()
    held = proxy.on(BINDING, HoldRequest())
    with running(real_cluster, via=proxy) as scheduler:
        scheduler.until(lambda: held.count == 1)
        scheduler.until(lambda: node_of(client, f"{pods}/first") == made)
        client.create(pods, big("second"))
        proxy.release(held)
        assert held.wait_for_answer() == 409
        scheduler.until(lambda: bool(client.get(f"{pods}/second")["status"].get("conditions")))
        assert node_of(client, f"{pods}/second") == ""
        conditions = client.get(f"{pods}/first")["status"]["conditions"]
        assert [one["status"] for one in conditions if one["type"] == "PodScheduled"] == ["True"]


def test_a_server_that_is_too_busy_is_left_alone_for_as_long_as_it_says(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode
) -> None:
    client, pods, made = contended(real_cluster, namespace, make_node)
    proxy = real_cluster.proxy()
    busy = proxy.on(BINDING, Reply(429, headers=(("Retry-After", "1"), ("Content-Type", "application/json"))), times=2)
    with running(real_cluster, via=proxy) as scheduler:
        scheduler.until(lambda: node_of(client, f"{pods}/first") == made)
    assert busy.count == 2
    assert scheduler.core.cycles == 1


# ── who leads ────────────────────────────────────────────────────────────────────────────────────────────────

SHORT = LeaseOptions(name="shared", duration=seconds(4), renew_deadline=seconds(3), retry_period=seconds(0.5))
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/shared"


def election(**more: str) -> dict[str, Any]:
    times = {"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms"}
    return {"leaderElection": {"leaderElect": True, "resourceName": "shared", **times, **more}}


@pytest.fixture
def electing(own_cluster: MakeCluster) -> RealCluster:
    """A cluster whose scheduler may hold any lease, so that a test has one of its own."""
    cluster = own_cluster(Options(authorization="AlwaysAllow"))
    cluster.client().create("/api/v1/nodes", node("n1"))
    return cluster


def test_kube_scheduler_and_kubesched_stand_for_the_same_lease(electing: RealCluster) -> None:
    client = electing.client()
    rival = electing.start_scheduler(election())
    client.create(DEFAULT, pod("by-kube-scheduler"))
    client.until(DEFAULT, "by-kube-scheduler", lambda seen: "nodeName" in seen["spec"])
    before = client.get(LEASE)["spec"]
    with running(electing, identity="kubesched-1", lease=SHORT) as scheduler:
        scheduler.until(lambda: scheduler.world.client.elector.holder == before["holderIdentity"])  # type: ignore[union-attr]
        assert not scheduler.world.client.leading
        rival.stop()
        client.create(DEFAULT, pod("by-kubesched"))
        scheduler.until(lambda: node_of(client, f"{DEFAULT}/by-kubesched") != "")
        held = client.get(LEASE)["spec"]
        assert held["holderIdentity"] == "kubesched-1"
        assert held["leaseTransitions"] == before["leaseTransitions"] + 1
        rival = electing.start_scheduler(election())
        scheduler.to_the_end()
    assert client.get(LEASE)["spec"]["holderIdentity"] != "kubesched-1"
    client.create(DEFAULT, pod("by-kube-scheduler-again"))
    client.until(DEFAULT, "by-kube-scheduler-again", lambda seen: "nodeName" in seen["spec"])
    rival.stop()


def test_a_leader_that_dies_is_succeeded_and_one_cut_off_stops_by_itself(electing: RealCluster) -> None:
    client, proxy = electing.client(), electing.proxy(ends_tls=False)
    with (
        running(electing, via=proxy, identity="first", lease=SHORT) as first,
        running(electing, identity="second", lease=SHORT) as second,
    ):
        first.until(lambda: not first.core.unsynced)
        second.until(lambda: second.world.client.elector.holder == "first")  # type: ignore[union-attr]
        first.until(lambda: first.world.client.leading)
        proxy.impose(BlackHole())
        client.create(DEFAULT, pod("web"))
        second.until(lambda: node_of(client, f"{DEFAULT}/web") != "")
        assert client.get(LEASE)["spec"]["holderIdentity"] == "second"
        first.until(lambda: first.world.over)
        assert first.world.lost
    assert "lost" in first.what()
