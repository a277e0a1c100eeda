"""Conditions become taints, silence becomes a condition, and pods leave."""

from __future__ import annotations

from typing import Any

import pytest
from tests.actors.conftest import Json, Stage

from kubesched.actors.conditions import find_condition

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def taints(stage: Stage, name: str = "n1") -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in stage.get("Node", name)["spec"].get("taints", [])}


def say(stage: Stage, condition: str, status: str) -> None:
    """A kubelet that reports a problem itself."""
    conditions = [c for c in stage.get("Node", "n1")["status"]["conditions"] if c["type"] != condition]
    made = {"type": condition, "status": status, "reason": "Test"}
    stage.patch("Node", "n1", {"status": {"conditions": [*conditions, made]}})
    stage.settle()


def silence(stage: Stage) -> None:
    stage.patch("Node", "n1", {"metadata": {"annotations": {"kubesched/kubelet": "stopped"}}})
    stage.wait(55)


@pytest.mark.parametrize(
    ("condition", "taint"),
    [
        ("MemoryPressure", "memory-pressure"),
        ("DiskPressure", "disk-pressure"),
        ("PIDPressure", "pid-pressure"),
        ("NetworkUnavailable", "network-unavailable"),
    ],
)
def test_a_condition_is_a_taint_for_as_long_as_it_holds(stage: Stage, condition: str, taint: str) -> None:
    stage.node()
    say(stage, condition, "True")
    assert taints(stage) == {(f"node.kubernetes.io/{taint}", "NoSchedule")}
    say(stage, condition, "False")
    assert taints(stage) == set()


def test_a_cordoned_node_is_tainted_too(stage: Stage) -> None:
    stage.node()
    stage.patch("Node", "n1", {"spec": {"unschedulable": True}})
    stage.settle()
    assert taints(stage) == {("node.kubernetes.io/unschedulable", "NoSchedule")}


def test_taints_of_others_stay(stage: Stage) -> None:
    stage.create("Node", "n1", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
    stage.settle()
    say(stage, "DiskPressure", "True")
    say(stage, "DiskPressure", "False")
    assert taints(stage) == {("gpu", "NoSchedule")}


def test_a_silent_node_is_unreachable_and_comes_back(stage: Stage) -> None:
    stage.node()
    silence(stage)
    ready = find_condition(stage.get("Node", "n1"), "Ready")
    assert ready is not None
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert taints(stage) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    stage.patch("Node", "n1", {"metadata": {"annotations": {"kubesched/kubelet": None}}})
    stage.wait(1)
    assert taints(stage) == set()


def evicted(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def test_pods_leave_a_lost_node_after_five_minutes(stage: Stage) -> None:
    stage.node()
    stage.pod()
    stage.wait(1)
    silence(stage)
    stage.wait(290)
    assert not evicted(stage.get("Pod", "web"))
    stage.wait(20)
    pod = stage.get("Pod", "web")
    assert evicted(pod)
    reason = find_condition(pod, "DisruptionTarget")
    assert reason is not None
    assert reason["reason"] == "DeletionByTaintManager"


def test_a_node_that_comes_back_in_time_keeps_its_pods(stage: Stage) -> None:
    stage.node()
    stage.pod()
    stage.wait(1)
    silence(stage)
    stage.wait(200)
    stage.patch("Node", "n1", {"metadata": {"annotations": {"kubesched/kubelet": None}}})
    stage.wait(600)
    assert not evicted(stage.get("Pod", "web"))


@pytest.mark.parametrize(
    ("tolerations", "stays"),
    [
        ([], False),
        ([{"key": "fire", "operator": "Exists", "effect": "NoExecute"}], True),
        ([{"key": "fire", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}], False),
    ],
)
def test_a_taint_that_drives_out_what_does_not_tolerate_it(stage: Stage, tolerations: list[Any], stays: bool) -> None:
    stage.node()
    containers = [{"name": "c", "image": "a:1"}]
    stage.create("Pod", "web", spec={"nodeName": "n1", "containers": containers, "tolerations": tolerations})
    stage.wait(1)
    stage.patch("Node", "n1", {"spec": {"taints": [{"key": "fire", "effect": "NoExecute"}]}})
    stage.wait(2)
    assert (stage.find("Pod", "web") is not None) is stays


def test_pods_of_a_node_that_is_gone_are_gone_after_a_while(stage: Stage) -> None:
    stage.node()
    stage.pod()
    stage.wait(1)
    stage.delete("Node", "n1")
    stage.wait(30)
    assert stage.find("Pod", "web") is not None
    stage.wait(15)
    assert stage.find("Pod", "web") is None
