from typing import Any

import msgspec
import pytest
from tests.plugins.small_cluster import Cluster, node, pod

from kubesched.cluster.podinfo import PodInfo
from kubesched.plugins.node_resources_balanced import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
    validate_node_resources_balanced_allocation,
)

GPU = "example.com/gpu"


def balanced(*resources: str, weight: int = 1) -> NodeResourcesBalancedAllocation:
    specs = [{"name": name, "weight": weight} for name in resources]
    return NodeResourcesBalancedAllocation(msgspec.convert({"resources": specs}, NodeResourcesBalancedAllocationArgs))


ROOM = {"cpu": 10, "memory": 100, GPU: 4}


@pytest.mark.parametrize(
    ("there", "requests", "expected"),
    [
        # Empty: perfectly even, 100.  With the pod cpu 50 % and memory 50 %: still.  50 + (50 + 100 − 100) / 2.
        pytest.param({}, {"cpu": 5, "memory": 50}, 75, id="even before and after"),
        # Shares 100 % and 0 %: |1 − 0| / 2 = 0.5.  50 + (50 + 50 − 100) / 2.
        pytest.param({}, {"cpu": 10}, 50, id="as uneven as can be"),
        # Before 50 % and 0 %: 75; after 50 % and 50 %: 100.  50 + (50 + 100 − 75) / 2, cut off.
        pytest.param({"cpu": 5}, {"memory": 50}, 87, id="evened out"),
        # Before 50 % and 50 %: 100; after 70 % and 50 %: 90.
        pytest.param({"cpu": 5, "memory": 50}, {"cpu": 2}, 70, id="made uneven"),
        # More than there is counts as all there is: 100 % and 100 %.
        pytest.param({"cpu": 9, "memory": 90}, {"cpu": 9, "memory": 90}, 75, id="overfull is full"),
    ],
)
def test_a_node_is_better_the_more_even_the_pod_leaves_it(
    there: dict[str, Any], requests: dict[str, Any], expected: int
) -> None:
    cluster = Cluster(node(allocatable=ROOM), pod("there", on="n1", requests=there))
    assert cluster.scores(balanced(), pod(requests=requests)) == {"n1": expected}


def test_three_resources_go_by_their_standard_deviation() -> None:
    # Shares 20 %, 50 % and 75 %: mean 0.4833, deviation 0.2248, so 77 after and 100 before.
    wanting = pod(requests={"cpu": 2, "memory": 50, GPU: 3})
    cluster = Cluster(node(allocatable=ROOM))
    assert cluster.scores(balanced("cpu", "memory", GPU), wanting) == {"n1": 63}


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        pytest.param(("cpu", "memory"), {}, id="it asks for nothing"),
        pytest.param(("cpu", "memory"), {"ephemeral-storage": 5}, id="for nothing of that"),
        pytest.param((GPU,), {"cpu": 5}, id="for no device"),
    ],
)
def test_pods_that_ask_for_nothing_are_not_scored(resources: tuple[str, ...], requests: dict[str, Any]) -> None:
    """They would all go to the same node."""
    assert Cluster(node(allocatable=ROOM)).scores(balanced(*resources), pod(requests=requests)) == {}


def test_what_a_node_has_not_stands_aside() -> None:
    cluster = Cluster(
        node("both", allocatable={"cpu": 10, GPU: 4}), node("no-gpu", allocatable={"cpu": 10}), node("none")
    )
    wanting = pod(requests={"cpu": 8, GPU: 1})
    # both: 80 % and 25 %, deviation 0.275 → 72; a single resource is even with itself.
    assert cluster.scores(balanced("cpu", GPU), wanting) == {"both": 61, "no-gpu": 75, "none": 75}


def test_there_is_no_guess_for_containers_that_do_not_say() -> None:
    cluster = Cluster(node(allocatable={"cpu": 1, "memory": "400Mi"}), pod("there", on="n1"))
    assert cluster.scores(balanced(), pod(requests={"cpu": "500m", "memory": "200Mi"})) == {"n1": 75}


def test_what_a_pod_says_of_itself_counts() -> None:
    cluster = Cluster(node(allocatable=ROOM))
    whole = pod(requests={"cpu": 1, "memory": 10}, resources={"requests": {"cpu": 10, "memory": 0}})
    assert cluster.scores(balanced(), whole) == {"n1": 50}


def test_pods_with_the_same_requests_are_signed_the_same() -> None:
    one, other, third = (PodInfo(pod(requests={"cpu": cpu})) for cpu in ("1", "1000m", "2"))
    assert balanced().sign_pod(one) == balanced().sign_pod(other) != balanced().sign_pod(third)


@pytest.mark.parametrize(
    ("resources", "problems"),
    [
        ([], []),
        ([{"name": "cpu"}, {"name": GPU, "weight": 0}], []),
        ([{"name": "cpu", "weight": 2}], [("resources[0].weight", "Invalid value: 2: must be 1")]),
        ([{"name": "cpu"}, {"name": "cpu"}], [("resources[1].name", 'Duplicate value: "cpu"')]),
    ],
)
def test_what_is_wrong_with_arguments(resources: list[dict[str, Any]], problems: list[tuple[str, str]]) -> None:
    args = msgspec.convert({"resources": resources}, NodeResourcesBalancedAllocationArgs)
    assert list(validate_node_resources_balanced_allocation(args)) == problems
