"""The table as its readers see it: columns, rows as objects, the order of trying, and pods worked out once."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.cluster.columns import Nodes
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.order import zone_key
from kubesched.cluster.podinfo import HostPort
from kubesched.cluster.vocab import ABSENT, Vocab
from kubesched.testing import changed, node, pod


def mirror_of(*objects) -> Mirror:
    mirror = Mirror()
    for obj in objects:
        mirror.observe(obj)
    return mirror


def nodes_of(*objects) -> Nodes:
    table = mirror_of(*objects).table
    return Nodes(table, table.rows)


# ── the order of trying ──────────────────────────────────────────────────────────────────────────────────────


def test_zones_take_turns():
    nodes = nodes_of(
        node("a1", zone="a"), node("a2", zone="a"), node("a3", zone="a"), node("b1", zone="b"), node("c1", zone="c")
    )

    assert nodes.names == ["a1", "b1", "c1", "a2", "a3"]


def test_a_node_that_changes_its_zone_moves_at_the_next_coming_or_going():
    mirror = mirror_of(node("n1", zone="a"), node("n2", zone="a"), node("n3", zone="b"))

    def names() -> list[str]:
        return Nodes(mirror.table, mirror.table.rows).names

    assert names() == ["n1", "n3", "n2"]
    mirror.observe(node("n1", zone="b"))
    assert names() == ["n1", "n3", "n2"]
    mirror.observe(node("n4", zone="b"))
    assert names() == ["n2", "n3", "n1", "n4"]


def test_a_zone_that_was_empty_comes_last():
    mirror = mirror_of(node("a1", zone="a"), node("b1", zone="b"))
    mirror.observe(node("a1", zone="a"), gone=True)
    mirror.observe(node("a2", zone="a"))

    assert Nodes(mirror.table, mirror.table.rows).names == ["b1", "a2"]


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({}, ""),
        ({"topology.kubernetes.io/zone": "z"}, ":\0:z"),
        ({"topology.kubernetes.io/region": "r"}, "r:\0:"),
        ({"topology.kubernetes.io/zone": "new", "failure-domain.beta.kubernetes.io/zone": "old"}, ":\0:old"),
        ({"failure-domain.beta.kubernetes.io/zone": "", "topology.kubernetes.io/zone": "new"}, ""),
    ],
)
def test_the_zone_of_a_node(labels, key):
    assert zone_key(labels) == key


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_more_nodes_and_resources_than_there_was_room_for():
    many = [node(f"n{i}", cpu=i, resources={f"example.com/r{i % 20}": i}) for i in range(200)]
    mirror = mirror_of(*many, pod("a", cpu=1, on="n199"))
    nodes = Nodes(mirror.table, mirror.table.rows)

    assert nodes.allocatable[:, 0].tolist() == [1000 * i for i in range(200)]
    assert nodes[137].allocatable("example.com/r17") == 137
    assert nodes.requested[199, 0] == 1000
    assert nodes.pod_count.sum() == 1


def test_a_row_given_away_again_keeps_nothing_of_its_former_node():
    mirror = mirror_of(
        node("n1", cpu=4, labels={"rack": "1"}, taints=["k:NoSchedule"], images={"web:1": 7}, unschedulable=True),
    )
    mirror.table.label("rack")
    mirror.observe(node("n1"), gone=True)
    mirror.observe(node("n2", cpu=2))
    [info] = Nodes(mirror.table, mirror.table.rows)

    assert (info.name, info.allocatable("cpu"), info.taints, info.unschedulable) == ("n2", 2000, (), False)
    assert Nodes(mirror.table, mirror.table.rows).label("rack").tolist() == [ABSENT]
    assert mirror.table.images == {}


def test_a_resource_a_node_no_longer_has_is_gone():
    mirror = mirror_of(node("n1", resources={"example.com/gpu": 2}))
    mirror.observe(node("n1"))

    assert Nodes(mirror.table, mirror.table.rows)[0].allocatable("example.com/gpu") == 0


def test_names_that_were_handed_out_stay_as_they_were():
    mirror = mirror_of(node("n1"))
    names = mirror.table.share_names()
    mirror.observe(node("n1"), gone=True)
    mirror.observe(node("n2"))

    assert names == ["n1"]


def test_asking_about_labels_once_per_value():
    nodes = nodes_of(
        node("n1", labels={"k": "x"}), node("n2", labels={"k": "y"}), node("n3"), node("n4", labels={"k": "x"})
    )
    asked = []

    def is_x(value: str) -> bool:
        asked.append(value)
        return value == "x"

    assert nodes.by_label("k", is_x).tolist() == [True, False, False, True]
    assert nodes.by_label("k", is_x, absent=True).tolist() == [True, False, True, True]
    assert sorted(asked) == ["x", "x", "y", "y"]


def test_asking_about_taints_once_per_set():
    nodes = nodes_of(
        node("n1"), node("n2", taints=["k:NoSchedule"]), node("n3", taints=["k:NoSchedule", "l:NoExecute"])
    )

    assert nodes.by_taints(len).tolist() == [0, 1, 2]


def test_counts_by_row_are_spread_over_a_selection():
    nodes = nodes_of(node("n1"), node("n2"), node("n3"))
    backwards = Nodes(nodes.table, nodes.rows[::-1])

    assert backwards.by_row({nodes[0].row: 5}).tolist() == [0, 0, 5]
    assert backwards.by_row({}).tolist() == [0, 0, 0]


def test_a_selection_keeps_its_order():
    nodes = nodes_of(*(node(f"n{i}") for i in range(4)))

    assert nodes.where(np.array([True, False, False, True])).names == ["n0", "n3"]
    assert [info.name for info in nodes] == nodes.names
    assert nodes.named("n2") is not None
    assert nodes.named("n9") is None


def test_a_vocabulary_numbers_what_it_meets():
    vocab: Vocab[str] = Vocab("a")

    assert [vocab.add(value) for value in ("b", "a", "b", "c")] == [1, 0, 1, 2]
    assert vocab.find("z") == ABSENT
    assert list(vocab) == ["a", "b", "c"]
    assert "b" in vocab
    assert len(vocab) == 3


# ── pods worked out ──────────────────────────────────────────────────────────────────────────────────────────


def info_of(obj):
    [delta] = Mirror().observe(obj)
    assert delta.info is not None
    return delta.info


def test_host_ports_name_their_address_and_protocol():
    wanted = [80, {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}, {"containerPort": 8080}]

    assert info_of(pod("a", ports=wanted)).host_ports == (
        HostPort("0.0.0.0", "TCP", 80),
        HostPort("10.0.0.1", "UDP", 53),
    )


def test_an_affinity_term_without_namespaces_means_the_pods_own():
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    [parsed] = info_of(pod("a", namespace="team", affinity=affinity)).required_affinity

    assert parsed.matches("team", {"app": "x"}, None)
    assert not parsed.matches("other", {"app": "x"}, None)
    assert not parsed.matches("team", {"app": "y"}, None)


def test_a_broken_affinity_term_is_named_and_the_pod_is_still_a_pod():
    broken = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "k", "operator": "Near"}]}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [broken]}}
    info = info_of(pod("a", affinity=affinity))

    assert info.required_anti_affinity == ()
    [error] = info.errors
    assert error.startswith("requiredAntiAffinityTerms: ")
    assert "Near" in error


def test_the_amounts_of_a_pod_follow_a_resize_under_way():
    resized = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    info = info_of(changed(pod("a", cpu=1, on="n1"), status=resized))

    assert info.requests["cpu"] == 1000
    assert info.usage["cpu"] == 3000
