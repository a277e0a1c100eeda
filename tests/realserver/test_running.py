"""kubesched on the real API server: what it binds, what it leaves alone, and how it comes and goes."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.realserver.client import Client
from tests.realserver.fixtures import pod
from tests.realserver.harness import RealCluster
from tests.realserver.process import wait_until
from tests.realserver.scheduling import NAME, Json, Kubesched, MakeNode, asking, bound, condition, judged, ours, pods_of

# ── what it does to pods ─────────────────────────────────────────────────────────────────────────────────────


def test_pods_are_bound_and_others_pods_are_left_alone(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    node, client, pods = make_node(), real_cluster.client(), pods_of(namespace)
    client.create(pods, pod("theirs", schedulerName="another"))
    start()
    client.create(pods, ours("web"))
    web = client.until(pods, "web", bound)
    assert web["spec"]["nodeName"] == node
    assert condition(web, "PodScheduled")["status"] == "True"
    assert not bound(client.get(f"{pods}/theirs"))
    assert condition(client.get(f"{pods}/theirs"), "PodScheduled") is None


def test_kubectl_describe_says_why_a_pod_waits_and_where_it_went(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    make_node(cpu="1")
    start()
    client, pods = real_cluster.client(), pods_of(namespace)
    client.create(pods, ours("big", containers=asking("2")))
    waiting = client.until(pods, "big", lambda seen: condition(seen, "PodScheduled") is not None)
    assert condition(waiting, "PodScheduled")["reason"] == "Unschedulable"
    message = condition(waiting, "PodScheduled")["message"]
    assert re.match(r"0/\d+ nodes are available: \d+ Insufficient cpu\.", message)

    def described() -> str:
        return real_cluster.kubectl("describe", "pod", "big", "-n", namespace).stdout

    wait_until(lambda: "FailedScheduling" in described(), timeout=20, what="the Event")
    assert re.search(rf"Warning +FailedScheduling +\S+ +{NAME} +{re.escape(message[:40])}", described())
    node = make_node(cpu="4")
    client.until(pods, "big", bound)
    wait_until(lambda: "Scheduled " in described(), timeout=20, what="the Event")
    text = f"Successfully assigned {namespace}/big to {node}"
    assert re.search(rf"Normal +Scheduled +\S+ +{NAME} +{re.escape(text)}", described())


def test_preemption_nominates_evicts_and_then_binds(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    client, pods = real_cluster.client(), pods_of(namespace)
    priority = f"{namespace}-high"
    client.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": priority}, "value": 1000})
    node = make_node(cpu="1")
    here = {"kubernetes.io/hostname": node}
    start()
    client.create(pods, ours("low", containers=asking("800m"), nodeSelector=here))
    client.until(pods, "low", bound)
    client.create(pods, ours("high", containers=asking("800m"), nodeSelector=here, priorityClassName=priority))
    high = client.until(pods, "high", lambda seen: "nominatedNodeName" in seen.get("status", {}))
    assert high["status"]["nominatedNodeName"] == node
    low = client.until(pods, "low", lambda seen: "deletionTimestamp" in seen["metadata"])
    assert condition(low, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
    client.delete(f"{pods}/low", grace=0)  # what a kubelet would do
    assert client.until(pods, "high", bound)["spec"]["nodeName"] == node
    events = real_cluster.kubectl("get", "events", "-n", namespace, "-o", "json").json["items"]
    [preempted] = [one for one in events if one["reason"] == "Preempted"]
    assert preempted["involvedObject"]["name"] == "low"
    assert preempted["message"] == f"Preempted by pod {high['metadata']['uid']} on node {node}"


def test_a_claim_that_waits_for_its_consumer_is_told_the_node(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    client, node = real_cluster.client(), make_node()
    storage = {
        "metadata": {"name": f"{namespace}-late"},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    client.create("/apis/storage.k8s.io/v1/storageclasses", storage)
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    client.create(claims, {"metadata": {"name": "data"}, "spec": {**spec, "storageClassName": f"{namespace}-late"}})
    start()
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    client.create(pods_of(namespace), ours("db", volumes=volumes))

    def told(seen: Any) -> bool:
        return "volume.kubernetes.io/selected-node" in seen["metadata"].get("annotations", {})

    claim = client.until(claims, "data", told)
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
    assert not bound(client.get(f"{pods_of(namespace)}/db"))


def test_spread_and_anti_affinity_hold(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    client, pods = real_cluster.client(), pods_of(namespace)
    nodes = [make_node(labels={"topology.kubernetes.io/zone": zone, "test": namespace}) for zone in "aabb"]
    start()
    alike = {"matchLabels": {"app": namespace}}
    spread = {
        "topologyKey": "topology.kubernetes.io/zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": alike,
    }
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": alike, "topologyKey": "kubernetes.io/hostname"}
    ]}
    for at in range(4):
        made = ours(
            f"web-{at}",
            topologySpreadConstraints=[spread],
            affinity={"podAntiAffinity": apart},
            nodeSelector={"test": namespace},
        )
        made["metadata"]["labels"] = {"app": namespace}
        client.create(pods, made)
    places = [client.until(pods, f"web-{at}", bound)["spec"]["nodeName"] for at in range(4)]
    assert sorted(places) == sorted(nodes)


# ── coming and going ─────────────────────────────────────────────────────────────────────────────────────────

LEASE = {"leaderElect": True, "leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms"}


def lease_of(client: Client, name: str) -> Any:
    return client.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}")["spec"]


def elected(name: str) -> Json:
    return {"leaderElection": {**LEASE, "resourceName": name}}


def test_a_standby_is_ready_and_takes_over_when_the_leader_lets_go(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    client, pods = real_cluster.client(), pods_of(namespace)
    make_node()
    first = start(elected(namespace))
    first.until_said("Talking to the API server", what="leading")
    second = start(elected(namespace))
    assert json.loads(second.cli("queue", "-o", "json").stdout)["leads"] is False
    assert f'leader_election_master_status{{name="{namespace}"}} 1.0' in first.ask("/metrics").body.decode()
    assert first.said("Everything has been seen; scheduling begins")
    assert not second.said("Everything has been seen; scheduling begins")
    assert first.terminate() == 0
    assert first.said("Stopped")[-1]["reason"] == "as asked"
    second.until_said("Talking to the API server", what="leading")
    assert second.until_said("Everything has been seen; scheduling begins")["nodes"] >= 1
    client.create(pods, ours("after"))
    client.until(pods, "after", bound)


def test_a_new_configuration_is_taken_up_on_hup_if_it_is_right(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched], tmp_path: Path
) -> None:
    client, pods = real_cluster.client(), pods_of(namespace)
    make_node()
    plugin = tmp_path / "own.py"
    plugin.write_text("class Own:\n    def score(self, cycle, pod, node): return 1\n")
    running = start(flags=("--plugin", str(plugin)))
    pid, file = running.pid, running.folder / "config.yaml"
    text = file.read_text()
    file.write_text(text.replace("profiles:", "profilez:"))
    running.send(signal.SIGHUP)
    refused = running.until_said("The configuration cannot be used; going on with the old one")
    assert "profilez" in refused["err"]
    file.write_text(text)
    working = plugin.read_text()
    plugin.write_text("def (:\n")
    running.send(signal.SIGHUP)
    wait_until(lambda: "own.py:1" in running.tail(), timeout=30, what="a word on the plugin")
    plugin.write_text(working)
    file.write_text(text.replace(f"schedulerName: {NAME}", "schedulerName: renamed"))
    running.send(signal.SIGHUP)
    running.until_said("Starting kubesched", schedulers="renamed")
    running.wait_until_ready()
    assert running.pid == pid
    client.create(pods, pod("new", schedulerName="renamed"))
    client.until(pods, "new", bound)


def test_what_happened_is_written_down_and_comes_out_the_same_again(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched], tmp_path: Path
) -> None:
    client, pods, node = real_cluster.client(), pods_of(namespace), make_node(cpu="1")
    journal = tmp_path / "run.jsonl"
    plugin = tmp_path / "own.py"
    plugin.write_text("class Own:\n    def score(self, cycle, pod, node): return 1\n")
    own = ("--plugin", str(plugin))
    running = start(flags=("--journal", str(journal), *own))
    client.create(pods, ours("web"))
    client.create(pods, ours("big", containers=asking("99")))
    client.until(pods, "web", bound)
    client.until(pods, "big", judged)
    running.send(signal.SIGHUP)  # which begins another one, and writes over nothing
    running.until_said("Writing everything down, for kubesched replay", file=f"{journal}.1")
    running.wait_until_ready()
    assert running.terminate() == 0
    told = ""
    for path in (journal, journal.with_name("run.jsonl.1")):
        assert path.stat().st_mode & 0o077 == 0
        about = ("--story", f"{namespace}/web", "--explain", f"{namespace}/big")
        replayed = running.cli("replay", str(path), *own, *about)
        assert replayed.returncode == 0, replayed.stdout + replayed.stderr
        assert "Insufficient cpu" in replayed.stdout
        told += replayed.stdout
    assert f"is bound to {node}" in told


def test_usr2_dumps_everything_and_finds_nothing_different(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    client, pods, node = real_cluster.client(), pods_of(namespace), make_node()
    running = start()
    client.create(pods, ours("web"))
    client.create(pods, ours("big", containers=asking("99")))
    client.until(pods, "web", bound)
    client.until(pods, "big", lambda seen: condition(seen, "PodScheduled") is not None)
    running.send(signal.SIGUSR2)
    running.until_said("The cache holds what the API server has")
    running.until_said("Dump of scheduling queue", pod=f"{namespace}/big")
    assert node in [line["node"] for line in running.said("Dump of cached NodeInfo")]


# ── what keeps it from beginning ─────────────────────────────────────────────────────────────────────────────


def test_credentials_that_are_not_accepted_end_it_with_a_sentence(
    real_cluster: RealCluster, start: Callable[..., Kubesched]
) -> None:
    running = start(wait=False, kubeconfig=real_cluster.kubeconfig(token="expired"))
    assert running.ended() == 1
    assert "does not accept our credentials" in running.tail()
    assert "Traceback" not in running.tail()


def test_a_server_that_cannot_prove_who_it_is_ends_it_with_a_sentence(
    real_cluster: RealCluster, start: Callable[..., Kubesched], tmp_path: Path
) -> None:
    kubeconfig = real_cluster.kubeconfig()
    stranger = real_cluster.directory / "client-ca.crt"  # an authority, but not that of the server
    copy = tmp_path / "kubeconfig"
    copy.write_text(kubeconfig.read_text().replace(str(real_cluster.ca_file), str(stranger)))
    running = start(wait=False, kubeconfig=copy)
    assert running.ended() == 1
    assert "cannot prove who it is" in running.tail()


def test_a_missing_kubeconfig_ends_it_with_a_sentence(start: Callable[..., Kubesched], tmp_path: Path) -> None:
    running = start(wait=False, kubeconfig=tmp_path / "nowhere")
    assert running.ended() == 1
    assert "the kubeconfig cannot be read: no such file or directory" in running.tail()


def test_it_waits_for_a_server_that_is_not_there_yet(
    real_cluster: RealCluster, start: Callable[..., Kubesched], tmp_path: Path
) -> None:
    copy = tmp_path / "kubeconfig"
    copy.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", real_cluster.kubeconfig().read_text()))
    running = start(wait=False, kubeconfig=copy)
    line = running.until_said("The API server cannot be used yet; trying again")
    assert "connection refused" in line["err"].lower()
    assert running.terminate() == 0


def test_rights_that_are_missing_are_all_named_and_waited_for(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    client, user = real_cluster.client(), f"{namespace}-poor"
    running = start(wait=False, kubeconfig=real_cluster.kubeconfig(user, groups=["nobody"]))
    line = running.until_said("Rights are missing; waiting for them")
    for right in ("list pods", "create pods/binding", "patch pods/status", "watch csinodes.storage.k8s.io"):
        assert right in line["missing"].split(", ")
    assert "kubesched rbac" in line["remedy"]
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    client.create(bindings, {"metadata": {"name": user}, "roleRef": role, "subjects": [subject]})
    running.wait_until_ready()
    make_node()
    client.create(pods_of(namespace), ours("web"))
    client.until(pods_of(namespace), "web", bound)
