"""Reading objects: what is there, what null means, and what is said of those nobody can read."""

import json

import msgspec
import pytest

from kubesched.api.objects import KINDS, Invalid, Node, Pod, UnreadableObject, read, read_or_invalid


def deep(levels: int) -> object:
    tree: object = {}
    for _ in range(levels):
        tree = {"nodeAffinity": tree}
    return tree


def test_only_what_a_scheduler_reads_is_kept() -> None:
    raw = {"metadata": {"name": "a", "managedFields": [1]}, "spec": {"nodeName": "n", "dnsPolicy": "Default"}}
    assert msgspec.to_builtins(read(raw, Pod)) == {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": "n"}}


@pytest.mark.parametrize("field", ["containers", "tolerations", "volumes", "nodeSelector", "schedulingGates"])
def test_null_is_absent(field: str) -> None:
    assert read({"metadata": {"name": "a", "labels": None}, "spec": {field: None}}, Pod) == read(
        {"metadata": {"name": "a"}, "spec": {}}, Pod
    )


def test_null_within_a_list_is_absent_too() -> None:
    taints = [{"key": "a", "value": None, "effect": "NoSchedule"}]
    assert read({"spec": {"taints": taints}}, Node).spec.taints[0].value == ""


@pytest.mark.parametrize(
    ("metadata", "spec", "said"),
    [
        ({"name": "a", "namespace": "s"}, {"nodeName": 5}, "Pod 's/a': spec.nodeName: expected str, got int"),
        ({"name": "a"}, {"containers": [{"ports": {}}]}, "Pod 'a': spec.containers[0].ports: expected array, got obj"),
        ({"name": "a"}, [], "Pod 'a': spec: expected object, got array"),
        (7, {}, "a Pod without a name: metadata: expected object, got int"),
        ({"name": "a"}, {"priority": 1.5}, "Pod 'a': spec.priority: expected int"),
        ({"name": "a"}, {"nodeName": 5, "affinity": deep(10_000)}, "Pod 'a': it is nested too deeply"),
    ],
    ids=["type", "in-a-list", "shape", "metadata", "fraction", "depth"],
)
def test_an_object_nobody_can_read_says_where_and_what_was_expected(metadata: object, spec: object, said: str) -> None:
    with pytest.raises(UnreadableObject) as caught:
        read({"metadata": metadata, "spec": spec}, Pod)
    assert str(caught.value).startswith(said)


def test_an_unreadable_pod_still_has_its_name_and_says_who_would_place_it() -> None:
    found = read_or_invalid({"metadata": {"name": "a", "uid": "u", "labels": 3}, "spec": {"containers": 5}}, Pod)
    assert isinstance(found, Invalid)
    assert (found.of, found.name, found.uid, found.scheduler) == ("Pod", "a", "u", "default-scheduler")


@pytest.mark.parametrize(
    ("spec", "scheduler"),
    [
        ({"schedulerName": "mine", "containers": 5}, "mine"),
        ({"nodeName": "n1", "containers": 5}, ""),  # it is placed
        ({"schedulerName": 7}, ""),
        ("what", "default-scheduler"),
    ],
)
def test_who_would_have_to_place_it(spec: object, scheduler: str) -> None:
    found = read_or_invalid({"metadata": {"name": "a"}, "spec": spec}, Pod)
    assert isinstance(found, Invalid)
    assert found.scheduler == scheduler


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_is_written_as_it_was_read(kind: str) -> None:
    made = read({"metadata": {"name": "a", "namespace": "s", "labels": {"x": "y"}}}, KINDS[kind])
    again = msgspec.json.decode(msgspec.json.encode(made), type=KINDS[kind])
    assert again == made
    assert json.loads(msgspec.json.encode(made))["kind"] == kind
    assert made.key == "s/a"


def test_the_controller_is_the_owner_that_says_so() -> None:
    owners = [{"kind": "Node", "name": "n"}, {"kind": "ReplicaSet", "name": "web", "controller": True}]
    controller = read({"metadata": {"name": "a", "ownerReferences": owners}}, Pod).controller
    assert controller is not None
    assert controller.name == "web"
    assert read({"metadata": {"name": "a"}}, Pod).controller is None
