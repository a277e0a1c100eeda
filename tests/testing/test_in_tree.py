"""Every in-tree plugin keeps the contract, with and without arguments, and had occasion to break it."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.config.registry import Registry
from kubesched.framework.features import Features
from kubesched.plugins import IN_TREE
from kubesched.plugins.node_resources_fit import NodeResourcesFit
from kubesched.testing import conformance
from kubesched.testing.kit.dice import seeded
from kubesched.testing.kit.generator import Plan, situation

RESOURCES = ("cpu", "memory", "example.com/gpu", "ephemeral-storage")
ZONE = "topology.kubernetes.io/zone"
IN_ZA = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["za"]}]}


def fit(kind: str, **more: Any) -> dict[str, Any]:
    weighted = [{"name": name, "weight": weight} for weight, name in enumerate(RESOURCES, 1)]
    return {"scoringStrategy": {"type": kind, "resources": weighted, **more}}


SHAPE = [{"utilization": 0, "score": 9}, {"utilization": 40, "score": 0}, {"utilization": 90, "score": 7}]
HARD = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "NodeAffinity, added": (
        "NodeAffinity",
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [IN_ZA]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": IN_ZA}],
            }
        },
    ),
    "NodeResourcesFit, most": ("NodeResourcesFit", fit("MostAllocated")),
    "NodeResourcesFit, shape": (
        "NodeResourcesFit",
        fit("RequestedToCapacityRatio", requestedToCapacityRatio={"shape": SHAPE}),
    ),
    "NodeResourcesFit, ignoring": ("NodeResourcesFit", {"ignoredResourceGroups": ["example.com"]}),
    "NodeResourcesBalancedAllocation, all": (
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": name, "weight": 1} for name in RESOURCES]},
    ),
    "InterPodAffinity, heavy": ("InterPodAffinity", {"hardPodAffinityWeight": 100}),
    "InterPodAffinity, ignoring": ("InterPodAffinity", {"ignorePreferredTermsOfExistingPods": True}),
    "PodTopologySpread, list": ("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [HARD]}),
}

HOW: dict[str, dict[str, Any]] = {
    "DefaultPreemption": {"beside": (NodeResourcesFit,), "about": ("priority",)},
    "DynamicResources": {"about": ("resources", "claims")},
    **{name: {"about": ("storage",)} for name in IN_TREE if "Volume" in name},
}

# What each must have had occasion to do; a clean report of a plugin that never turned anybody down says little.
OCCASIONS: dict[str, tuple[str, ...]] = {
    "filter": ("turned down", "let through", "told apart"),
    "events_to_register": ("fits at last",),
    "score": ("scored above 0", "told apart"),
    "board": ("decided by a board",),
    "spare": ("spared",),
    "reserve": ("reserved",),
    "key": ("sorted",),
    "sign_pod": ("signed alike",),
}
NEVER = {
    ("DefaultPreemption", "fits at last"),  # it wakes nobody itself
    ("DynamicResources", "scored above 0"),  # there are no devices yet
    ("DynamicResources", "told apart"),
    ("NodeName", "fits at last"),  # a pod that names its node is not queued
    ("VolumeBinding", "scored above 0"),  # it scores with a feature gate alone
}


def plugin_of(name: str) -> Any:
    return Registry().get(name)


@pytest.mark.parametrize("name", [*IN_TREE, *VARIANTS])
def test_it_keeps_the_contract(name: str) -> None:
    base, args = VARIANTS.get(name, (name, None))
    cls = plugin_of(base)
    report = conformance(cls, args=args, **{"situations": 100, **HOW.get(base, {})})
    for hook, occasions in OCCASIONS.items():
        if hasattr(cls, hook):
            missed = [what for what in occasions if not report.seen.get(what) and (base, what) not in NEVER]
            assert not missed, str(report)


def test_volumes_are_bound_scored_and_taken_back_with_capacity_scoring() -> None:
    features = Features(storage_capacity_scoring=True)
    report = conformance(plugin_of("VolumeBinding"), features=features, about=("storage",))
    assert report.seen["reserved"] > 10
    assert report.seen["scored above 0"] > 0


def test_preemption_finds_room_often_enough_to_be_looked_at() -> None:
    report = conformance(plugin_of("DefaultPreemption"), only=("room",), **HOW["DefaultPreemption"])
    assert report.seen["made room"] > 4, str(report)


@pytest.mark.parametrize("seed", range(3))
def test_situations_are_the_same_for_the_same_seed(seed: int) -> None:
    plan = Plan({"taints": 1, "affinity": 1, "storage": 1})
    assert situation(seeded(seed, 1), plan) == situation(seeded(seed, 1), plan)
    assert situation(seeded(seed, 1), plan) != situation(seeded(seed, 2), plan)
