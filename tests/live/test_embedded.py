"""A whole cluster in this process: what clients see of it, and how it begins and ends."""

from __future__ import annotations

import json
import os
import ssl
import stat
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.api.time import minutes
from kubesched.apiserver.status import ApiError
from kubesched.live.cluster import CannotServe, EmbeddedCluster, make_nodes
from kubesched.live.dump import read_objects
from kubesched.live.pace import Pace
from kubesched.testing.fixtures import Clusters
from kubesched.testing.fixtures import cluster as cluster

Json = dict[str, Any]

POD = {"kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}}


def request(box: EmbeddedCluster, path: str, token: str | None = None, method: str = "GET", body: Any = None) -> Json:
    """A request over HTTPS, as any client sends it."""
    context = ssl.create_default_context(cadata=box.ca.decode())
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(box.url + path, data=data, method=method)
    asked.add_header("Authorization", f"Bearer {box.token if token is None else token}")
    asked.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(asked, context=context) as answer:
        found: Json = json.loads(answer.read())
        return found


def until(box: EmbeddedCluster, kind: str, name: str, holds: Callable[[Json], bool]) -> Json:
    """The object, as soon as it is so: told by a watch, not by the clock."""
    done = threading.Event()
    seen: list[Json] = []

    def follow() -> None:
        def ready() -> None:
            box.world.loop.call_soon(look)

        watch = box.client.watch(kind, on_ready=ready)

        def look() -> None:
            for event in watch.take():
                if event.obj["metadata"]["name"] == name and holds(event.obj):
                    seen.append(event.obj)
                    done.set()

        look()

    box.call(follow)
    assert done.wait(30), f"{kind} {name} never came to that"
    return seen[0]


def running(pod: Json) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def test_a_pod_created_over_https_is_scheduled_and_runs(cluster: Clusters) -> None:
    box = cluster.up(nodes=2)
    request(box, "/api/v1/namespaces/default/pods", method="POST", body=POD)
    pod = until(box, "Pod", "web", running)
    assert pod["spec"]["nodeName"] in ("node-0", "node-1")
    [event] = request(box, "/api/v1/events")["items"]
    assert (event["reason"], event["involvedObject"]["name"]) == ("Scheduled", "web")
    assert event["message"] == f"Successfully assigned default/web to {pod['spec']['nodeName']}"


def test_a_pod_that_waits_is_told_why_once_and_bound_when_a_node_comes(cluster: Clusters) -> None:
    box = cluster.up(nodes=0, speed=20)
    request(box, "/api/v1/namespaces/default/pods", method="POST", body=POD)
    until(box, "Pod", "web", lambda pod: bool(pod["status"].get("conditions")))
    [event] = request(box, "/api/v1/events")["items"]
    assert event["reason"] == "FailedScheduling"

    request(box, "/api/v1/nodes", method="POST", body={"metadata": {"name": "late"}})

    assert until(box, "Pod", "web", running)["spec"]["nodeName"] == "late"


def test_a_deployment_over_https(cluster: Clusters) -> None:
    box = cluster.up(nodes=3)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    body = {"metadata": {"name": "web"}, "spec": spec}
    request(box, "/apis/apps/v1/namespaces/default/deployments", method="POST", body=body)
    until(box, "Deployment", "web", lambda found: bool(found["status"].get("availableReplicas") == 3))
    pods = request(box, "/api/v1/namespaces/default/pods")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-0", "node-1", "node-2"}


# ── safety ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/api/v1/pods", "/apis", "/metrics", "/openapi/v3", "/version"])
@pytest.mark.parametrize("token", ["", "wrong", "Bearer"])
def test_without_the_token_nothing_is_told(cluster: Clusters, path: str, token: str) -> None:
    box = cluster.up(nodes=0)
    with pytest.raises(urllib.error.HTTPError) as refused:
        request(box, path, token=token)
    assert refused.value.code == 401
    refused.value.close()


def test_the_kubeconfig_is_its_owners_and_points_here(cluster: Clusters, tmp_path: Path) -> None:
    box = cluster.up(nodes=0)
    old = os.umask(0)
    try:
        path = box.write_kubeconfig(tmp_path / "folder" / "kubeconfig")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"]["server"] == box.url
    assert box.url.startswith("https://127.0.0.1:")


def test_plain_http_for_everybody_is_refused() -> None:
    with pytest.raises(CannotServe, match="refusing to serve plain HTTP"):
        EmbeddedCluster(plain=True, host="0.0.0.0")


def test_a_port_that_is_taken_is_named(cluster: Clusters) -> None:
    box = cluster.up(nodes=0)
    with EmbeddedCluster(port=box.face.port) as second, pytest.raises(CannotServe, match=f"127.0.0.1:{box.face.port}"):
        second.listen()


# ── beginnings and ends ──────────────────────────────────────────────────────────────────────────────────────


def test_what_was_there_is_there_again(tmp_path: Path, cluster: Clusters) -> None:
    first = cluster.up(nodes=2, data_dir=tmp_path)
    request(first, "/api/v1/namespaces/default/pods", method="POST", body=POD)
    uid = until(first, "Pod", "web", running)["metadata"]["uid"]
    first.__exit__(None, None, None)

    second = cluster.up(nodes=0, data_dir=tmp_path)

    assert second.token == first.token
    assert second.ca == first.ca, "a client that knew the first trusts the second"
    assert until(second, "Pod", "web", running)["metadata"]["uid"] == uid
    assert len(request(second, "/api/v1/nodes")["items"]) == 2


def test_a_dump_of_another_cluster_is_taken_over_as_it_was(tmp_path: Path, cluster: Clusters) -> None:
    path = tmp_path / "dump.yaml"
    path.write_text("""
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: big, uid: n-1}
  status: {capacity: {cpu: "4", pods: "10"}, conditions: [{type: Ready, status: "True"}]}
- apiVersion: v1
  kind: Pod
  metadata:
    name: old
    namespace: prod
    uid: p-1
    ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: elsewhere, controller: true}]
  spec: {nodeName: big, containers: [{name: c, image: x, env: [{name: A, value: b}]}]}
  status: {phase: Running, podIP: 10.0.0.7}
- {apiVersion: v1, kind: Event, metadata: {name: e}, reason: Old}
- {apiVersion: acme.example/v1, kind: Widget, metadata: {name: w}}
""")
    box = cluster.up(nodes=0, objects=read_objects(path))
    pod = request(box, "/api/v1/namespaces/prod/pods/old")
    assert (pod["metadata"]["uid"], pod["status"]["podIP"]) == ("p-1", "10.0.0.7")
    assert pod["spec"]["containers"][0]["env"] == [{"name": "A", "value": "b"}]
    assert "ownerReferences" not in pod["metadata"], "or it would be garbage"
    assert box.restored.counts == {"Node": 1, "Pod": 1}
    assert list(box.restored.lines()) == [
        "loaded 1 Node, 1 Pod",
        "left out: Event, which a cluster makes by itself (1)",
        "left out: Widget in acme.example/v1, which is not served here (1)",
    ]


def test_without_actors_nodes_stay_as_they_are(cluster: Clusters) -> None:
    box = cluster.up(nodes=1, acting=False)
    request(box, "/api/v1/namespaces/default/pods", method="POST", body=POD)
    pod = until(box, "Pod", "web", lambda pod: bool(pod["spec"].get("nodeName")))
    assert pod["status"]["phase"] == "Pending"


def test_a_call_from_another_thread_brings_back_what_it_raised(cluster: Clusters) -> None:
    box = cluster.up(nodes=0)
    with pytest.raises(ApiError, match="not found"):
        box.call(box.client.get, "Pod", "default", "nobody")


def test_time_passes_as_fast_as_it_is_told_to() -> None:
    steady = iter([5_000, 6_000, 7_500])
    pace = Pace(speed=60, wall=lambda: 1_000_000, steady=lambda: next(steady))
    assert pace.now() == 1_000_000 + 60_000
    assert pace.now() == 1_000_000 + 150_000
    assert pace.wait(minutes(1)) == 1.0


def test_nodes_are_dealt_out_over_zones() -> None:
    zones = [node["metadata"]["labels"].get("topology.kubernetes.io/zone") for node in make_nodes(3, ["a", "b"])]
    assert zones == ["a", "b", "a"]
