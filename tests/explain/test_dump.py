"""A cluster from files: what is read, what is left out with a word, what is completed."""

import json
from typing import Any

import pytest
import yaml
from tests.explain.dumping import manifest

from kubesched.api.objects import Node, Pod, Service
from kubesched.explain.dump import Dump, PriorityClass, counted, read_dump
from kubesched.testing import node, pod

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u1"}}


def dump(*items: Any, style: str = "json") -> Dump:
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": list(items)})
    return read_dump([("x", text.encode() if style == "json" else yaml.safe_dump(json.loads(text)).encode())])


@pytest.mark.parametrize("style", ["json", "yaml"])
def test_objects_become_views(style: str) -> None:
    read = dump(manifest(node("n1", cpu=4)), manifest(pod("a", cpu=1)), style=style)

    assert [type(obj) for obj in read.objects] == [Node, Pod]
    assert read.objects[0].name == "n1"
    assert not read.warnings


@pytest.mark.parametrize("style", ["json", "yaml"])
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": 3}}, "metadata.name: expected str, got int"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}, "spec": []}, "'n2': spec: expected object"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {}}, "a Node without a name"),
        ({"apiVersion": "v1", "metadata": {"name": "n"}}, "says its kind"),
        ({"apiVersion": "v1", "kind": 7, "metadata": {"name": "n"}}, "says its kind"),
        ("a string", "is no object"),
        (None, "is no object"),
        ({"apiVersion": "v1", "kind": "PriorityClass", "metadata": {"name": "x"}, "value": "high"}, "PriorityClass"),
    ],
)
def test_a_broken_object_costs_a_warning_and_itself(style: str, broken: Any, said: str) -> None:
    read = dump(NODE, broken, manifest(pod("a")), style=style)

    assert len(read.objects) == 2
    [warning] = read.warnings
    assert warning.startswith("x: item 1: ")
    assert said in warning
    assert warning.endswith("it is left out")


def test_kinds_nobody_asks_for_are_counted() -> None:
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    read = dump(other, other, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})

    assert counted(read.others) == "1 ConfigMap, 2 Deployment"
    assert not read.objects
    assert not read.warnings


@pytest.mark.parametrize("style", ["json", "yaml"])
def test_a_kind_of_the_same_name_is_another_kind(style: str) -> None:
    knative = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "s"}}
    late = {"kind": "Node", "metadata": {"name": "n"}, "apiVersion": "longhorn.io/v1beta2"}
    core = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "default", "uid": "u"}}

    read = dump(knative, late, core, style=style)

    assert [type(obj) for obj in read.objects] == [Service]
    assert read.others == {"Service": 1, "Node": 1}


def test_what_an_api_server_would_have_added_is_added() -> None:
    read = dump(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},
        NODE,
    )

    a, b, n, complete = read.objects
    assert (a.namespace, b.namespace, n.namespace) == ("default", "default", "")
    assert len({a.uid, b.uid, n.uid, ""}) == 4
    assert complete.uid == "u1"


def test_priority_classes_are_kept_for_pods_that_name_them() -> None:
    read = dump(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
            "preemptionPolicy": "Never",
        }
    )

    assert read.priorities["high"] == PriorityClass(1000, "Never")
    assert read.priorities["system-node-critical"].value == 2_000_001_000


def test_the_items_of_a_raw_list_are_read() -> None:
    text = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]})

    [obj] = read_dump([("x", text.encode())]).objects

    assert isinstance(obj, Pod)


def test_several_files_make_one_cluster() -> None:
    files = [("nodes", json.dumps(NODE).encode()), ("pods", yaml.safe_dump(manifest(pod("a"))).encode())]

    assert len(read_dump(files).objects) == 2
