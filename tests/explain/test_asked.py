"""The pod that is asked about: as the API server would have stored it, and not placed yet."""

import json
from typing import Any

import pytest
import yaml

from kubesched.explain.asked import Asked, read_pod
from kubesched.explain.documents import UnreadableFile
from kubesched.explain.dump import PriorityClass

PRIORITIES = {"high": PriorityClass(1000, "Never")}


def asked(spec: Any = None, priorities: Any = PRIORITIES, **metadata: Any) -> Asked:
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", **metadata}, "spec": spec or {}}
    return read_pod(json.dumps(obj).encode(), "pod.json", priorities)


def container(**resources: Any) -> dict[str, Any]:
    return {"name": "c", "image": "nginx", "resources": resources}


def test_requests_follow_from_limits() -> None:
    pod = asked({"containers": [container(limits={"cpu": "2"})]}).pod

    assert pod.spec.containers[0].resources.requests == {"cpu": "2"}
    assert (pod.namespace, pod.spec.scheduler_name) == ("default", "default-scheduler")
    assert pod.uid


def test_priority_follows_from_its_class() -> None:
    pod = asked({"priorityClassName": "high"}).pod

    assert (pod.spec.priority, pod.spec.preemption_policy) == (1000, "Never")


def test_priority_follows_from_the_default_class() -> None:
    classes = {"usual": PriorityClass(5, is_default=True), "more": PriorityClass(9, is_default=True)}

    assert asked(priorities=classes).pod.spec.priority == 5


def test_a_class_nobody_knows_is_said() -> None:
    told = asked({"priorityClassName": "low"})

    assert not told.pod.spec.priority
    assert told.notes == ("no PriorityClass 'low' is in the cluster files; the pod counts as priority 0",)


def test_a_priority_that_was_admitted_stays() -> None:
    assert asked({"priority": 7, "priorityClassName": "high"}).pod.spec.priority == 7


def term(pod: Any) -> Any:
    return pod.spec.affinity.pod_affinity.required[0].label_selector


def test_label_keys_become_requirements_once() -> None:
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["rev"]}
            ]
        }
    }

    fresh = asked({"affinity": affinity}, labels={"rev": "2"}).pod
    stored = asked({"affinity": affinity}, labels={"rev": "2"}, uid="u").pod

    assert len(term(fresh).match_expressions) == 1
    assert not term(stored).match_expressions  # the API server has done that


def test_a_pod_that_is_placed_is_asked_about_as_if_it_were_not() -> None:
    told = asked({"nodeName": "n1"})

    assert told.pod.spec.node_name == ""
    assert told.notes == ("the pod is on n1; it is asked where it would go if it were not",)


def test_unknown_fields_are_said() -> None:
    assert asked({"nodeSelektor": {}}).notes == ('unknown field "spec.nodeSelektor" in the pod',)


def test_yaml_is_as_good() -> None:
    text = yaml.safe_dump({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"hostNetwork": True}})

    assert read_pod(text.encode(), "pod.yaml", {}).pod.name == "a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "pod: is empty"),
        ("kind: Pod\n---\nkind: Pod\n", "pod: holds 2 objects; give the one pod to ask about"),
        ("kind: Node\nmetadata: {name: n}\n", "pod: is a Node, not a Pod$"),
        ("metadata: {name: n}\n", "pod: is a thing without a kind, not a Pod"),
        ("kind: Deployment\nspec: {template: {}}\n", "not a Pod; write a Pod with the metadata and the spec of its"),
        ("kind: Pod\nspec: {}\n", "pod: the pod has no name; give it metadata.name"),
        ("kind: Pod\nmetadata: {name: [a]}\n", "pod: .*metadata.name"),
        ("kind: Pod\nmetadata: {name: a}\nspec: {containers: 3}\n", "pod: .*spec.containers"),
        ("kind: Pod\nmetadata: {name: a}\nspec: 3\n", "pod: .*spec"),
        ("kind: Pod\nmetadata: 3\nspec: {}\n", "pod: .*metadata"),
        ("kind: Pod\nmetadata: {name: a}\nspec: {priority: high}\n", "pod: .*priority"),
        ("kind: Pod\nmetadata: {name: a}\nspec: {overhead: {cpu: much}}\n", "pod: .*quantities must match"),
        ("kind: Pod\nmetadata: {name: a}\nspec: {priorityClassName: [x]}\n", "pod: "),
    ],
)
def test_what_is_no_pod_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        read_pod(text.encode(), "pod", {})
