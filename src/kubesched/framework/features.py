"""Feature gates, resolved once into a frozen value.

A gate is asked at assembly, never in a loop: what runs has no question left.  Gates that Kubernetes has locked
on are not listed; naming one in a configuration is accepted when it agrees.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs


class Features(Struct, frozen=True):
    """The gates kubesched knows, with the defaults of Kubernetes 1.36."""

    taint_toleration_comparison_operators: bool = False
    storage_capacity_scoring: bool = False
    volume_limit_scaling: bool = False
    node_declared_features: bool = True
    pod_level_resources: bool = True
    in_place_pod_level_resources_vertical_scaling: bool = True
    scheduler_pop_from_backoff_q: bool = True
    nominated_node_name_for_expectation: bool = True
    match_label_keys_in_pod_topology_spread: bool = True
    dra_extended_resource: bool = True

    def with_gates(self, gates: Mapping[str, bool]) -> Features:
        """The same with some gates set, by their snake-case names."""
        return structs.replace(self, **gates)
