from typing import Any

import msgspec
import pytest
from tests.plugins.small_cluster import Cluster, container, node, pod, wakes, wakes_on_any

from kubesched.api.objects import DeviceClass, KubeObject, Node, Pod, read
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.errors import ConfigError
from kubesched.framework.events import (
    ASSIGNED_POD,
    NODE,
    UNSCHEDULED_POD,
    Action,
    ClusterEvent,
    node_changes,
    pod_changes,
    resource_name,
)
from kubesched.framework.features import Features
from kubesched.framework.status import Code
from kubesched.framework.tools import Tools
from kubesched.plugins.node_resources_fit import (
    NodeResourcesFit,
    NodeResourcesFitArgs,
    ScoringStrategy,
    validate_node_resources_fit,
)

GPU, FPGA, HUGE_PAGES = "example.com/gpu", "example.com/fpga", "hugepages-2Mi"


def fit(**args: Any) -> NodeResourcesFit:
    return NodeResourcesFit(msgspec.convert(args, NodeResourcesFitArgs))


# ── filter ───────────────────────────────────────────────────────────────────────────────────────────────────

# Of 10 cpu, 20 bytes, 20 bytes of scratch, 4 devices and 20 bytes of huge pages, a pod has taken about half.
USUAL = {"cpu": 10, "memory": 20, "ephemeral-storage": 20, GPU: 4, HUGE_PAGES: 20}
TAKEN = {"cpu": 5, "memory": 10, "ephemeral-storage": 10, GPU: 2, HUGE_PAGES: 10}
YES = ""


@pytest.mark.parametrize(
    ("requests", "code", "reasons"),
    [
        pytest.param({}, Code.SUCCESS, [], id="nothing"),
        pytest.param({"cpu": 5, "memory": 10}, Code.SUCCESS, [], id="just fits"),
        pytest.param({"cpu": "5001m"}, Code.UNSCHEDULABLE, ["Insufficient cpu"], id="cpu"),
        pytest.param({"cpu": "4999500u"}, Code.SUCCESS, [], id="cpu is rounded up to a thousandth"),
        pytest.param({"cpu": "5000001u"}, Code.UNSCHEDULABLE, ["Insufficient cpu"], id="and is then too much"),
        pytest.param({"memory": 11}, Code.UNSCHEDULABLE, ["Insufficient memory"], id="memory"),
        pytest.param({"cpu": 11}, Code.UNRESOLVABLE, ["Insufficient cpu"], id="more cpu than the node has"),
        pytest.param({"cpu": 10}, Code.UNSCHEDULABLE, ["Insufficient cpu"], id="as much as the node has"),
        pytest.param(
            {"cpu": 6, "memory": 11, "ephemeral-storage": 11, GPU: 3},
            Code.UNSCHEDULABLE,
            ["Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage", f"Insufficient {GPU}"],
            id="every reason is told",
        ),
        pytest.param(
            {"cpu": 6, "memory": 21},
            Code.UNRESOLVABLE,
            ["Insufficient cpu", "Insufficient memory"],
            id="one is hopeless",
        ),
        pytest.param({"ephemeral-storage": 11}, Code.UNSCHEDULABLE, ["Insufficient ephemeral-storage"], id="scratch"),
        pytest.param({GPU: 2}, Code.SUCCESS, [], id="devices"),
        pytest.param({GPU: 3}, Code.UNSCHEDULABLE, [f"Insufficient {GPU}"], id="a device too many"),
        pytest.param({GPU: 5}, Code.UNRESOLVABLE, [f"Insufficient {GPU}"], id="more devices than there are"),
        pytest.param({FPGA: 1}, Code.UNRESOLVABLE, [f"Insufficient {FPGA}"], id="a device the node has not"),
        pytest.param({FPGA: 0}, Code.SUCCESS, [], id="none of a device the node has not"),
        pytest.param({HUGE_PAGES: 11}, Code.UNSCHEDULABLE, [f"Insufficient {HUGE_PAGES}"], id="huge pages"),
        pytest.param({"made-up": 5}, Code.SUCCESS, [], id="what is no resource does not count"),
    ],
)
def test_what_fits(requests: dict[str, Any], code: Code, reasons: list[str]) -> None:
    cluster = Cluster(node(allocatable=USUAL), pod("there", on="n1", requests=TAKEN))

    [status] = cluster.filter(fit(), pod(requests=requests)).values()

    assert (status.code, list(status.reasons)) == (code, reasons)


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        pytest.param({"containers": [container({"cpu": 3}), container({"cpu": 4})]}, 7, id="containers add up"),
        pytest.param(
            {"containers": [container({"cpu": 3})], "initContainers": [container({"cpu": 5}), container({"cpu": 4})]},
            5,
            id="init containers run one after the other",
        ),
        pytest.param(
            {"containers": [container({"cpu": 6})], "initContainers": [container({"cpu": 5})]},
            6,
            id="and before the others",
        ),
        pytest.param(
            {
                "containers": [container({"cpu": 2})],
                "initContainers": [container({"cpu": 1}, restartPolicy="Always"), container({"cpu": 4})],
            },
            5,
            id="a sidecar runs beside later init containers",
        ),
        pytest.param(
            {
                "containers": [container({"cpu": 6})],
                "initContainers": [container({"cpu": 4}), container({"cpu": 1}, restartPolicy="Always")],
            },
            7,
            id="and beside the others",
        ),
        pytest.param({"containers": [container({"cpu": 3})], "overhead": {"cpu": 2}}, 5, id="overhead comes on top"),
        pytest.param(
            {"containers": [container({"cpu": 3})], "resources": {"requests": {"cpu": 8}}},
            8,
            id="the pod says it itself",
        ),
    ],
)
def test_what_a_pod_needs(spec: dict[str, Any], needed: int) -> None:
    enough, short = node("enough", allocatable={"cpu": needed}), node("short", allocatable={"cpu": needed - 1})
    assert Cluster(enough, short).rejects(fit(), pod(**spec)) == {"short": "Insufficient cpu"}


def test_one_pod_too_many() -> None:
    cluster = Cluster(node("full", allocatable={"pods": 1}), node("free", allocatable={"pods": 2}))
    for name in ("full", "free"):
        cluster.mirror.observe(pod(f"on-{name}", on=name))

    [status, _] = cluster.filter(fit(), pod()).values()
    assert (status.code, status.message) == (Code.UNSCHEDULABLE, "Too many pods")
    assert cluster.rejects(fit(), pod(requests={"cpu": 1})) == {
        "full": "Too many pods, Insufficient cpu",
        "free": "Insufficient cpu",
    }


def test_a_node_that_allows_no_pods_takes_none() -> None:
    [status] = Cluster(node(allocatable={"pods": 0})).filter(fit(), pod()).values()
    assert (status.code, status.message) == (Code.UNSCHEDULABLE, "Too many pods")


@pytest.mark.parametrize(
    ("args", "fits"),
    [
        ({}, False),
        ({"ignoredResources": [FPGA]}, True),
        ({"ignoredResources": [GPU]}, False),
        ({"ignoredResourceGroups": ["example.com"]}, True),
        ({"ignoredResourceGroups": ["example.org"]}, False),
    ],
)
def test_extended_resources_may_be_somebody_elses_business(args: dict[str, Any], fits: bool) -> None:
    expected = {} if fits else {"n1": f"Insufficient {FPGA}"}
    assert Cluster(node()).rejects(fit(**args), pod(requests={FPGA: 1})) == expected


def test_huge_pages_are_nobody_elses_business() -> None:
    ignoring = fit(ignoredResources=[HUGE_PAGES], ignoredResourceGroups=[HUGE_PAGES])
    assert Cluster(node()).rejects(ignoring, pod(requests={HUGE_PAGES: 1})) == {"n1": f"Insufficient {HUGE_PAGES}"}


def device_class(name: str = "fpgas", resource: str | None = FPGA) -> DeviceClass:
    return read({"metadata": {"name": name, "uid": name}, "spec": {"extendedResourceName": resource}}, DeviceClass)


def test_what_devices_may_provide_is_left_to_dynamic_resources_where_the_node_has_none() -> None:
    cluster = Cluster(
        device_class(), node("none"), node("has", allocatable={FPGA: 1}), node("lost", allocatable={FPGA: 0})
    )
    off = NodeResourcesFit(tools=Tools("NodeResourcesFit", Features(dra_extended_resource=False)))

    assert cluster.rejects(fit(), pod(requests={FPGA: 2})) == {"has": f"Insufficient {FPGA}"}
    assert set(cluster.rejects(off, pod(requests={FPGA: 2}))) == {"none", "has", "lost"}


# ── score ────────────────────────────────────────────────────────────────────────────────────────────────────


def strategy(kind: str, *resources: tuple[str, int], shape: tuple[tuple[int, int], ...] = ()) -> dict[str, Any]:
    chosen: dict[str, Any] = {"type": kind, "resources": [{"name": name, "weight": w} for name, w in resources]}
    if shape:
        chosen["requestedToCapacityRatio"] = {"shape": [{"utilization": x, "score": y} for x, y in shape]}
    return {"scoringStrategy": chosen}


SCORED = Cluster(
    node("small", allocatable={"cpu": 4, "memory": 10_000, GPU: 4}),
    node("large", allocatable={"cpu": 6, "memory": 10_000, GPU: 8}),
    pod("there", on="large", requests={"cpu": 2, "memory": 5000, GPU: 4}),
)
BUSY = pod(requests={"cpu": 2, "memory": 4000})


@pytest.mark.parametrize(
    ("args", "wanting", "expected"),
    [
        pytest.param({}, BUSY, {"small": 55, "large": 21}, id="by default the emptier is better"),
        pytest.param(strategy("MostAllocated"), BUSY, {"small": 45, "large": 78}, id="the fuller is better"),
        pytest.param(
            strategy("LeastAllocated", ("cpu", 2), ("memory", 1)), BUSY, {"small": 53, "large": 25}, id="weights"
        ),
        pytest.param(strategy("LeastAllocated", ("cpu", 0)), BUSY, {"small": 50, "large": 33}, id="weight 0 is 1"),
        pytest.param(strategy("MostAllocated", (GPU, 1)), BUSY, {"small": 0, "large": 0}, id="devices nobody wants"),
        pytest.param(
            strategy("MostAllocated", (GPU, 3), ("cpu", 1)),
            pod(requests={"cpu": 2, GPU: 2}),
            {"small": 50, "large": 72},
            id="devices somebody wants",
        ),
        pytest.param(
            strategy("RequestedToCapacityRatio", ("cpu", 1), shape=((0, 0), (100, 10))),
            BUSY,
            {"small": 50, "large": 66},
            id="a shape",
        ),
        pytest.param(
            strategy("LeastAllocated", ("ephemeral-storage", 1)), BUSY, {"small": 0, "large": 0}, id="nothing to go by"
        ),
    ],
)
def test_scores(args: dict[str, Any], wanting: Pod, expected: dict[str, int]) -> None:
    assert SCORED.scores(fit(**args), wanting) == expected


def test_containers_that_do_not_say_count_with_a_guess() -> None:
    """100 milli-CPU and 200 MiB: for the pod, and for the pods that are there."""
    cluster = Cluster(
        node("empty", allocatable={"cpu": 1, "memory": "1000Mi"}),
        node("used", allocatable={"cpu": 1, "memory": "1000Mi"}),
        pod("there", on="used"),
    )
    assert cluster.scores(fit(), pod()) == {"empty": 85, "used": 70}
    assert cluster.scores(fit(), pod(requests={"cpu": 0, "memory": 0})) == {"empty": 100, "used": 85}
    with_init = pod(containers=[container({"cpu": 0, "memory": 0})], initContainers=[container()])
    assert cluster.scores(fit(), with_init) == {"empty": 85, "used": 70}


def test_what_a_pod_says_of_itself_is_not_scored() -> None:
    cluster = Cluster(node(allocatable={"cpu": 10, "memory": 1000}))
    whole = pod(containers=[container({"cpu": 1, "memory": 100})], resources={"requests": {"cpu": 5, "memory": 500}})
    assert cluster.scores(fit(), whole) == {"n1": 90}
    assert cluster.scores(fit(), pod(requests={"cpu": 1, "memory": 100}, overhead={"cpu": 4})) == {"n1": 70}


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────

WAITING = pod(requests={"cpu": 2, "memory": 2})
SCALED = ClusterEvent(ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)


@pytest.mark.parametrize(
    ("deleted", "expected"),
    [
        pytest.param(pod("q", on="n1"), True, id="it was placed"),
        pytest.param(pod("q", status={"nominatedNodeName": "n1"}), True, id="it was nominated"),
        pytest.param(pod("q", requests={"cpu": 9}), False, id="it was nowhere"),
    ],
)
def test_deletions_that_wake(deleted: Pod, expected: bool) -> None:
    resource = ASSIGNED_POD if deleted.spec.node_name else UNSCHEDULED_POD
    assert wakes(fit(), ClusterEvent(resource, Action.DELETE), WAITING, deleted, None) is expected


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(
            WAITING,
            pod("q", on="n1", requests={"cpu": 2}),
            pod("q", on="n1", requests={"cpu": 1}),
            True,
            id="cpu freed",
        ),
        pytest.param(
            WAITING,
            pod("q", on="n1", requests={"memory": 2}),
            pod("q", on="n1", requests={"memory": 1}),
            True,
            id="memory freed",
        ),
        pytest.param(
            WAITING,
            pod("q", on="n1", requests={GPU: 2}),
            pod("q", on="n1", requests={GPU: 1}),
            False,
            id="freed what it does not want",
        ),
        pytest.param(
            pod(requests={GPU: 1}),
            pod("q", on="n1", requests={GPU: 2}),
            pod("q", on="n1", requests={GPU: 1}),
            True,
            id="a device freed",
        ),
        pytest.param(
            WAITING, pod("q", on="n1", requests={"cpu": 1}), pod("q", on="n1", requests={"cpu": 2}), False, id="grown"
        ),
        pytest.param(
            WAITING, pod("q", requests={"cpu": 2}), pod("q", requests={"cpu": 1}), False, id="another that waits"
        ),
        pytest.param(WAITING, WAITING, pod(requests={"cpu": 1}), True, id="it asks for less itself"),
        pytest.param(
            pod(requests={"cpu": 0}),
            pod("q", on="n1", requests={"cpu": 2}),
            pod("q", on="n1", requests={"cpu": 1}),
            False,
            id="it wants none",
        ),
    ],
)
def test_scaling_that_wakes(waiting: Pod, old: Pod, new: Pod, expected: bool) -> None:
    assert wakes(fit(), SCALED, waiting, old, new) is expected


def test_a_resize_counts_when_the_kubelet_has_made_it() -> None:
    def resized(allocated: str) -> Pod:
        status = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": allocated}}}]}
        return pod("q", on="n1", requests={"cpu": 1}, status=status)

    still_large, small = resized("4"), resized("1")
    assert wakes_on_any(fit(), pod_changes(still_large, small), WAITING, still_large, small)
    asked_only = pod("q", on="n1", requests={"cpu": 4}, status=msgspec.to_builtins(still_large.status))
    assert not wakes_on_any(fit(), pod_changes(asked_only, still_large), WAITING, asked_only, still_large)


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(WAITING, None, node(allocatable={"cpu": 2, "memory": 2}), True, id="a new node with room"),
        pytest.param(WAITING, None, node(allocatable={"cpu": 1, "memory": 2}), False, id="a new node without"),
        pytest.param(
            WAITING, None, node(allocatable={"cpu": 2, "memory": 2, "pods": 0}), False, id="for no pods at all"
        ),
        pytest.param(
            WAITING,
            node(allocatable={"cpu": 1, "memory": 2}),
            node(allocatable={"cpu": 2, "memory": 2}),
            True,
            id="grown",
        ),
        pytest.param(
            WAITING,
            node(allocatable={"cpu": 1, "memory": 1}),
            node(allocatable={"cpu": 2, "memory": 1}),
            False,
            id="grown, but not enough",
        ),
        pytest.param(
            WAITING,
            node(allocatable={"cpu": 3, "memory": 3}),
            node(allocatable={"cpu": 2, "memory": 3}),
            False,
            id="shrunk, and large enough",
        ),
        pytest.param(
            WAITING,
            node(allocatable={"cpu": 3, "memory": 3}),
            node(allocatable={"cpu": 3, "memory": 3, GPU: 1}),
            False,
            id="grown where it does not matter",
        ),
        pytest.param(
            WAITING,
            node(allocatable={"cpu": 3, "memory": 3, "pods": 1}),
            node(allocatable={"cpu": 3, "memory": 3, "pods": 2}),
            True,
            id="room for more pods",
        ),
        pytest.param(
            pod(requests={GPU: 1}), node(allocatable={GPU: 1}), node(allocatable={GPU: 2}), True, id="more devices"
        ),
        pytest.param(pod(requests={GPU: 0}), node(), node(allocatable={GPU: 2}), False, id="devices it wants none of"),
    ],
)
def test_nodes_that_wake(waiting: Pod, old: Node | None, new: Node, expected: bool) -> None:
    event = ClusterEvent(NODE, Action.ADD if old is None else Action.UPDATE_NODE_ALLOCATABLE)
    assert wakes(fit(), event, waiting, old, new) is expected


def test_growth_is_told_as_such_an_event() -> None:
    old, new = node(allocatable={"cpu": 1, "memory": 2}), node(allocatable={"cpu": 2, "memory": 2})
    assert wakes_on_any(fit(), node_changes(old, new), WAITING, old, new)


def test_a_node_without_an_ignored_resource_wakes() -> None:
    wanting = pod(requests={FPGA: 1})
    assert wakes(fit(ignoredResources=[FPGA]), ClusterEvent(NODE, Action.ADD), wanting, None, node())


IMPLICIT = "deviceclass.resource.kubernetes.io/fpgas"


@pytest.mark.parametrize(
    ("requests", "old", "new", "expected"),
    [
        pytest.param({FPGA: 1}, None, device_class(), True, id="a new class for it"),
        pytest.param({FPGA: 1}, None, device_class(resource=GPU), False, id="a new class for another"),
        pytest.param({FPGA: 1}, None, device_class(resource=None), False, id="a new class for none"),
        pytest.param({IMPLICIT: 1}, None, device_class(resource=None), True, id="a new class of that name"),
        pytest.param({IMPLICIT: 1}, None, device_class("others", None), False, id="a new class of another name"),
        pytest.param({FPGA: 1}, device_class(resource=GPU), device_class(), True, id="a class is for it now"),
        pytest.param({FPGA: 1}, device_class(resource=None), device_class(), True, id="a class is for something now"),
        pytest.param({FPGA: 1}, device_class(), device_class(), False, id="a class stays the same"),
        pytest.param({FPGA: 1}, device_class(), device_class(resource=GPU), False, id="a class is for another now"),
        pytest.param({IMPLICIT: 1}, device_class(), device_class(resource=GPU), False, id="its name has not changed"),
    ],
)
def test_device_classes_that_wake(
    requests: dict[str, int], old: KubeObject | None, new: KubeObject, expected: bool
) -> None:
    event = ClusterEvent(resource_name(DeviceClass), Action.ADD if old is None else Action.UPDATE)
    assert wakes(fit(), event, pod(requests=requests), old, new) is expected


def test_without_the_gate_it_does_not_listen_to_device_classes() -> None:
    off = NodeResourcesFit(tools=Tools("NodeResourcesFit", Features(dra_extended_resource=False)))
    assert [hint.resource for hint in off.events_to_register()] == ["Pod", "Node"]


# ── signature and arguments ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        pytest.param(pod(requests={"cpu": 1}), pod("q", requests={"cpu": "1000m"}), True, id="another spelling"),
        pytest.param(pod(requests={"cpu": 1}), pod(requests={"cpu": 2}), False, id="another amount"),
        pytest.param(pod(), pod(requests={"cpu": 0}), False, id="saying nothing is scored with a guess"),
        pytest.param(
            pod(requests={"cpu": 1, "memory": 1}, resources={"requests": {"cpu": 3}}),
            pod(requests={"cpu": 3, "memory": 1}),
            False,
            id="what a pod says of itself is not scored",
        ),
    ],
)
def test_signatures(one: Pod, other: Pod, alike: bool) -> None:
    assert (fit().sign_pod(PodInfo(one)) == fit().sign_pod(PodInfo(other))) is alike


SUPPORTED = '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        ({}, []),
        ({"ignoredResources": [GPU], "ignoredResourceGroups": ["example.com"]}, []),
        (
            {"ignoredResourceGroups": ["example.com/gpu"]},
            [
                (
                    "ignoredResourceGroups[0]",
                    "Invalid value: \"example.com/gpu\": resource group name can't contain '/'",
                )
            ],
        ),
        (
            {"scoringStrategy": {"type": "Foo"}},
            [("scoringStrategy.type", f'Unsupported value: "Foo": supported values: {SUPPORTED}')],
        ),
        (
            strategy("MostAllocated", ("cpu", 101), ("memory", -1)),
            [
                (
                    "scoringStrategy.resources[0].weight",
                    "Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
                ),
                (
                    "scoringStrategy.resources[1].weight",
                    "Invalid value: -1: resource weight of memory not in valid range (0, 100]",
                ),
            ],
        ),
        (
            strategy("RequestedToCapacityRatio"),
            [
                (
                    "scoringStrategy.requestedToCapacityRatio",
                    "Required value: must be specified when type is RequestedToCapacityRatio",
                )
            ],
        ),
        (
            strategy("LeastAllocated", shape=((0, 0),)),
            [
                (
                    "scoringStrategy.requestedToCapacityRatio",
                    "Forbidden: must be nil when type is not RequestedToCapacityRatio",
                )
            ],
        ),
        (
            strategy("RequestedToCapacityRatio", shape=((0, 11),)),
            [
                (
                    "scoringStrategy.requestedToCapacityRatio.shape[0].score",
                    "Invalid value: 11: not in valid range [0, 10]",
                )
            ],
        ),
    ],
)
def test_what_is_wrong_with_arguments(args: dict[str, Any], problems: list[tuple[str, str]]) -> None:
    read_args = msgspec.convert(args, NodeResourcesFitArgs)
    assert list(validate_node_resources_fit(read_args)) == problems
    if problems:
        with pytest.raises(ConfigError) as raised:
            NodeResourcesFit(read_args)
        assert str(raised.value) == ": ".join(problems[0])


def test_a_name_that_is_no_name_is_told_why() -> None:
    args = NodeResourcesFitArgs(ignored_resources=("a b",))
    [(path, message)] = validate_node_resources_fit(args)
    assert path == "ignoredResources[0]"
    assert message.startswith('Invalid value: "a b": name part must consist of alphanumeric characters')


def test_no_resources_means_the_usual_ones() -> None:
    assert ScoringStrategy(resources=()) == ScoringStrategy()


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `ignoreResources`"):
        fit(ignoreResources=[GPU])
