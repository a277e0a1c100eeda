import msgspec
import pytest
from tests.plugins.small_cluster import Cluster, node, pod, wakes

from kubesched.api.objects import DeviceClass, Pod, read
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import NotWritten
from kubesched.framework.decision import Rejected
from kubesched.framework.events import NODE, Action, ClusterEvent, resource_name
from kubesched.framework.status import SKIP, SUCCESS, Code, unschedulable
from kubesched.plugins.dynamic_resources import (
    CLAIMS,
    DynamicResources,
    DynamicResourcesArgs,
    no_device,
    validate_dynamic_resources,
)

FPGA = "example.com/fpga"
CLAIMING = pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "shared-gpu"}])


def device_class(name: str = "fpgas", resource: str | None = FPGA) -> DeviceClass:
    return read({"metadata": {"name": name, "uid": name}, "spec": {"extendedResourceName": resource}}, DeviceClass)


def test_an_ordinary_pod_is_let_by_and_preemption_gets_its_turn() -> None:
    plugin, cycle = DynamicResources(), Cluster(node()).cycle(pod())

    assert plugin.pre_enqueue(cycle.pod) is SUCCESS
    assert plugin.pre_filter(cycle, cycle.pod, cycle.nodes) is SKIP
    assert plugin.post_filter(cycle, cycle.pod, Rejected([], 0)) == unschedulable("no new claims to deallocate")


def test_after_an_attempt_that_never_got_here_it_cannot_answer() -> None:
    cycle = Cluster(node()).cycle(pod())
    with pytest.raises(NotWritten, match=r"^not found$"):
        DynamicResources().post_filter(cycle, cycle.pod, Rejected([], 0))


def test_a_pod_with_claims_may_wait_but_is_turned_down_in_plain_words() -> None:
    plugin, cycle = DynamicResources(), Cluster(node()).cycle(CLAIMING)

    assert plugin.pre_enqueue(cycle.pod) is SUCCESS
    status = plugin.pre_filter(cycle, cycle.pod, cycle.nodes)
    assert isinstance(status, type(SUCCESS))
    assert (status.code, status.message) == (Code.UNRESOLVABLE, CLAIMS)
    assert plugin.post_filter(cycle, cycle.pod, Rejected([], 0)) == unschedulable("still not schedulable")


@pytest.mark.parametrize(
    ("made", "wanting", "rejected"),
    [
        pytest.param(device_class(), pod(requests={FPGA: 1}), {"none"}, id="named by a class"),
        pytest.param(device_class(), pod(requests={FPGA: 0}), set(), id="none wanted"),
        pytest.param(device_class(resource=None), pod(requests={FPGA: 1}), set(), id="not named by a class"),
        pytest.param(device_class(), pod(requests={"cpu": 1}), set(), id="no device wanted"),
        pytest.param(
            device_class(resource=None),
            pod(requests={"deviceclass.resource.kubernetes.io/fpgas": 1}),
            {"none", "has"},
            id="the class itself",
        ),
    ],
)
def test_nodes_without_a_resource_that_devices_would_provide(
    made: DeviceClass, wanting: Pod, rejected: set[str]
) -> None:
    cluster = Cluster(made, node("none"), node("has", allocatable={FPGA: 1}))
    [resource] = list(PodInfo(wanting).requests)
    assert cluster.rejects(DynamicResources(), wanting) == dict.fromkeys(rejected, no_device(resource))


def test_it_prefers_no_node() -> None:
    assert Cluster(node("a"), node("b")).scores(DynamicResources(), pod()) == {"a": 0, "b": 0}


NEW_NODE, NEW_CLASS = ClusterEvent(NODE, Action.ADD), ClusterEvent(resource_name(DeviceClass), Action.DELETE)


@pytest.mark.parametrize("event", [NEW_NODE, NEW_CLASS])
def test_nothing_wakes_a_pod_with_claims(event: ClusterEvent) -> None:
    assert not wakes(DynamicResources(), event, CLAIMING, None, node())
    assert wakes(DynamicResources(), event, pod(requests={FPGA: 1}), None, node())


def test_pods_with_claims_are_not_alike() -> None:
    assert DynamicResources().sign_pod(PodInfo(CLAIMING)) == unschedulable(
        "pods with dra resource claims are not signable"
    )
    one, other, third = (PodInfo(pod(requests=requests)) for requests in ({}, {"cpu": 1}, {FPGA: 1}))
    assert DynamicResources().sign_pod(one) == DynamicResources().sign_pod(other) != DynamicResources().sign_pod(third)


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        ({}, []),
        ({"filterTimeout": "0s", "bindingTimeout": "1s"}, []),
        ({"filterTimeout": "-1s"}, [("filterTimeout", 'Invalid value: "-1s": must be zero or positive')]),
        ({"bindingTimeout": "999ms"}, [("bindingTimeout", 'Invalid value: "999ms": must be at least 1 second')]),
    ],
)
def test_what_is_wrong_with_arguments(args: dict[str, str], problems: list[tuple[str, str]]) -> None:
    assert list(validate_dynamic_resources(msgspec.convert(args, DynamicResourcesArgs))) == problems


def test_a_duration_that_is_none_is_told_how_to_write_one() -> None:
    [(path, message)] = validate_dynamic_resources(DynamicResourcesArgs(filter_timeout="soon"))
    assert path == "filterTimeout"
    assert "is not a duration" in message
