"""Feature gates by the names of Kubernetes."""

import pytest

from kubesched.config.gates import features_of, gates_of
from kubesched.framework.errors import ConfigError
from kubesched.framework.features import Features


def test_without_gates_the_defaults_of_kubernetes_hold() -> None:
    assert features_of({}) == Features()


@pytest.mark.parametrize(
    ("gate", "field"),
    [
        ("TaintTolerationComparisonOperators", "taint_toleration_comparison_operators"),
        ("StorageCapacityScoring", "storage_capacity_scoring"),
        ("VolumeLimitScaling", "volume_limit_scaling"),
        ("NodeDeclaredFeatures", "node_declared_features"),
        ("PodLevelResources", "pod_level_resources"),
        ("InPlacePodLevelResourcesVerticalScaling", "in_place_pod_level_resources_vertical_scaling"),
        ("SchedulerPopFromBackoffQ", "scheduler_pop_from_backoff_q"),
        ("NominatedNodeNameForExpectation", "nominated_node_name_for_expectation"),
        ("MatchLabelKeysInPodTopologySpread", "match_label_keys_in_pod_topology_spread"),
        ("DRAExtendedResource", "dra_extended_resource"),
    ],
)
@pytest.mark.parametrize("on", [True, False])
def test_a_gate_sets_its_feature(gate: str, field: str, on: bool) -> None:
    assert getattr(features_of({gate: on}), field) is on


def test_every_feature_has_a_gate() -> None:
    gates = {"".join(word.capitalize() for word in name.split("_")) for name in Features.__struct_fields__}

    features_of({gate.replace("Dra", "DRA"): True for gate in gates})


@pytest.mark.parametrize(
    ("gates", "error"),
    [
        (
            {"SchedulerQueueingHints": False},
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true (leave it out)",
        ),
        (
            {"GangScheduling": True},
            "feature gate GangScheduling cannot be switched on: kubesched does not have it yet",
        ),
        ({"PodLevelResource": True}, 'unrecognized feature gate: PodLevelResource (did you mean "PodLevelResources"?)'),
        ({"Quux": True}, "unrecognized feature gate: Quux"),
    ],
)
def test_a_gate_that_cannot_be_set_is_named(gates: dict[str, bool], error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        features_of(gates)

    assert str(caught.value) == error


@pytest.mark.parametrize(
    "gates", [{"SchedulerQueueingHints": True}, {"GangScheduling": False}, {"OpportunisticBatching": False}]
)
def test_a_gate_that_changes_no_decision_is_accepted(gates: dict[str, bool]) -> None:
    assert features_of(gates) == Features()


@pytest.mark.parametrize(
    ("text", "gates"),
    [("", {}), ("A=true", {"A": True}), ("A=true, B=False,", {"A": True, "B": False})],
)
def test_a_command_line_is_read(text: str, gates: dict[str, bool]) -> None:
    assert gates_of(text) == gates


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("A", "missing bool value for A (write A=true or A=false)"),
        ("A=yes", "invalid value of A=yes (a gate is true or false)"),
    ],
)
def test_a_command_line_that_cannot_be_read_is_named(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        gates_of(text)

    assert str(caught.value) == error
