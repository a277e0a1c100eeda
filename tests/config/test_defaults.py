"""What a configuration means where it says nothing, and how a profile changes the default plugins."""

from typing import Any

import pytest

from kubesched.config.defaults import complete, default_plugins, merge, merge_set
from kubesched.config.load import load
from kubesched.config.schema import Configuration, PluginRef, Plugins, PluginSet
from kubesched.framework.features import Features
from kubesched.plugins import IN_TREE


def refs(*names: str) -> tuple[PluginRef, ...]:
    """`"A"` is A without a weight, `"A:3"` with one."""
    return tuple(PluginRef(name=name.partition(":")[0], weight=int(name.partition(":")[2] or 0)) for name in names)


def plugin_set(enabled: str = "", disabled: str = "") -> PluginSet:
    return PluginSet(enabled=refs(*enabled.split()), disabled=refs(*disabled.split()))


def text(listed: PluginSet) -> tuple[str, str]:
    def join(found: tuple[PluginRef, ...]) -> str:
        return " ".join(f"{ref.name}:{ref.weight}" if ref.weight else ref.name for ref in found)

    return join(listed.enabled), join(listed.disabled)


@pytest.mark.parametrize(
    ("default", "enabled", "disabled", "merged"),
    [
        ("A B", "", "", "A B"),
        ("A B", "C", "", "A B C"),
        ("A B", "", "A", "B"),
        ("A B", "", "*", ""),
        ("A B", "B:7", "*", "B:7"),
        ("A:1 B:2 C:3", "B:9", "", "A:1 B:9 C:3"),
        ("A:1 B:2", "B:9", "B", "A:1 B:9"),
        ("A:1 B:2 C:3", "A:9", "A", "B:2 C:3 A:9"),
        ("A:1 B:2 C:3", "C:9 A:8", "", "A:8 B:2 C:9"),
        ("A B", "D C", "", "A B D C"),
        ("A B", "C B:2 D", "", "A B:2 C D"),
        ("A", "A:1 A:2", "", "A:2 A:1"),
        ("A", "B B", "", "A B B"),
        ("", "B", "A", "B"),
        ("A B", "", "Unknown", "A B"),
        ("A B", "B", "* A", "B"),
    ],
)
def test_a_set_is_merged_with_its_default(default: str, enabled: str, disabled: str, merged: str) -> None:
    result = merge_set(plugin_set(default), plugin_set(enabled, disabled))

    assert text(result) == (merged, disabled)


def test_what_the_default_disables_stays_disabled() -> None:
    assert text(merge_set(plugin_set("A", "B"), plugin_set("C", "D"))) == ("A C", "D B")


def test_every_set_is_merged_and_only_with_its_own_default() -> None:
    custom = Plugins(
        filter=plugin_set("A", "*"), multi_point=plugin_set("", "NodeName"), score=plugin_set("NodeAffinity:5")
    )

    merged = merge(default_plugins(), custom)

    assert text(merged.filter) == ("A", "*")
    assert text(merged.score) == ("NodeAffinity:5", "")
    assert [ref.name for ref in merged.multi_point.enabled] == [name for name in IN_TREE if name != "NodeName"]


def test_who_says_nothing_of_plugins_gets_the_defaults() -> None:
    assert merge(default_plugins(), None) == default_plugins()


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeName"}]}}}]},
        {
            "profiles": [
                {"plugins": {"multiPoint": {"disabled": [{"name": "NodeName"}], "enabled": [{"name": "NodeName"}]}}}
            ]
        },
        {"profiles": [{"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 2}]}}}]},
        {
            "profiles": [
                {"schedulerName": "a"},
                {"schedulerName": "b", "plugins": {"filter": {"disabled": [{"name": "*"}]}}},
            ]
        },
    ],
)
def test_completing_twice_is_completing_once(raw: dict[str, Any]) -> None:
    once = load(raw)

    again = complete(once)

    assert [profile.plugins.multi_point.enabled for profile in again.profiles if profile.plugins] == [
        profile.plugins.multi_point.enabled for profile in once.profiles if profile.plugins
    ]
    assert [profile.scheduler_name for profile in again.profiles] == [
        profile.scheduler_name for profile in once.profiles
    ]


# ── the default plugins ──────────────────────────────────────────────────────────────────────────────────────


def test_the_default_plugins_are_those_of_kube_scheduler_in_its_order_and_with_its_weights() -> None:
    assert text(default_plugins().multi_point)[0] == (
        "SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration:3 NodeAffinity:2 NodePorts "
        "NodeResourcesFit:1 VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread:2 "
        "InterPodAffinity:2 DynamicResources:2 DefaultPreemption NodeResourcesBalancedAllocation:1 ImageLocality:1 "
        "DefaultBinder NodeDeclaredFeatures"
    )


def test_a_gate_takes_its_plugin_out_of_the_defaults() -> None:
    names = [ref.name for ref in default_plugins(Features(node_declared_features=False)).multi_point.enabled]

    assert names == [name for name in IN_TREE if name != "NodeDeclaredFeatures"]


# ── everything else ──────────────────────────────────────────────────────────────────────────────────────────


def field(configuration: Configuration, path: str) -> Any:
    value: Any = configuration
    for part in path.split("."):
        value = value[int(part)] if part.isdecimal() else getattr(value, part)
    return value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("parallelism", 16),
        ("percentage_of_nodes_to_score", None),
        ("pod_initial_backoff_seconds", 1),
        ("pod_max_backoff_seconds", 10),
        ("enable_profiling", True),
        ("enable_contention_profiling", True),
        ("delay_cache_until_active", False),
        ("leader_election.leader_elect", True),
        ("leader_election.lease_duration", "15s"),
        ("leader_election.renew_deadline", "10s"),
        ("leader_election.retry_period", "2s"),
        ("leader_election.resource_lock", "leases"),
        ("leader_election.resource_name", "kube-scheduler"),
        ("leader_election.resource_namespace", "kube-system"),
        ("client_connection.content_type", "application/vnd.kubernetes.protobuf"),
        ("client_connection.qps", 50.0),
        ("client_connection.burst", 100),
        ("client_connection.kubeconfig", ""),
        ("extenders", ()),
        ("profiles.0.scheduler_name", "default-scheduler"),
        ("profiles.0.percentage_of_nodes_to_score", None),
        ("profiles.0.plugins", default_plugins()),
        ("profiles.0.plugin_config", ()),
    ],
)
def test_an_empty_configuration_is_complete(path: str, value: Any) -> None:
    assert field(load({}), path) == value


@pytest.mark.parametrize(
    ("raw", "path", "value"),
    [
        ({"enableProfiling": False}, "enable_contention_profiling", False),
        ({"enableProfiling": False, "enableContentionProfiling": True}, "enable_contention_profiling", True),
        ({"enableContentionProfiling": False}, "enable_contention_profiling", False),
        ({"clientConnection": {"qps": 0, "burst": 0, "contentType": ""}}, "client_connection.burst", 100),
        ({"clientConnection": {"qps": 7.5}}, "client_connection.qps", 7.5),
        ({"leaderElection": {"leaseDuration": "0s"}}, "leader_election.lease_duration", "15s"),
        ({"leaderElection": {"resourceName": ""}}, "leader_election.resource_name", "kube-scheduler"),
        ({"leaderElection": {"leaderElect": False}}, "leader_election.leader_elect", False),
        ({"extenders": [{"urlPrefix": "https://e", "httpTimeout": "0"}]}, "extenders.0.http_timeout", "5s"),
        ({"profiles": []}, "profiles.0.scheduler_name", "default-scheduler"),
        ({"profiles": [{}]}, "profiles.0.scheduler_name", "default-scheduler"),
        ({"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}, "profiles.1.scheduler_name", "b"),
        ({"percentageOfNodesToScore": 0}, "percentage_of_nodes_to_score", 0),
        ({"profiles": None, "extenders": None, "parallelism": None}, "parallelism", 16),
    ],
)
def test_what_is_said_is_kept_and_what_is_empty_is_filled_in(raw: dict[str, Any], path: str, value: Any) -> None:
    assert field(load(raw), path) == value
