"""The four plugins that people know, each by what its page promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kubesched.api.objects import read
from kubesched.api.time import seconds
from kubesched.assemble import profiles_of
from kubesched.config.load import load_text
from kubesched.config.registry import Registry
from kubesched.framework.features import Features
from kubesched.framework.records import State
from kubesched.plugins.contrib import CONTRIB
from kubesched.plugins.contrib.node_crd_resource_fit import ClusterScopedResource
from kubesched.plugins.contrib.qos_sort import qos_class
from kubesched.plugins.contrib.score_by_label import points
from kubesched.sim.simulation import Simulation
from kubesched.testing.builders import node, pod
from kubesched.testing.harness import scheduler, tick

GIB = 1 << 30


def made(name: str, args: dict[str, Any] | None = None) -> Any:
    return Registry().make(name, args, Features())


def simulated(*plugins: Any, nodes: int = 2, labels: dict[int, dict[str, str]] | None = None) -> Simulation:
    core = scheduler(plugins=plugins)
    simulation = Simulation(core)
    for number in range(nodes):
        meta = {"name": f"node{number}", "labels": (labels or {}).get(number, {})}
        room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        simulation.client.create({"kind": "Node", "metadata": meta, "status": {"allocatable": room}})
    return simulation


def create(simulation: Simulation, name: str, **requests: str) -> None:
    containers = [{"name": "c", "resources": {"requests": requests}}]
    simulation.client.create({"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}})


def node_of(simulation: Simulation, name: str) -> str | None:
    found: str | None = simulation.client.get("Pod", name)["spec"].get("nodeName")
    return found


@pytest.mark.parametrize("name", CONTRIB)
def test_each_can_be_named_in_a_configuration(name: str) -> None:
    point, only = ("queueSort", "disabled: [{name: '*'}], ") if name == "QOSSort" else ("multiPoint", "")
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{{plugins: {{{point}: {{{only}enabled: [{{name: {name}}}]}}}}}}]
"""
    registry, features = Registry(), Features()
    loaded = load_text(text.encode(), "test", features=features, registry=registry)
    [profile] = profiles_of(loaded.configuration, features=features, registry=registry).values()
    assert name in [type(plugin).__name__ for plugin in profile.plugins]


# ── NodeNumber ───────────────────────────────────────────────────────────────────────────────────────────────


def test_node_number_prefers_the_same_digit_and_binds_after_as_many_seconds() -> None:
    simulation = simulated(made("NodeNumber"), nodes=10)
    create(simulation, "pod1")
    create(simulation, "pod3")
    simulation.run(until=seconds(20))

    assert [node_of(simulation, name) for name in ("pod1", "pod3")] == ["node1", "node3"]
    start = simulation.world.start
    bound = {r.pod: r.at - start for pod_ in ("pod1", "pod3") for r in simulation.core.story(f"default/{pod_}")}
    assert bound["default/pod1"] // 10**9 == 1
    assert bound["default/pod3"] // 10**9 == 3


def test_node_number_is_indifferent_to_a_pod_without_a_digit_and_never_waits_for_a_node_without() -> None:
    core = scheduler(node("plain", cpu=4), pod("web", cpu=1), plugins=[made("NodeNumber")])
    tick(core)
    assert core.state("default/web") is State.BINDING


# ── SampleFilter and QOSSort ─────────────────────────────────────────────────────────────────────────────────


def test_sample_filter_names_every_node_and_a_label_wakes_the_pod_at_once() -> None:
    simulation = simulated(made("SampleFilter"))
    create(simulation, "web")
    simulation.run(until=seconds(30))

    decision = simulation.core.why("default/web")
    assert decision is not None
    assert decision.message == "0/2 nodes are available: 1 Node: node0, 1 Node: node1."
    assert node_of(simulation, "web") is None

    labelled = {"metadata": {"labels": {"cpu": "true"}}}
    simulation.at(seconds(31), lambda: simulation.client.patch("Node", "node1", labelled))
    simulation.run(until=seconds(32))
    assert node_of(simulation, "web") == "node1"
    again = simulation.core.why("default/web")
    assert again is not None
    assert (again.evaluated, len(again.feasible)) == (2, 1)


def with_resources(*parts: tuple[dict[str, str], dict[str, str]], whole: Any = None) -> Any:
    containers = [
        {"name": f"c{at}", "resources": {"requests": requests, "limits": limits}}
        for at, (requests, limits) in enumerate(parts)
    ]
    pod_ = pod("x").__class__
    return read({"metadata": {"name": "x"}, "spec": {"containers": containers, "resources": whole}}, pod_)


FULL = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([({}, {})], "BestEffort"),
        ([(FULL, FULL)], "Guaranteed"),
        ([({}, FULL)], "Guaranteed"),
        ([(FULL, {"cpu": "1000m", "memory": "1024Mi"})], "Guaranteed"),
        ([(FULL, {})], "Burstable"),
        ([({"cpu": "1"}, {"cpu": "1"})], "Burstable"),
        ([(FULL, FULL), ({}, {})], "Burstable"),
        ([({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"})], "Burstable"),
        ([({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"})], "BestEffort"),
        ([({"cpu": "0"}, {})], "BestEffort"),
    ],
)
def test_quality_of_service_is_kubernetes_own(parts: list[Any], expected: str) -> None:
    assert qos_class(with_resources(*parts)) == expected


def test_what_the_pod_as_a_whole_asks_for_counts_instead() -> None:
    assert qos_class(with_resources(({}, {}), whole={"requests": FULL, "limits": FULL})) == "Guaranteed"


def test_qos_sort_orders_by_priority_then_firmness_then_age() -> None:
    core = scheduler(plugins=[made("QOSSort"), made("SampleFilter")])
    simulation = Simulation(core)
    firm = {"requests": FULL, "limits": FULL}
    asked: dict[str, tuple[int, dict[str, Any]]] = {
        "late-effort": (0, {}),
        "burst": (0, {"requests": {"cpu": "1"}}),
        "firm": (0, firm),
        "effort": (0, {}),
        "urgent": (9, {}),
    }
    for name, (priority, resources) in asked.items():
        spec = {"priority": priority, "containers": [{"name": "c", "resources": resources}]}
        simulation.client.create({"kind": "Pod", "metadata": {"name": name}, "spec": spec})
    tried: list[str] = []
    simulation.listen(lambda moment: tried.extend(decision.pod for decision in moment.decisions))
    simulation.run(until=seconds(0.5))

    assert tried == [f"default/{name}" for name in ("urgent", "firm", "burst", "late-effort", "effort")]


# ── ScoreByLabel ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "score"),
    [("10", 10), ("0", 0), (None, 0), ("-3", 0), ("ten", 0), ("1.5", 0), ("²", 0), ("", 0), (str(2**64), 0), ("+3", 0)],
)
def test_a_label_counts_what_it_says_or_nothing(value: str | None, score: int) -> None:
    assert points(value) == score


@pytest.mark.parametrize(
    ("raw", "final"),
    [([10, 5, 1], [100, 50, 10]), ([0, 0], [0, 0]), ([3, 2], [100, 66]), ([2**63 - 1, 2**62], [100, 50])],
)
def test_the_best_node_has_a_hundred(raw: list[int], final: list[int]) -> None:
    plugin = made("ScoreByLabel")
    plugin.tools.attach(scheduler(plugins=[plugin]))
    core = scheduler(node("n", cpu=1), pod("p"), plugins=[plugin])
    core.verbosity = 0
    assert plugin.normalize_score(None, None, np.array(raw, np.int64)).tolist() == final


def test_score_by_label_prefers_the_highest_label_and_says_so_in_detail() -> None:
    labels = {0: {"score-by-label": "1"}, 1: {"score-by-label": "10"}, 2: {"score-by-label": "5"}}
    simulation = simulated(made("ScoreByLabel"), nodes=3, labels=labels)
    simulation.core.verbosity = 6
    said: list[str] = []
    simulation.listen(lambda moment: said.extend(note.text for note in moment.notes))
    create(simulation, "web", cpu="200m", memory="50Mi")
    simulation.run(until=seconds(1))

    assert node_of(simulation, "web") == "node1"
    assert "Label score for node node1 is score-by-label = 10" in said
    assert "Final score for node node2 is 50" in said


def test_nobody_pays_for_remarks_that_nobody_reads() -> None:
    simulation = simulated(made("ScoreByLabel"))
    said: list[Any] = []
    simulation.listen(lambda moment: said.extend(moment.notes))
    create(simulation, "web")
    simulation.run(until=seconds(1))
    assert said == []


# ── NodeCRDResourceFit ───────────────────────────────────────────────────────────────────────────────────────


def offer(name: str, enables: dict[str, bool], scores: dict[str, int] | None = None) -> dict[str, Any]:
    spec = {"resourcesFilter": enables, "resourcesScore": scores or {}}
    return {"kind": "ClusterScopedResource", "metadata": {"name": name}, "spec": spec}


BOTH = {"cpu": True, "memory": True}


def test_six_nodes_of_which_two_have_objects() -> None:
    simulation = simulated(made("NodeCRDResourceFit"), nodes=6)
    missed: list[str] = []
    simulation.listen(
        lambda moment: missed.extend(dict(note.values)["node"] for note in moment.notes if "not found" in note.text)
    )
    simulation.client.create(offer("node1", BOTH, {"cpu": 20, "memory": 40}))
    simulation.client.create(offer("node4", BOTH, {"cpu": 90, "memory": 40}))
    create(simulation, "web", cpu="1", memory="1Gi")
    simulation.run(until=seconds(1))

    decision = simulation.core.why("default/web")
    assert decision is not None
    assert (decision.evaluated, len(decision.feasible), decision.node) == (6, 2, "node4")
    assert sorted(missed) == ["node0", "node2", "node3", "node5"]


@pytest.mark.parametrize(
    ("scores", "requests", "expected"),
    [
        ({"cpu": 20, "memory": 41}, {"cpu": "1", "memory": "1Gi"}, 31),
        ({"cpu": 20}, {"cpu": "1", "memory": "1Gi"}, 10),
        ({"cpu": -20, "memory": 30}, {"cpu": "1", "memory": "1Gi"}, 15),
        ({"cpu": 1000}, {"cpu": "1"}, 100),
        ({"cpu": 1000}, {}, 0),
    ],
)
def test_the_score_is_the_mean_over_what_is_requested(
    scores: dict[str, int], requests: dict[str, str], expected: int
) -> None:
    simulation = simulated(made("NodeCRDResourceFit"), nodes=2)  # of one node alone nobody asks for a score
    for number in range(2):
        simulation.client.create(offer(f"node{number}", BOTH, scores))
    create(simulation, "web", **requests)
    simulation.run(until=seconds(1))
    decision = simulation.core.why("default/web")
    assert decision is not None
    assert decision.scores["NodeCRDResourceFit"].tolist() == [expected, expected]


def test_a_change_to_a_custom_resource_wakes_the_pods_it_can_help_and_no_other() -> None:
    simulation = simulated(made("NodeCRDResourceFit"), nodes=1)
    simulation.client.create(offer("node0", {"cpu": True}))
    create(simulation, "thrifty", memory="1Gi")
    create(simulation, "greedy", **{"memory": "1Gi", "example.com/gpu": "1"})
    simulation.run(until=seconds(5))

    decision = simulation.core.why("default/greedy")
    assert decision is not None
    assert decision.message == (
        "0/1 nodes are available: 1 Node does not enable resource example.com/gpu, "
        "1 Node does not enable resource memory."
    )
    tries: list[str] = []
    simulation.listen(lambda moment: tries.extend(made.pod for made in moment.decisions))
    enabled = {"spec": {"resourcesFilter": {"memory": True}}}
    simulation.at(seconds(40), lambda: simulation.client.patch("ClusterScopedResource", "node0", enabled))
    simulation.run(until=seconds(41))
    assert tries == ["default/thrifty"]
    assert node_of(simulation, "thrifty") == "node0"


def test_the_kind_is_watched_because_the_plugin_says_it_reads_it() -> None:
    core = scheduler(plugins=[made("NodeCRDResourceFit")])
    assert core.kinds["ClusterScopedResource"].view is ClusterScopedResource
    assert "ClusterScopedResource" not in scheduler(plugins=[made("SampleFilter")]).kinds
