"""What a pod asks for, takes, and is scored by: containers, what runs before and beside them, and resizes in place.

Rules: ordinary containers add up; of what runs before them the most at one time counts, if it is more; sidecars count
from their start to the end; what the pod says as a whole replaces what its containers say; overhead comes on top.  A
placed pod takes the larger of what it asks for and has.  A container that does not name CPU or memory is scored by a
guess, one that asks for none of it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kubesched.api.objects import Pod, read
from kubesched.cluster.podinfo import HostPort, PodInfo

Data = Mapping[str, Any]
MIB = 1 << 20
GUESS = 200 * MIB


def container(name: str = "c", **requests: Any) -> dict[str, Any]:
    named = {key.replace("__", "/").replace("_", "-"): value for key, value in requests.items()}
    return {"name": name, "resources": {"requests": named}}


def sidecar(name: str = "s", **requests: Any) -> dict[str, Any]:
    return {**container(name, **requests), "restartPolicy": "Always"}


def pod(*containers: Data, before: Sequence[Data] = (), status: Data | None = None, **spec: Any) -> PodInfo:
    body = {"containers": containers, "initContainers": before, **spec}
    return PodInfo(read({"metadata": {"name": "p", "uid": "u"}, "spec": body, "status": dict(status or {})}, Pod))


def whole(**requests: Any) -> dict[str, Any]:
    return {"requests": {key.replace("_", "-"): value for key, value in requests.items()}}


ONE = container(cpu="1")


@pytest.mark.parametrize(
    ("wanted", "cpu"),
    [
        pytest.param(pod(), 0, id="no container"),
        pytest.param(pod(container()), 0, id="a container that does not say"),
        pytest.param(pod(container("a", cpu="1"), container("b", cpu="500m")), 1500, id="containers add up"),
        pytest.param(pod(container("a", cpu="100u"), container("b", cpu="100u")), 2, id="rounded up, each of them"),
        pytest.param(pod(ONE, before=[container("i", cpu="3")]), 3000, id="more is needed before they start"),
        pytest.param(pod(ONE, before=[container("i", cpu="500m")]), 1000, id="less is needed before they start"),
        pytest.param(
            pod(ONE, before=[container("i", cpu="2"), container("j", cpu="3")]), 3000, id="the most at one time"
        ),
        pytest.param(pod(ONE, before=[sidecar(cpu="2")]), 3000, id="a sidecar stays"),
        pytest.param(
            pod(ONE, before=[sidecar("s", cpu="2"), sidecar("t", cpu="1")]), 4000, id="and so does every other"
        ),
        pytest.param(
            pod(ONE, before=[sidecar(cpu="2"), container("i", cpu="3")]), 5000, id="started before, it runs beside"
        ),
        pytest.param(
            pod(ONE, before=[container("i", cpu="3"), sidecar(cpu="2")]), 3000, id="started after, it does not"
        ),
        pytest.param(
            pod(ONE, before=[sidecar("s", cpu="1"), container("i", cpu="4"), sidecar("t", cpu="3")]),
            5000,
            id="one before and one after",
        ),
        pytest.param(
            pod(ONE, before=[sidecar("s", cpu="1"), container("i", cpu="1"), sidecar("t", cpu="3")]),
            5000,
            id="and the end weighs more than the beginning",
        ),
        pytest.param(pod(ONE, overhead={"cpu": "250m"}), 1250, id="overhead comes on top"),
        pytest.param(pod(container(), overhead={"cpu": "250m"}), 250, id="of nothing too"),
        pytest.param(
            pod(ONE, before=[container("i", cpu="3")], overhead={"cpu": "250m"}), 3250, id="and of what runs before"
        ),
        pytest.param(pod(ONE, resources=whole(cpu="4")), 4000, id="the pod says more than its containers"),
        pytest.param(pod(container(cpu="4"), resources=whole(cpu="1")), 1000, id="or less"),
        pytest.param(pod(ONE, resources=whole(memory="1Gi")), 1000, id="or speaks of something else"),
        pytest.param(pod(ONE, resources={"limits": {"cpu": "4"}}), 1000, id="limits are no requests"),
        pytest.param(pod(ONE, before=[container("i", cpu="9")], resources=whole(cpu="4")), 4000, id="of all of them"),
        pytest.param(pod(ONE, resources=whole(cpu="4"), overhead={"cpu": "1"}), 5000, id="but for the overhead"),
    ],
)
def test_what_a_pod_asks_for(wanted: PodInfo, cpu: int) -> None:
    assert wanted.requests.get("cpu", 0) == cpu


def test_every_resource_is_counted_for_itself() -> None:
    wanted = pod(
        container("a", cpu="1", memory="1Gi", vendor_com__gpu=1),
        container("b", cpu="1", memory="1Gi"),
        before=[container("i", cpu="1", memory="3Gi", ephemeral_storage="5Gi", hugepages_2Mi="4Mi")],
        overhead={"cpu": "100m", "example.com/fuel": "3"},
    )
    assert wanted.requests == {
        "cpu": 2100,
        "memory": 3 << 30,
        "ephemeral-storage": 5 << 30,
        "hugepages-2Mi": 4 * MIB,
        "vendor-com/gpu": 1,
        "example.com/fuel": 3,
    }


def test_a_pod_may_speak_for_its_containers_of_cpu_memory_and_huge_pages_only() -> None:
    wanted = pod(
        container(cpu="1", ephemeral_storage="1Gi", hugepages_2Mi="4Mi"),
        resources={"requests": {"cpu": "2", "hugepages-2Mi": "8Mi", "ephemeral-storage": "9Gi", "example.com/gpu": 9}},
    )
    assert wanted.requests == {"cpu": 2000, "hugepages-2Mi": 8 * MIB, "ephemeral-storage": 1 << 30}


def test_resources_nobody_schedules_by_are_left_out() -> None:
    odd = {"storage": "1Gi", "requests.example.com/gpu": 1, "pods": 3, "attachable-volumes-x": 2, "kubernetes.io/z": 4}
    wanted = pod({"name": "c", "resources": {"requests": {"example.com/gpu": 5, **odd}}})
    assert wanted.requests == {"example.com/gpu": 5, "attachable-volumes-x": 2, "kubernetes.io/z": 4}


# ── what it is scored by ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("wanted", "cpu", "memory"),
    [
        pytest.param(pod(container()), 100, GUESS, id="nothing is said"),
        pytest.param(pod(container(cpu="1")), 1000, GUESS, id="of memory nothing is said"),
        pytest.param(pod(container(memory="1Gi")), 100, 1 << 30, id="of CPU nothing is said"),
        pytest.param(pod(container(cpu=0, memory=0)), 0, 0, id="nothing is asked for, and that is said"),
        pytest.param(pod(container("a"), container("b", cpu="1")), 1100, 2 * GUESS, id="a guess for each container"),
        pytest.param(pod(container("a"), before=[sidecar()]), 200, 2 * GUESS, id="and for each sidecar"),
        pytest.param(pod(container(cpu="50m"), before=[container("i")]), 100, GUESS, id="and for what runs before"),
        pytest.param(pod(container(), overhead={"cpu": "1"}), 1100, GUESS, id="overhead comes on top of a guess"),
        pytest.param(pod(container(), resources=whole(cpu="2")), 2000, GUESS, id="one guess where the pod speaks"),
        pytest.param(
            pod(container("a"), container("b"), resources=whole(cpu="2", memory="1Gi")), 2000, 1 << 30, id="for both"
        ),
        pytest.param(
            pod(container("a", memory="1Gi"), container("b"), resources=whole(cpu="2")),
            2000,
            1 << 30,
            id="and no guess where any container says it",
        ),
        pytest.param(pod(), 0, 0, id="no container, no guess"),
    ],
)
def test_what_a_pod_is_scored_by(wanted: PodInfo, cpu: int, memory: int) -> None:
    assert wanted.nonzero_usage == (cpu, memory)


# ── what a placed pod takes ──────────────────────────────────────────────────────────────────────────────────


def told(cpu: str | None, allocated: str | None = None, name: str = "c") -> dict[str, Any]:
    """What the kubelet says a container has, and what it has set aside for it."""
    found: dict[str, Any] = {"name": name}
    if cpu is not None:
        found["resources"] = {"requests": {"cpu": cpu}}
    return found | ({"allocatedResources": {"cpu": allocated}} if allocated else {})


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        pytest.param({}, 2000, id="the kubelet says nothing"),
        pytest.param({"containerStatuses": [told("2", "2")]}, 2000, id="it has what it asks for"),
        pytest.param({"containerStatuses": [told("1", "1")]}, 2000, id="it is to grow"),
        pytest.param({"containerStatuses": [told("3", "3")]}, 3000, id="it is to shrink"),
        pytest.param({"containerStatuses": [told("1", "4")]}, 4000, id="more is set aside than it has"),
        pytest.param({"containerStatuses": [told(None, "4")]}, 2000, id="set aside, and no word of what it has"),
        pytest.param({"containerStatuses": [told("9", "9", name="other")]}, 2000, id="of another container"),
        pytest.param({"containerStatuses": [told("1", "1")], "conditions": INFEASIBLE}, 1000, id="it cannot grow"),
        pytest.param({"containerStatuses": [told("1", "1")], "conditions": DEFERRED}, 2000, id="it cannot grow yet"),
        pytest.param({"conditions": INFEASIBLE}, 2000, id="it cannot grow, and nobody says what it has"),
    ],
)
def test_a_pod_being_resized_takes_the_larger_size(status: Data, cpu: int) -> None:
    placed = pod(container(cpu="2"), status=status)
    assert placed.usage["cpu"] == cpu
    assert placed.requests["cpu"] == 2000, "which is what it asks for elsewhere"


def test_sidecars_are_resized_and_what_ran_before_is_not() -> None:
    before = [sidecar(cpu="1"), container("i", cpu="2")]
    status = {"initContainerStatuses": [told("4", "4", name="s"), told("9", "9", name="i")]}
    assert pod(ONE, before=before, status=status).usage["cpu"] == 6000
    assert pod(ONE, before=before).usage["cpu"] == 3000


def test_a_pod_is_resized_as_a_whole_too() -> None:
    status = {"resources": whole(cpu="3"), "allocatedResources": {"cpu": "3"}}
    assert pod(ONE, resources=whole(cpu="2"), status=status).usage["cpu"] == 3000
    assert pod(ONE, resources=whole(cpu="2"), status={**status, "conditions": INFEASIBLE}).usage["cpu"] == 3000
    assert pod(ONE, resources=whole(cpu="4"), status={**status, "conditions": INFEASIBLE}).usage["cpu"] == 3000
    assert pod(ONE, resources=whole(cpu="4"), status=status).usage["cpu"] == 4000


def test_a_resize_of_the_whole_pod_counts_for_what_its_spec_names() -> None:
    status = {"resources": whole(cpu="3", memory="1Gi")}
    assert pod(ONE, resources=whole(memory="2Gi"), status=status).usage == {"cpu": 1000, "memory": 2 << 30}
    assert pod(ONE, resources={"requests": {}}, status=status).usage == pod(ONE).usage
    refused = {**status, "conditions": INFEASIBLE}
    assert pod(ONE, resources=whole(**{"hugepages-2Mi": "2Mi"}), status=refused).usage["hugepages-2Mi"] == 0


# ── ports ────────────────────────────────────────────────────────────────────────────────────────────────────


def listening(*ports: Data, **more: Any) -> dict[str, Any]:
    return {"name": "c", "ports": list(ports), **more}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(pod(listening({"containerPort": 80})), [], id="a port of the container is not one of the node"),
        pytest.param(pod(listening({"hostPort": 80})), ["0.0.0.0 TCP 80"], id="any address, and TCP"),
        pytest.param(
            pod(listening({"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "UDP"})),
            ["10.0.0.1 UDP 80"],
            id="unless it says otherwise",
        ),
        pytest.param(
            pod(listening({"hostPort": 80}, {"hostPort": 81}), listening({"hostPort": 82})),
            ["0.0.0.0 TCP 80", "0.0.0.0 TCP 81", "0.0.0.0 TCP 82"],
            id="of every container",
        ),
        pytest.param(pod(before=[listening({"hostPort": 80})]), [], id="what runs before holds no port"),
        pytest.param(
            pod(listening({"hostPort": 81}), before=[listening({"hostPort": 80}, restartPolicy="Always")]),
            ["0.0.0.0 TCP 80", "0.0.0.0 TCP 81"],
            id="a sidecar does, and comes first",
        ),
    ],
)
def test_the_ports_of_the_node_a_pod_wants(wanted: PodInfo, expected: list[str]) -> None:
    assert [_text(port) for port in wanted.host_ports] == expected


def _text(port: HostPort) -> str:
    return " ".join(map(str, port))
