"""What the Hypothesis strategies draw is about what was asked for, varies, and is made small again."""

from __future__ import annotations

import pytest
from hypothesis import find, given, settings

from kubesched.api.objects import Node, Pod
from kubesched.testing.kit.themes import NAMES
from kubesched.testing.strategies import THEMES, Drawn, clusters, nodes, pods

FEW = settings(max_examples=30, derandomize=True, deadline=None, database=None)


@FEW
@given(nodes(about=("taints",)), pods(about=("taints",)))
def test_themes_say_what_varies(node: Node, pod: Pod) -> None:
    assert node.name in NAMES
    assert set(node.status.allocatable) == {"cpu", "memory", "pods"}
    assert not node.status.images
    assert not pod.spec.affinity
    assert not pod.spec.node_name


@FEW
@given(nodes("n9", about=("words",), labels={"acme.example/floor": ("7", "8")}), pods("db", on="n9"))
def test_names_places_and_labels_can_be_given(node: Node, pod: Pod) -> None:
    assert (node.name, pod.name, pod.spec.node_name) == ("n9", "db", "n9")
    assert node.labels.get("acme.example/floor") in (None, "7", "8")


@FEW
@given(clusters())
def test_a_cluster_has_nodes_and_those_who_want_in(drawn: Drawn) -> None:
    names = {obj.name for obj in drawn.objects if isinstance(obj, Node)}
    assert 1 <= len(names) <= 3
    assert {pod.spec.node_name for pod in drawn.objects if isinstance(pod, Pod)} <= names
    assert not any(pod.spec.node_name for pod in (drawn.pod, *drawn.others))


@pytest.mark.parametrize("theme", THEMES)
def test_every_theme_can_be_drawn_alone(theme: str) -> None:
    @FEW
    @given(clusters(about=(theme,), labels={"floor": ("7",)}))
    def drawn(cluster: Drawn) -> None:
        assert cluster.pod.name

    drawn()


def test_what_is_found_is_made_small() -> None:
    found = find(nodes(about=("taints",)), lambda node: bool(node.spec.taints), settings=FEW)
    assert found.name == NAMES[0]
    assert [(taint.key, taint.value, taint.effect) for taint in found.spec.taints] == [("gpu", "", "NoSchedule")]


def test_a_theme_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="there is no theme 'ponies'"):
        find(nodes(about=("ponies",)), lambda node: True, settings=FEW)
