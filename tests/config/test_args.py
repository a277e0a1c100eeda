"""The arguments of the in-tree plugins: their defaults, their types, and kube-scheduler's rules for them."""

from typing import Any

import msgspec
import pytest

from kubesched.assemble import profiles_of
from kubesched.config.load import load
from kubesched.config.registry import Registry, args_type
from kubesched.framework.errors import ConfigError
from kubesched.framework.features import Features
from kubesched.plugins import IN_TREE

CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


def plugin(name: str, args: dict[str, Any] | None, **settings: Any) -> Any:
    """The plugin a profile makes of these arguments."""
    raw: dict[str, Any] = {"profiles": [{"pluginConfig": [{"name": name, "args": args}]}]}
    [profile] = profiles_of(load(raw, **settings), **settings).values()
    return next(one for one in profile.plugins if type(one).__name__ == name)


def faults(name: str, args: Any, **settings: Any) -> list[str]:
    """What is wrong with some arguments, below `args`."""
    with pytest.raises(ConfigError) as caught:
        load({"profiles": [{"pluginConfig": [{"name": name, "args": args}]}]}, **settings)
    prefix = "profiles[0].pluginConfig[0].args"
    lines = [str(fault) for fault in caught.value.faults]
    assert all(line.startswith(prefix) for line in lines), lines
    return [line.removeprefix(prefix).removeprefix(".") for line in lines]


# ── defaults ─────────────────────────────────────────────────────────────────────────────────────────────────

STRATEGY = {"type": "LeastAllocated", "resources": CPU_AND_MEMORY, "requestedToCapacityRatio": None}


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("DefaultPreemption", {}, {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 50},
            {"minCandidateNodesPercentage": 50, "minCandidateNodesAbsolute": 100},
        ),
        ("InterPodAffinity", {}, {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False}),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
            {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
        ),
        ("NodeAffinity", {}, {"addedAffinity": None}),
        (
            "NodeResourcesFit",
            {},
            {"ignoredResources": [], "ignoredResourceGroups": [], "scoringStrategy": STRATEGY},
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated"}},
            {
                "ignoredResources": [],
                "ignoredResourceGroups": [],
                "scoringStrategy": {**STRATEGY, "type": "MostAllocated"},
            },
        ),
        (
            "NodeResourcesFit",
            {"ignoredResources": ["e.com/a"], "scoringStrategy": {"resources": [{"name": "e.com/a"}]}},
            {
                "ignoredResources": ["e.com/a"],
                "ignoredResourceGroups": [],
                "scoringStrategy": {**STRATEGY, "resources": [{"name": "e.com/a", "weight": 1}]},
            },
        ),
        ("NodeResourcesBalancedAllocation", {}, {"resources": CPU_AND_MEMORY}),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "e.com/a"}]},
            {"resources": [{"name": "e.com/a", "weight": 1}]},
        ),
        ("PodTopologySpread", {}, {"defaultConstraints": [], "defaultingType": "System"}),
        ("PodTopologySpread", {"defaultingType": "List"}, {"defaultConstraints": [], "defaultingType": "List"}),
        ("VolumeBinding", {}, {"bindTimeoutSeconds": 600, "shape": None}),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}, {"bindTimeoutSeconds": 0, "shape": None}),
        ("DynamicResources", {}, {"filterTimeout": "10s", "bindingTimeout": "10m0s"}),
        ("DynamicResources", {"filterTimeout": "0s"}, {"filterTimeout": "0s", "bindingTimeout": "10m0s"}),
    ],
)
def test_what_arguments_leave_out_has_a_default(name: str, args: dict[str, Any], said: dict[str, Any]) -> None:
    assert everything(plugin(name, args).args) == said


def everything(args: Any) -> Any:
    """All fields of some arguments, those with their default too."""
    return msgspec.json.decode(msgspec.json.encode(args))


@pytest.mark.parametrize("name", IN_TREE)
def test_no_arguments_are_empty_arguments(name: str) -> None:
    made = Registry().make(name, None, Features())

    if args_type(type(made)) is not None:
        assert made.args == Registry().make(name, {}, Features()).args


@pytest.mark.parametrize(
    "named", [{}, {"kind": "InterPodAffinityArgs"}, {"apiVersion": "kubescheduler.config.k8s.io/v1"}]
)
def test_arguments_may_say_whose_they_are(named: dict[str, str]) -> None:
    assert plugin("InterPodAffinity", {**named, "hardPodAffinityWeight": 5}).args.hard_pod_affinity_weight == 5


# ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────

SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"


def fit(**strategy: Any) -> dict[str, Any]:
    return {"scoringStrategy": strategy}


def ratio(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return fit(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})


def spread(**constraint: Any) -> dict[str, Any]:
    given = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **constraint}
    return {"defaultingType": "List", "defaultConstraints": [given]}


@pytest.mark.parametrize(
    ("name", "args", "lines"),
    [
        # of every plugin
        ("InterPodAffinity", {"fooBar": 1}, ['fooBar: unknown field "fooBar"']),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeigth": 1},
            ['hardPodAffinityWeigth: unknown field "hardPodAffinityWeigth" (did you mean "hardPodAffinityWeight"?)'],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": "1"},
            ['hardPodAffinityWeight: must be an integer, not the string "1"'],
        ),
        (
            "InterPodAffinity",
            {"kind": "NodeAffinityArgs"},
            [': Invalid value: "NodeAffinityArgs": has to match plugin args (write InterPodAffinityArgs)'],
        ),
        (
            "InterPodAffinity",
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3", "kind": "InterPodAffinityArgs"},
            [
                (
                    'apiVersion: no kind "InterPodAffinityArgs" is registered for version '
                    '"kubescheduler.config.k8s.io/v1beta3" (write kubescheduler.config.k8s.io/v1)'
                )
            ],
        ),
        ("NodeName", {"a": 1}, [': plugin "NodeName" takes no args (take them out)']),
        # DefaultPreemption
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": -1},
            ["minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]"],
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101},
            ["minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": -1},
            ["minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"],
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [
                (
                    "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
                    "minCandidateNodesAbsolute"
                ),
                (
                    "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as "
                    "minCandidateNodesPercentage"
                ),
            ],
        ),
        # InterPodAffinity
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": -1},
            ["hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            ["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
        ),
        # NodeResourcesFit
        (
            "NodeResourcesFit",
            {"ignoredResourceGroups": ["e.com/a"]},
            [
                "ignoredResourceGroups[0]: Invalid value: \"e.com/a\": resource group name can't contain '/'",
            ],
        ),
        (
            "NodeResourcesFit",
            fit(type="Foo"),
            [
                (
                    'scoringStrategy.type: Unsupported value: "Foo": supported values: '
                    '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
                )
            ],
        ),
        *(
            (
                "NodeResourcesFit",
                fit(type=strategy, resources=[{"name": "cpu", "weight": weight}, {"name": "memory", "weight": 1}]),
                [
                    (
                        f"scoringStrategy.resources[0].weight: Invalid value: {weight}: "
                        "resource weight of cpu not in valid range (0, 100]"
                    )
                ],
            )
            for strategy in ("LeastAllocated", "MostAllocated")
            for weight in (-1, 101)
        ),
        (
            "NodeResourcesFit",
            fit(type="RequestedToCapacityRatio"),
            [
                (
                    "scoringStrategy.requestedToCapacityRatio: Required value: "
                    "must be specified when type is RequestedToCapacityRatio"
                )
            ],
        ),
        (
            "NodeResourcesFit",
            fit(type="MostAllocated", requestedToCapacityRatio={"shape": [{"utilization": 0, "score": 1}]}),
            [
                (
                    "scoringStrategy.requestedToCapacityRatio: Forbidden: "
                    "must be nil when type is not RequestedToCapacityRatio"
                )
            ],
        ),
        ("NodeResourcesFit", ratio(), [f"{SHAPE}: Required value: at least one point must be specified"]),
        (
            "NodeResourcesFit",
            ratio((10, 3), (10, 4)),
            [f"{SHAPE}[1].utilization: Invalid value: 10: values must be sorted in increasing order"],
        ),
        (
            "NodeResourcesFit",
            ratio((-1, 3)),
            [f"{SHAPE}[0].utilization: Invalid value: -1: not in valid range [0, 100]"],
        ),
        (
            "NodeResourcesFit",
            ratio((101, 3)),
            [f"{SHAPE}[0].utilization: Invalid value: 101: not in valid range [0, 100]"],
        ),
        ("NodeResourcesFit", ratio((0, -1)), [f"{SHAPE}[0].score: Invalid value: -1: not in valid range [0, 10]"]),
        ("NodeResourcesFit", ratio((0, 11)), [f"{SHAPE}[0].score: Invalid value: 11: not in valid range [0, 10]"]),
        # PodTopologySpread
        (
            "PodTopologySpread",
            {**spread(), "defaultingType": "System"},
            ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "Unknown"},
            ['defaultingType: Unsupported value: "Unknown": supported values: "System", "List"'],
        ),
        (
            "PodTopologySpread",
            spread(maxSkew=-1),
            ["defaultConstraints[0].maxSkew: Invalid value: -1: not in valid range (0, inf)"],
        ),
        (
            "PodTopologySpread",
            spread(maxSkew=0),
            ["defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
        ),
        (
            "PodTopologySpread",
            spread(topologyKey=""),
            ["defaultConstraints[0].topologyKey: Required value: can not be empty"],
        ),
        (
            "PodTopologySpread",
            spread(whenUnsatisfiable=""),
            ["defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"],
        ),
        (
            "PodTopologySpread",
            spread(whenUnsatisfiable="unknown"),
            [
                (
                    'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "unknown": supported values: '
                    '"DoNotSchedule", "ScheduleAnyway"'
                )
            ],
        ),
        (
            "PodTopologySpread",
            spread(labelSelector={"matchLabels": {"a": "b"}}),
            [
                (
                    "defaultConstraints[0].labelSelector: Forbidden: "
                    "constraint must not define a selector, as they deduced for each pod"
                )
            ],
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": spread()["defaultConstraints"] * 2},
            ['defaultConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"'],
        ),
        # VolumeBinding
        (
            "VolumeBinding",
            {"bindTimeoutSeconds": -10},
            ["bindTimeoutSeconds: Invalid value: -10: invalid BindTimeoutSeconds, should not be a negative value"],
        ),
        (
            "VolumeBinding",
            {"shape": [{"utilization": 0, "score": 3}]},
            [
                (
                    "shape: Invalid value: [0→3]: "
                    "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
                )
            ],
        ),
        # DynamicResources
        (
            "DynamicResources",
            {"filterTimeout": "-1s"},
            ['filterTimeout: Invalid value: "-1s": must be zero or positive'],
        ),
        (
            "DynamicResources",
            {"bindingTimeout": "900ms"},
            ['bindingTimeout: Invalid value: "900ms": must be at least 1 second'],
        ),
    ],
)
def test_arguments_that_may_not_be_are_named(name: str, args: dict[str, Any], lines: list[str]) -> None:
    assert faults(name, args) == lines


@pytest.mark.parametrize(
    ("name", "args", "begins"),
    [
        (
            "NodeResourcesFit",
            {"ignoredResources": ["a b"]},
            'ignoredResources[0]: Invalid value: "a b": name part must',
        ),
        (
            "PodTopologySpread",
            spread(topologyKey="a b"),
            'defaultConstraints[0].topologyKey: Invalid value: "a b": name',
        ),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
                    }
                }
            },
            "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]",
        ),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}
                    ]
                }
            },
            "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].",
        ),
    ],
)
def test_names_and_selectors_in_arguments_are_checked(name: str, args: dict[str, Any], begins: str) -> None:
    assert faults(name, args)[0].startswith(begins)


def test_a_gate_admits_what_it_guards() -> None:
    args = {"shape": [{"utilization": 0, "score": 3}, {"utilization": 100, "score": 11}]}
    features = Features(storage_capacity_scoring=True)

    assert faults("VolumeBinding", args, features=features) == [
        "shape[1].score: Invalid value: 11: not in valid range [0, 10]"
    ]


@pytest.mark.parametrize("args", ["x", [1], 7, True])
def test_arguments_are_a_mapping(args: Any) -> None:
    assert faults("InterPodAffinity", args)[0].startswith(": must be a mapping, not ")
