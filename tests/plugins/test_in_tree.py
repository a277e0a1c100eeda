"""The list of in-tree plugins: names in Kubernetes' order, classes where it says, nothing imported unasked."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from kubesched.framework.hooks import check, name_of, points_of
from kubesched.plugins import DEFAULT_WEIGHTS, IN_TREE

STANDING = [name for name, where in IN_TREE.items() if find_spec(where.partition(":")[0])]

POINTS = {
    "SchedulingGates": {"preEnqueue"},
    "PrioritySort": {"queueSort"},
    "NodeUnschedulable": {"filter"},
    "NodeName": {"filter"},
    "TaintToleration": {"filter", "preScore", "score"},
    "NodeAffinity": {"preFilter", "filter", "preScore", "score"},
    "NodePorts": {"preFilter", "filter"},
    "NodeResourcesFit": {"preFilter", "filter", "preScore", "score"},
    "DynamicResources": {"preEnqueue", "preFilter", "filter", "postFilter", "score", "reserve", "preBind"},
    "NodeResourcesBalancedAllocation": {"preScore", "score"},
    "ImageLocality": {"score"},
    "DefaultBinder": {"bind"},
    "NodeDeclaredFeatures": {"preFilter", "filter"},
}


def test_there_are_twenty_in_the_order_of_the_default_profile() -> None:
    assert " ".join(IN_TREE) == (
        "SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts "
        "NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread "
        "InterPodAffinity DynamicResources DefaultPreemption NodeResourcesBalancedAllocation ImageLocality "
        "DefaultBinder NodeDeclaredFeatures"
    )


def test_weights_are_those_of_the_default_profile() -> None:
    assert dict(DEFAULT_WEIGHTS) == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


@pytest.mark.parametrize("name", STANDING)
def test_each_is_a_plugin_of_that_name_and_needs_no_arguments(name: str) -> None:
    module, _, cls = IN_TREE[name].partition(":")
    plugin = getattr(import_module(module), cls)()

    check(plugin)
    assert name_of(plugin) == name


@pytest.mark.parametrize("name", POINTS)
def test_each_takes_part_where_kube_schedulers_does(name: str) -> None:
    module, _, cls = IN_TREE[name].partition(":")
    assert set(points_of(getattr(import_module(module), cls))) == POINTS[name]


def test_asking_for_the_list_imports_no_plugin() -> None:
    code = "import sys, kubesched.plugins; print([m for m in sys.modules if m.startswith('kubesched.plugins.')])"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": _path()}
    )
    assert ran.stdout.strip() == "[]"


def _path() -> str:
    return ":".join(entry for entry in sys.path if entry)
