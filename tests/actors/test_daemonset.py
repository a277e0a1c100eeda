"""One pod on every node that wants it, and none elsewhere."""

from __future__ import annotations

from typing import Any

from tests.actors.conftest import Json, Stage, chosen, template

from kubesched.actors.daemonset import target_of


def daemonset(stage: Stage, **spec: Any) -> Json:
    return stage.create(
        "DaemonSet", "agent", api="apps/v1", spec={"selector": chosen(), "template": template(), **spec}
    )


def nodes_of(stage: Stage) -> list[str]:
    return sorted(target_of(pod) for pod in stage.pods())


def bind_home(stage: Stage) -> None:
    """What a scheduler makes of their affinity."""
    for _ in range(10):
        stage.wait(0.2)
        for pod in stage.pods():
            if not pod["spec"].get("nodeName"):
                stage.api.bind("default", pod["metadata"]["name"], target_of(pod))


def test_every_node_gets_one_and_a_new_node_too(stage: Stage) -> None:
    stage.node("n1")
    stage.node("n2")
    daemonset(stage)
    stage.settle()
    assert nodes_of(stage) == ["n1", "n2"]
    stage.node("n3")
    bind_home(stage)
    assert nodes_of(stage) == ["n1", "n2", "n3"]
    status = stage.get("DaemonSet", "agent")["status"]
    wanted = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable")
    assert [status[name] for name in (*wanted, "updatedNumberScheduled")] == [3] * 5


def test_labels_and_taints_decide(stage: Stage) -> None:
    stage.node("n1", disk="ssd")
    stage.node("n2")
    stage.create("Node", "n3", metadata={"labels": {"disk": "ssd"}}, spec={"taints": [
        {"key": "gpu", "effect": "NoSchedule"}
    ]})
    stage.settle()
    daemonset(stage, template=template(nodeSelector={"disk": "ssd"}))
    stage.settle()
    assert nodes_of(stage) == ["n1"]
    stage.patch("Node", "n2", {"metadata": {"labels": {"disk": "ssd"}}})
    stage.settle()
    assert nodes_of(stage) == ["n1", "n2"]
    stage.patch("Node", "n1", {"metadata": {"labels": {"disk": None}}})
    stage.settle()
    assert nodes_of(stage) == ["n2"]


def test_a_cordoned_node_has_one_all_the_same(stage: Stage) -> None:
    stage.create("Node", "n1", spec={"unschedulable": True})
    stage.settle()
    daemonset(stage)
    stage.settle()
    assert nodes_of(stage) == ["n1"]


def test_a_pod_goes_with_its_node(stage: Stage) -> None:
    stage.node("n1")
    stage.node("n2")
    daemonset(stage)
    bind_home(stage)
    stage.delete("Node", "n2")
    stage.wait(41)
    assert nodes_of(stage) == ["n1"]


def test_an_update_replaces_one_at_a_time(stage: Stage) -> None:
    for name in ("n1", "n2", "n3"):
        stage.node(name)
    daemonset(stage)
    bind_home(stage)
    least = 3
    watch = stage.store.watch("pods", on_ready=lambda: None)
    watch.take()
    stage.patch("DaemonSet", "agent", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}}})
    for _ in range(12):
        bind_home(stage)
        ready = [pod for pod in stage.pods() if pod["status"].get("phase") == "Running"]
        least = min(least, len(ready))
    assert {pod["spec"]["containers"][0]["image"] for pod in stage.pods()} == {"a:2"}
    assert least >= 2
    assert len(stage.names("ControllerRevision")) == 2
