"""What a configuration means once everything has been filled in: per profile, who is asked, where, and with what.

`outline` is plain data: `kubesched config show` prints it as text, YAML or JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from kubesched.config.schema import Configuration, ProfileConfig
from kubesched.framework.hooks import Plugin, name_of
from kubesched.framework.profile import Profile

EVERY_NODE = "every node is scored"


def outline(configuration: Configuration, profiles: Mapping[str, Profile]) -> dict[str, Any]:
    """A completed configuration and the profiles made of it, as what there is to say about them."""
    return {
        "profiles": [
            _profile(config, profiles[config.scheduler_name]) for config in configuration.profiles
        ],
        "extenders": _told(configuration.extenders),
        "leaderElection": _told(configuration.leader_election),
        "clientConnection": _told(configuration.client_connection),
        "podInitialBackoffSeconds": configuration.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": configuration.pod_max_backoff_seconds,
        "parallelism": configuration.parallelism,
    }


def _profile(config: ProfileConfig, profile: Profile) -> dict[str, Any]:
    given = {one.name.rpartition(":")[2]: one.args for one in config.plugin_config}
    args = {name_of(plugin): _args(plugin, given) for plugin in profile.plugins}
    return {
        "schedulerName": profile.name,
        "nodesToScore": _nodes_to_score(profile.percentage_of_nodes_to_score),
        "plugins": {
            point: [
                {"name": name_of(plugin)} | ({"weight": profile.weights[name_of(plugin)]} if point == "score" else {})
                for plugin in plugins
            ]
            for point, plugins in profile.points.items()
        },
        "args": {name: said for name, said in args.items() if said},
    }


def _args(plugin: Plugin, given: Mapping[str, Any]) -> Any:
    """The arguments a plugin works with: as it decoded them, else as they were written."""
    decoded = getattr(plugin, "args", None)
    return _told(decoded) if isinstance(decoded, Struct) else given.get(type(plugin).__name__)


def _nodes_to_score(percentage: int | None) -> str:
    if percentage is None:
        return EVERY_NODE
    return f"{percentage} %" if percentage else "as kube-scheduler samples by the size of the cluster"


def _told(value: Any) -> Any:
    """A value with every default said, and without what stands for nothing."""
    if isinstance(value, Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        fields = {encoded: _told(getattr(value, name)) for name, encoded in names}
        return {name: told for name, told in fields.items() if told is not None}
    if isinstance(value, (tuple, list)):
        return [_told(one) for one in value]
    return msgspec.to_builtins(value)
