"""Which events a change means, which hints hear of an event, and what events are called.

Rules: which of a node's and a pod's fields count, that they count in this order, that a pod's change of nothing that
counts is one plain Update and a node's none, that a hint matches what it names, and what `Pod` and `*` stand for.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from kubesched.api.kinds import CustomResource
from kubesched.api.objects import Node, Pod, read
from kubesched.framework.events import (
    ANYTHING,
    ASSIGNED_POD,
    FORCE_ACTIVATE,
    NODE,
    POD,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD,
    Action,
    ClusterEvent,
    Hint,
    node_changes,
    pod_changes,
    resource_name,
)
from kubesched.testing import node, pod

TAINT, NO_EXECUTE = ["gpu=yes:NoSchedule"], ["gpu=yes:NoExecute"]
READY, UNREADY = {"Ready": "True"}, {"Ready": "False"}


def node_actions(old: Node, new: Node) -> list[str]:
    return [event.label.removeprefix("NodeUpdateNode") for event in node_changes(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(node(), node(), [], id="nothing"),
        pytest.param(node(version=1), node(version=2), [], id="a version is no change"),
        pytest.param(node(images={"a:1": 5}), node(), [], id="nor are images"),
        pytest.param(node(), node(capacity={"cpu": 9}), [], id="nor is capacity, of which nobody may take"),
        pytest.param(node(cpu=4), node(cpu=5), ["Allocatable"], id="more room"),
        pytest.param(node(cpu=5), node(cpu=4), ["Allocatable"], id="and less"),
        pytest.param(node(), node(resources={"example.com/gpu": 1}), ["Allocatable"], id="a new resource"),
        pytest.param(node(), node(labels={"disk": "ssd"}), ["Label"], id="a label comes"),
        pytest.param(node(labels={"disk": "ssd"}), node(labels={"disk": "hdd"}), ["Label"], id="a label changes"),
        pytest.param(node(labels={"disk": "ssd"}), node(), ["Label"], id="a label goes"),
        pytest.param(node(), node(taints=TAINT), ["Taint"], id="a taint comes"),
        pytest.param(node(taints=TAINT), node(taints=NO_EXECUTE), ["Taint"], id="a taint has another effect"),
        pytest.param(node(taints=TAINT), node(), ["Taint"], id="a taint goes"),
        pytest.param(node(taints=[*TAINT, *NO_EXECUTE]), node(taints=[*NO_EXECUTE, *TAINT]), ["Taint"], id="or moves"),
        pytest.param(node(unschedulable=True), node(), ["Taint"], id="uncordoned"),
        pytest.param(node(), node(unschedulable=True), [], id="cordoned, which helps nobody"),
        pytest.param(
            node(unschedulable=True, taints=["node.kubernetes.io/unschedulable:NoSchedule"]),
            node(),
            ["Taint", "Taint"],
            id="uncordoned, with the taint of it: told twice",
        ),
        pytest.param(node(), node(conditions=READY), ["Condition"], id="a condition comes"),
        pytest.param(node(conditions=UNREADY), node(conditions=READY), ["Condition"], id="a condition changes"),
        pytest.param(node(conditions=READY), node(), ["Condition"], id="a condition goes"),
        pytest.param(
            node(conditions={**READY, "DiskPressure": "False"}),
            node(conditions={"DiskPressure": "False", **READY}),
            [],
            id="conditions have no order",
        ),
        pytest.param(node(), node(annotations={"a": "1"}), ["Annotation"], id="an annotation"),
        pytest.param(node(), node(declaredFeatures=["A"]), ["DeclaredFeature"], id="a feature"),
        pytest.param(node(declaredFeatures=["A"]), node(), ["DeclaredFeature"], id="a feature goes"),
        pytest.param(
            node(declaredFeatures=["A"]), node(declaredFeatures=["B"]), ["DeclaredFeature"], id="another feature"
        ),
        pytest.param(
            node(unschedulable=True),
            node(
                cpu=9,
                labels={"a": "b"},
                taints=TAINT,
                conditions=READY,
                annotations={"a": "b"},
                declaredFeatures=["A"],
            ),
            ["Taint", "Allocatable", "Label", "Taint", "Condition", "Annotation", "DeclaredFeature"],
            id="everything at once, in Kubernetes' order",
        ),
    ],
)
def test_what_a_change_of_a_node_means(old: Node, new: Node, expected: list[str]) -> None:
    assert node_actions(old, new) == expected


def test_a_condition_that_says_the_same_for_another_reason_is_no_change() -> None:
    old, new = (
        read({"metadata": {"name": "n1"}, "status": {"conditions": [condition]}}, Node)
        for condition in (
            {"type": "Ready", "status": "True", "reason": "KubeletReady"},
            {"type": "Ready", "status": "True", "reason": "StillReady"},
        )
    )
    assert node_actions(old, new) == []


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────────


def container(cpu: str | None, name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {} if cpu is None else {"cpu": cpu}}, **more}


def told(name: str, cpu: str) -> dict[str, Any]:
    """What the kubelet says a container has."""
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}


def with_status(base: Pod, **status: Any) -> Pod:
    return structs.replace(base, status=read({"metadata": {"name": base.name}, "status": status}, Pod).status)


RUNNING = pod(on="n1", containers=[container("2")])
SIDECAR = pod(on="n1", initContainers=[container("2", restartPolicy="Always")])
INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}


def pod_actions(old: Pod, new: Pod) -> list[str]:
    return [event.label for event in pod_changes(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(pod(), pod(), ["UnschedulablePodUpdate"], id="nothing that counts"),
        pytest.param(pod(on="n1"), pod(on="n1"), ["AssignedPodUpdate"], id="nothing that counts, of a placed pod"),
        pytest.param(pod(), pod(labels={"app": "web"}), ["UnschedulablePodUpdatePodLabel"], id="a label"),
        pytest.param(pod(on="n1", labels={"a": "b"}), pod(on="n1"), ["AssignedPodUpdatePodLabel"], id="a label less"),
        pytest.param(pod(), pod(on="n1", labels={"a": "b"}), ["AssignedPodUpdatePodLabel"], id="where it is by now"),
        pytest.param(pod(cpu=2), pod(cpu=1), ["UnschedulablePodUpdatePodScaleDown"], id="it asks for less"),
        pytest.param(pod(cpu=1), pod(cpu=2), ["UnschedulablePodUpdate"], id="it asks for more"),
        pytest.param(pod(cpu=1), pod(), ["UnschedulablePodUpdatePodScaleDown"], id="it asks for nothing any more"),
        pytest.param(
            pod(cpu=1, memory="2Gi"),
            pod(cpu=2, memory="1Gi"),
            ["UnschedulablePodUpdatePodScaleDown"],
            id="more of one thing and less of another",
        ),
        pytest.param(pod(gates=["a"]), pod(), ["UnschedulablePodUpdatePodSchedulingGatesEliminated"], id="gates open"),
        pytest.param(pod(gates=["a", "b"]), pod(gates=["a"]), ["UnschedulablePodUpdate"], id="one of two gates opens"),
        pytest.param(
            pod(), pod(tolerations=["gpu:Exists"]), ["UnschedulablePodUpdatePodToleration"], id="it tolerates more"
        ),
        pytest.param(
            pod(gates=["a"], cpu=2),
            pod(labels={"a": "b"}, tolerations=["gpu:Exists"], cpu=1),
            [
                "UnschedulablePodUpdatePodLabel",
                "UnschedulablePodUpdatePodScaleDown",
                "UnschedulablePodUpdatePodSchedulingGatesEliminated",
                "UnschedulablePodUpdatePodToleration",
            ],
            id="everything at once, in Kubernetes' order",
        ),
        pytest.param(
            pod(),
            with_status(pod(), resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": "gpu-1"}]),
            ["UnschedulablePodUpdatePodGeneratedResourceClaim"],
            id="its claim was made",
        ),
        pytest.param(pod(priority=1), pod(priority=2), ["UnschedulablePodUpdate"], id="something else"),
    ],
)
def test_what_a_change_of_a_pod_means(old: Pod, new: Pod, expected: list[str]) -> None:
    assert pod_actions(old, new) == expected


SMALLER = pod(on="n1", containers=[container("1")])


@pytest.mark.parametrize(
    ("old", "new", "smaller"),
    [
        pytest.param(RUNNING, with_status(RUNNING, containerStatuses=[told("c", "2")]), False, id="as large as asked"),
        pytest.param(
            with_status(RUNNING, containerStatuses=[told("c", "2")]),
            with_status(SMALLER, containerStatuses=[told("c", "2")]),
            False,
            id="wished smaller, not made so yet",
        ),
        pytest.param(
            with_status(SMALLER, containerStatuses=[told("c", "2")]),
            with_status(SMALLER, containerStatuses=[told("c", "1")]),
            True,
            id="made smaller",
        ),
        pytest.param(
            with_status(RUNNING, containerStatuses=[told("c", "1")]),
            with_status(RUNNING, containerStatuses=[told("c", "1")], conditions=[INFEASIBLE]),
            True,
            id="a wish for more is found impossible",
        ),
        pytest.param(
            with_status(SIDECAR, initContainerStatuses=[told("c", "3")]),
            with_status(SIDECAR, initContainerStatuses=[told("c", "2")]),
            True,
            id="a sidecar was made smaller",
        ),
    ],
)
def test_a_pod_scales_down_when_it_holds_less_of_something(old: Pod, new: Pod, smaller: bool) -> None:
    assert ("AssignedPodUpdatePodScaleDown" in pod_actions(old, new)) is smaller


# ── who hears of it ──────────────────────────────────────────────────────────────────────────────────────────

LABEL_OR_TAINT = Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT


@pytest.mark.parametrize(
    ("hint", "event", "heard"),
    [
        pytest.param(Hint(NODE, Action.ADD), ClusterEvent(NODE, Action.ADD), True, id="the same"),
        pytest.param(Hint(NODE, Action.ADD), ClusterEvent(NODE, Action.DELETE), False, id="another action"),
        pytest.param(Hint(NODE, Action.ADD), ClusterEvent(POD, Action.ADD), False, id="another resource"),
        pytest.param(Hint(NODE, LABEL_OR_TAINT), ClusterEvent(NODE, Action.UPDATE_NODE_TAINT), True, id="one of two"),
        pytest.param(
            Hint(NODE, Action.UPDATE_NODE_TAINT), ClusterEvent(NODE, LABEL_OR_TAINT), False, id="two where one is named"
        ),
        pytest.param(Hint(NODE, Action.UPDATE), ClusterEvent(NODE, Action.UPDATE_NODE_LABEL), True, id="any update"),
        pytest.param(Hint(NODE, Action.UPDATE), ClusterEvent(NODE, Action.ADD), False, id="an addition is no update"),
        pytest.param(Hint(NODE, Action.ALL), ClusterEvent(NODE, Action.DELETE), True, id="any action"),
        pytest.param(Hint(POD, Action.ADD), ClusterEvent(ASSIGNED_POD, Action.ADD), True, id="pods are placed pods"),
        pytest.param(
            Hint(POD, Action.UPDATE_POD_LABEL),
            ClusterEvent(UNSCHEDULED_POD, Action.UPDATE_POD_LABEL),
            True,
            id="and those that are not",
        ),
        pytest.param(
            Hint(ASSIGNED_POD, Action.ADD), ClusterEvent(POD, Action.ADD), False, id="placed pods are not all pods"
        ),
        pytest.param(
            Hint(ASSIGNED_POD, Action.ADD), ClusterEvent(UNSCHEDULED_POD, Action.ADD), False, id="nor the other kind"
        ),
        pytest.param(
            Hint(POD, Action.UPDATE_POD_LABEL),
            ClusterEvent(UNSCHEDULED_POD, Action.UPDATE),
            False,
            id="a plain update is heard by those who want any update",
        ),
        pytest.param(
            Hint(POD, Action.UPDATE), ClusterEvent(UNSCHEDULED_POD, Action.UPDATE), True, id="who want any update"
        ),
        pytest.param(Hint(ANYTHING, Action.ADD), ClusterEvent(NODE, Action.ADD), True, id="any resource"),
        pytest.param(Hint(ANYTHING, Action.ADD), ClusterEvent(NODE, Action.DELETE), False, id="but this action"),
        pytest.param(Hint(ANYTHING, Action.ALL), UNSCHEDULABLE_TIMEOUT, True, id="anything at all"),
        pytest.param(Hint(NODE, Action.ALL), UNSCHEDULABLE_TIMEOUT, False, id="the flush is no event of a node"),
    ],
)
def test_who_hears_of_an_event(hint: Hint, event: ClusterEvent, heard: bool) -> None:
    assert hint.matches(event) is heard


class Budget(CustomResource, frozen=True):
    """A kind of somebody's own."""

    group = "acme.example"


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (ClusterEvent(NODE, Action.ADD), "NodeAdd"),
        (ClusterEvent(NODE, Action.UPDATE_NODE_ALLOCATABLE), "NodeUpdateNodeAllocatable"),
        (ClusterEvent(NODE, LABEL_OR_TAINT), "Node"),
        (ClusterEvent(ASSIGNED_POD, Action.DELETE), "AssignedPodDelete"),
        (ClusterEvent(resource_name("PersistentVolume"), Action.UPDATE), "PersistentVolumeUpdate"),
        (ClusterEvent(resource_name("CSINode"), Action.ADD), "storage.k8s.io/CSINodeAdd"),
        (ClusterEvent(resource_name("DeviceClass"), Action.DELETE), "resource.k8s.io/DeviceClassDelete"),
        (ClusterEvent(resource_name(Budget), Action.ADD), "budgets.v1.acme.exampleAdd"),
        (FORCE_ACTIVATE, "ForceActivate"),
        (UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
    ],
)
def test_what_an_event_is_called(event: ClusterEvent, label: str) -> None:
    assert event.label == label


def test_actions_are_the_bits_that_kube_scheduler_gives_them() -> None:
    assert [action.value for action in Action if action.name not in ("UPDATE", "ALL")] == [1 << i for i in range(13)]
    assert (Action.UPDATE.value, Action.ALL.value) == (8188, 8191)
