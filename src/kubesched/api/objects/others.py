"""What stands around pods: namespaces, those who own them, budgets that protect them, and the devices they ask for."""

from __future__ import annotations

from kubesched.api.objects.meta import KubeObject, View
from kubesched.api.objects.terms import LabelSelector


class Namespace(KubeObject, frozen=True, tag="Namespace"):
    pass


class PodDisruptionBudgetSpec(View, frozen=True):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(View, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(KubeObject, frozen=True, tag="PodDisruptionBudget"):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class MapSelectorSpec(View, frozen=True):
    selector: dict[str, str] | None = None


class LabelSelectorSpec(View, frozen=True):
    selector: LabelSelector | None = None


class Service(KubeObject, frozen=True, tag="Service"):
    spec: MapSelectorSpec = MapSelectorSpec()


class ReplicationController(KubeObject, frozen=True, tag="ReplicationController"):
    spec: MapSelectorSpec = MapSelectorSpec()


class ReplicaSet(KubeObject, frozen=True, tag="ReplicaSet"):
    spec: LabelSelectorSpec = LabelSelectorSpec()


class StatefulSet(KubeObject, frozen=True, tag="StatefulSet"):
    spec: LabelSelectorSpec = LabelSelectorSpec()


# ── devices: enough to say plainly that a pod wants them ─────────────────────────────────────────────────────


class DeviceClassSpec(View, frozen=True):
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True, tag="DeviceClass"):
    spec: DeviceClassSpec = DeviceClassSpec()


class ResourceClaim(KubeObject, frozen=True, tag="ResourceClaim"):
    pass
