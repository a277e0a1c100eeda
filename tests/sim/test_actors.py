"""Kubelets and controllers in virtual time: the same actors as in an embedded cluster, the same promises."""

from __future__ import annotations

from typing import Any

from kubesched.actors.cast import cast
from kubesched.actors.pods import is_active, is_ready
from kubesched.api.time import Duration, minutes, seconds
from kubesched.assemble import build
from kubesched.sim import Simulation

Json = dict[str, Any]


def simulation(nodes: int = 3, heartbeat: Duration | None = None, **settings: Any) -> Simulation:
    made = Simulation(build(checks=True), actors=cast(heartbeat=heartbeat), **settings)
    for number in range(nodes):
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        made.client.create(
            {"kind": "Node", "metadata": {"name": f"n{number}"}, "status": {"allocatable": amounts}}
        )
    return made


def deployment(sim: Simulation, replicas: int, image: str = "a:1", cpu: str = "1") -> None:
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    sim.client.create({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": spec})


def working(sim: Simulation) -> list[Json]:
    return [pod for pod in sim.client.list("Pod") if is_active(pod) and is_ready(pod)]


def test_a_deployment_is_rolled_out_and_rolled_over() -> None:
    sim = simulation()
    deployment(sim, 4)
    sim.run(seconds(10))
    assert {sim.client.node_of(pod["metadata"]["name"]) for pod in sim.client.list("Pod")} == {"n0", "n1", "n2"}
    assert all(is_ready(pod) for pod in sim.client.list("Pod"))
    seen: list[int] = []
    sim.client.watch("Pod", lambda *_: seen.append(len(working(sim))))

    containers = [{"name": "c", "image": "a:2", "resources": {"requests": {"cpu": "1"}}}]
    sim.client.patch("Deployment", "web", {"spec": {"template": {"spec": {"containers": containers}}}})
    sim.run(seconds(60))

    pods = sim.client.list("Pod")
    assert [pod["spec"]["containers"][0]["image"] for pod in pods] == ["a:2"] * 4
    assert min(seen) >= 3
    status = sim.client.get("Deployment", "web")["status"]
    assert (status["updatedReplicas"], status["availableReplicas"]) == (4, 4)


def test_a_lost_node_is_replaced_after_five_minutes() -> None:
    sim = simulation(2, heartbeat=seconds(10))
    deployment(sim, 2, cpu="2")
    sim.run(minutes(1))
    sim.client.patch("Node", "n0", {"metadata": {"annotations": {"kubesched/kubelet": "stopped"}}})
    patience = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300}]
    for pod in sim.client.list("Pod"):
        sim.client.patch("Pod", pod["metadata"]["name"], {"spec": {"tolerations": patience}})
    sim.run(minutes(6))
    assert len(working(sim)) == 2
    sim.run(minutes(9))
    assert [pod["spec"]["nodeName"] for pod in working(sim)] == ["n1", "n1"]


def test_preempted_pods_die_gracefully_before_their_place_is_taken() -> None:
    sim = simulation(1)
    notes = {"annotations": {"kubesched/stop-after": "20s"}}
    spec = {"containers": [{"name": "c", "image": "a", "resources": {"requests": {"cpu": "3"}}}]}
    low = {"kind": "Pod", "metadata": {"name": "low", **notes}, "spec": {**spec, "terminationGracePeriodSeconds": 30}}
    sim.client.create(low)
    sim.run(seconds(10))
    sim.client.create({"kind": "Pod", "metadata": {"name": "high"}, "spec": {**spec, "priority": 100}})
    sim.run(seconds(20))
    assert "deletionTimestamp" in sim.client.get("Pod", "low")["metadata"]
    assert sim.client.node_of("high") == ""
    sim.run(seconds(40))
    assert sim.client.find("Pod", "low") is None
    assert sim.client.node_of("high") == "n0"


def test_the_same_seed_plays_the_same_run() -> None:
    def names(seed: int) -> list[tuple[str, str]]:
        sim = simulation(seed=seed)
        deployment(sim, 6)
        sim.run(minutes(1))
        return [(pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in sim.client.list("Pod")]

    assert names(1) == names(1)
    assert [name for name, _ in names(1)] != [name for name, _ in names(2)]
