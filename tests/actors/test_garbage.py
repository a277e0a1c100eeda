"""What belongs to something that is gone goes too; and namespaces take along all that is in them."""

from __future__ import annotations

import pytest
from tests.actors.conftest import Json, Stage, chosen, template

from kubesched.apiserver.status import ApiError


def config(stage: Stage, name: str, *owners: Json, blocks: bool = False) -> Json:
    refs = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        }
        for owner in owners
    ]
    return stage.create("ConfigMap", name, metadata={"ownerReferences": refs})


def test_dependents_of_dependents_go(stage: Stage) -> None:
    a = config(stage, "a")
    b = config(stage, "b", a)
    config(stage, "c", b)
    stage.settle()
    stage.delete("ConfigMap", "a")
    stage.settle()
    assert stage.names("ConfigMap") == []


def test_one_owner_that_is_left_keeps_it(stage: Stage) -> None:
    a, b = config(stage, "a"), config(stage, "b")
    config(stage, "c", a, b)
    stage.settle()
    stage.delete("ConfigMap", "a")
    stage.settle()
    [ref] = stage.get("ConfigMap", "c")["metadata"]["ownerReferences"]
    assert ref["name"] == "b"


def test_an_owner_that_never_was_is_as_good_as_gone(stage: Stage) -> None:
    config(stage, "c", {"metadata": {"name": "a", "uid": "nobody"}})
    stage.settle()
    assert stage.names("ConfigMap") == []


def test_a_namesake_is_no_owner(stage: Stage) -> None:
    a = config(stage, "a")
    stage.settle()
    stage.delete("ConfigMap", "a")
    config(stage, "a")
    config(stage, "c", a)
    stage.settle()
    assert stage.names("ConfigMap") == ["a"]


def test_in_the_foreground_the_owner_waits(stage: Stage) -> None:
    stage.node()
    notes = {**template(), "metadata": {"labels": {"app": "web"}, "annotations": {"kubesched/stop-after": "10s"}}}
    spec = {"replicas": 1, "selector": chosen(), "template": notes}
    stage.create("ReplicaSet", "web", api="apps/v1", spec=spec)
    stage.bind()
    stage.delete("ReplicaSet", "web", propagation="Foreground")
    stage.wait(5)
    assert stage.find("ReplicaSet", "web") is not None
    stage.wait(10)
    assert stage.find("ReplicaSet", "web") is None
    assert stage.pods() == []


def test_orphans_are_set_free(stage: Stage) -> None:
    stage.create("ReplicaSet", "web", api="apps/v1", spec={
        "replicas": 2, "selector": chosen(), "template": template()
    })
    stage.settle()
    stage.delete("ReplicaSet", "web", propagation="Orphan")
    stage.settle()
    assert stage.find("ReplicaSet", "web") is None
    assert len(stage.pods()) == 2
    assert not any(pod["metadata"].get("ownerReferences") for pod in stage.pods())


def test_a_namespace_goes_when_it_is_empty(stage: Stage) -> None:
    stage.node()
    stage.create("Namespace", "team")
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "a:1"}]}
    notes = {"kubesched/stop-after": "10s"}
    stage.create("Pod", "web", metadata={"namespace": "team", "annotations": notes}, spec=spec)
    stage.create("ConfigMap", "a", metadata={"namespace": "team"})
    stage.wait(1)
    stage.delete("Namespace", "team")
    stage.wait(5)
    assert stage.api.get("Namespace", "", "team")["status"]["phase"] == "Terminating"
    assert stage.names("ConfigMap") == []
    with pytest.raises(ApiError, match="being terminated"):
        stage.create("ConfigMap", "b", metadata={"namespace": "team"})
    stage.wait(6)
    assert "team" not in stage.names("Namespace")
    assert stage.pods() == []


def test_a_kind_that_was_defined_while_it_ran_is_collected_too(stage: Stage) -> None:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "versions": [version], "names": names}
    stage.create("CustomResourceDefinition", "widgets.example.com", api="apiextensions.k8s.io/v1", spec=spec)
    stage.settle()
    owner = config(stage, "a")
    ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner["metadata"]["uid"]}
    stage.create("Widget", "w", api="example.com/v1", metadata={"ownerReferences": [ref]})
    stage.settle()
    stage.delete("ConfigMap", "a")
    stage.settle()
    assert stage.api.list("Widget") == []
