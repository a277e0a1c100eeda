"""Feature gates by the names Kubernetes 1.36 gives them: which there are, and which of them change anything here.

A gate whose feature kubesched has is a field of Features.  One that is on in Kubernetes and changes no decision may
be switched either way.  One whose feature is missing here may only stay off: half a feature is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubesched.config.faults import did_you_mean
from kubesched.framework.errors import ConfigError
from kubesched.framework.features import Features

_LOCKED = frozenset(
    (
        *("DynamicResourceAllocation", "DRAAdminAccess", "DRAPrioritizedList", "InPlacePodVerticalScaling"),
        *("MatchLabelKeysInPodAffinity", "NodeInclusionPolicyInPodTopologySpread", "PodSchedulingReadiness"),
        *("PodObservedGenerationTracking", "SchedulerQueueingHints", "SidecarContainers", "VolumeAttributesClass"),
    )
)
_BETA_ON = frozenset(
    (
        *("ClearingNominatedNodeNameAfterBinding", "ComponentFlagz", "ComponentStatusz", "DRAConsumableCapacity"),
        *("DRADeviceBindingConditions", "DRADeviceTaints", "DRAExtendedResource", "DRAPartitionableDevices"),
        *("DRAResourceClaimDeviceStatus", "DRAResourceClaimGranularStatusAuthorization"),
        *("DRASchedulerFilterTimeout", "InPlacePodLevelResourcesVerticalScaling"),
        *("MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge"),
        *("NodeDeclaredFeatures", "NominatedNodeNameForExpectation", "OpportunisticBatching", "PodLevelResources"),
        *("SchedulerAsyncPreemption", "SchedulerPopFromBackoffQ", "WatchListClient"),
    )
)
_OFF = frozenset(
    (
        *("SchedulerAsyncAPICalls", "DRADeviceTaintRules", "CoordinatedLeaderElection", "DRAListTypeAttributes"),
        *("DRANodeAllocatableResources", "DRAResourcePoolStatus", "DRAWorkloadResourceClaims", "GangScheduling"),
        *("GenericWorkload", "StorageCapacityScoring", "TaintTolerationComparisonOperators"),
        *("TopologyAwareWorkloadScheduling", "UserNamespacesHostNetworkSupport", "VolumeLimitScaling"),
        *("WorkloadAwarePreemption", "WorkloadWithJob"),
    )
)
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def gates_of(text: str) -> dict[str, bool]:
    """The gates of a command line: `Name=true,Other=false`.  Raises ConfigError."""
    gates: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise ConfigError("", f"missing bool value for {name}", f"write {name}=true or {name}=false")
        if value.lower() not in ("true", "false"):
            raise ConfigError("", f"invalid value of {name}={value}", "a gate is true or false")
        gates[name.strip()] = value.lower() == "true"
    return gates


def features_of(gates: Mapping[str, bool]) -> Features:
    """The features with some gates set, by the names Kubernetes gives them.  Raises ConfigError."""
    known = Features.__struct_fields__
    wanted: dict[str, bool] = {}
    for name, on in gates.items():
        _check(name, on)
        if _snake(name) in known:
            wanted[_snake(name)] = on
    return Features().with_gates(wanted)


def _check(name: str, on: bool) -> None:
    if name in _LOCKED:
        if not on:
            raise ConfigError("", f"cannot set feature gate {name} to false, feature is locked to true", "leave it out")
    elif name in _OFF:
        if on and _snake(name) not in Features.__struct_fields__:
            raise ConfigError("", f"feature gate {name} cannot be switched on: kubesched does not have it yet")
    elif name not in _BETA_ON:
        raise ConfigError(
            "", f"unrecognized feature gate: {name}", did_you_mean(name, sorted(_LOCKED | _BETA_ON | _OFF))
        )


def _snake(name: str) -> str:
    return _WORD.sub("_", name).lower()
