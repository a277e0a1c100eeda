"""The plugins that kube-scheduler has too: one file each, and the docstring of a class is its manual page.

They have no privileges: what they can do, a plugin of yours can do.  This module only says where each is found;
nothing is imported before someone asks for it by name.

A plugin with arguments is made as `Plugin(args, tools)`, where `args` is the Struct its constructor names; without
any it has its defaults.  Beside the Struct stands `validate_…(args)`, which yields what is wrong with it as
(path, message) in the words of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

IN_TREE: Mapping[str, str] = MappingProxyType(
    {
        "SchedulingGates": "kubesched.plugins.scheduling_gates:SchedulingGates",
        "PrioritySort": "kubesched.plugins.priority_sort:PrioritySort",
        "NodeUnschedulable": "kubesched.plugins.node_unschedulable:NodeUnschedulable",
        "NodeName": "kubesched.plugins.node_name:NodeName",
        "TaintToleration": "kubesched.plugins.taint_toleration:TaintToleration",
        "NodeAffinity": "kubesched.plugins.node_affinity:NodeAffinity",
        "NodePorts": "kubesched.plugins.node_ports:NodePorts",
        "NodeResourcesFit": "kubesched.plugins.node_resources_fit:NodeResourcesFit",
        "VolumeRestrictions": "kubesched.plugins.volume_restrictions:VolumeRestrictions",
        "NodeVolumeLimits": "kubesched.plugins.node_volume_limits:NodeVolumeLimits",
        "VolumeBinding": "kubesched.plugins.volume_binding:VolumeBinding",
        "VolumeZone": "kubesched.plugins.volume_zone:VolumeZone",
        "PodTopologySpread": "kubesched.plugins.pod_topology_spread:PodTopologySpread",
        "InterPodAffinity": "kubesched.plugins.inter_pod_affinity:InterPodAffinity",
        "DynamicResources": "kubesched.plugins.dynamic_resources:DynamicResources",
        "DefaultPreemption": "kubesched.plugins.preemption:DefaultPreemption",
        "NodeResourcesBalancedAllocation": "kubesched.plugins.node_resources_balanced:NodeResourcesBalancedAllocation",
        "ImageLocality": "kubesched.plugins.image_locality:ImageLocality",
        "DefaultBinder": "kubesched.plugins.default_binder:DefaultBinder",
        "NodeDeclaredFeatures": "kubesched.plugins.node_declared_features:NodeDeclaredFeatures",
    }
)
"""Every in-tree plugin as `module:Class`, in the order the default profile lists them."""

DEFAULT_WEIGHTS: Mapping[str, int] = MappingProxyType(
    {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
)
"""How much a score plugin counts in the default profile; one that is not named counts 1."""
