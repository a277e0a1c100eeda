"""Why not this node: the numbers, the taint, the label behind a reason; and which nodes lack least."""

from typing import Any

import pytest

from kubesched.api.objects import Pod
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.core import Core
from kubesched.explain.lacking import amount, closest, objections
from kubesched.testing import node, pod, scheduler

GIB = 1024**3


def noes(core: Core, asked: Pod, name: str, *, exhaustive: bool = True) -> list[str]:
    decision = core.what_if(asked, exhaustive=exhaustive)
    found = core.nodes.named(name)
    assert found is not None
    return [str(no) for no in objections(decision, PodInfo(asked), found)]


def needs(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": [{"matchExpressions": expressions} for expressions in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


@pytest.mark.parametrize(
    ("there", "asked", "said"),
    [
        ({"cpu": 2}, {"cpu": "2500m"}, "NodeResourcesFit: wants cpu 2500m, free 2000m of 2000m"),
        ({"memory": "4Gi"}, {"memory": "6Gi"}, "NodeResourcesFit: wants memory 6Gi, free 4Gi of 4Gi"),
        ({"pods": 0}, {}, "NodeResourcesFit: 0 of 0 pods are there"),
        ({}, {"resources": {"x.com/gpu": 2}}, "NodeResourcesFit: wants x.com/gpu 2, free 0 of 0"),
        ({"taints": ["a=b:NoSchedule"]}, {}, "TaintToleration: the taint a=b:NoSchedule is not tolerated"),
        ({"taints": ["a:NoExecute"]}, {}, "TaintToleration: the taint a:NoExecute is not tolerated"),
        ({"unschedulable": True}, {}, "NodeUnschedulable: it is cordoned"),
        (
            {"labels": {"disk": "hdd"}},
            {"node_selector": {"disk": "ssd"}},
            "NodeAffinity: nodeSelector asks for disk=ssd (it has 'hdd')",
        ),
        ({}, {"node_selector": {"disk": "ssd"}}, "NodeAffinity: nodeSelector asks for disk=ssd (it has none)"),
        (
            {"labels": {"disk": "hdd"}},
            {
                "affinity": needs(
                    [{"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}],
                    [{"key": "gpu", "operator": "Exists"}],
                )
            },
            "NodeAffinity: its node affinity asks for disk in (nvme,ssd) (it has 'hdd') or gpu (it has none)",
        ),
    ],
)
def test_one_thing_is_lacking(there: dict[str, Any], asked: dict[str, Any], said: str) -> None:
    assert noes(scheduler(node("n1", **there)), pod("p", **asked), "n1") == [said]


def test_a_taken_port_names_who_has_it() -> None:
    core = scheduler(node("n1"), pod("a", on="n1", ports=[80]), pod("b", on="n1", ports=[81]))

    [said] = noes(core, pod("p", ports=[80]), "n1")

    assert said == "NodePorts: host port 80/TCP is taken by default/a"


def test_everybody_who_says_no_is_named() -> None:
    core = scheduler(node("n1", cpu=1, unschedulable=True, taints=["a:NoSchedule"]))

    plugins = [said.partition(":")[0] for said in noes(core, pod("p", cpu=2), "n1")]

    assert plugins == ["NodeUnschedulable", "TaintToleration", "NodeResourcesFit"]


def test_without_asking_everybody_the_first_is_named() -> None:
    core = scheduler(node("n1", cpu=1, unschedulable=True))

    assert noes(core, pod("p", cpu=2), "n1", exhaustive=False) == ["NodeUnschedulable: it is cordoned"]


def test_a_node_that_fits_lacks_nothing() -> None:
    assert noes(scheduler(node("n1")), pod("p"), "n1") == []


def test_room_that_was_promised_is_said() -> None:
    promised = pod("high", cpu=2, priority=10, nominated="n1")
    core = scheduler(node("n1", cpu=2), promised)

    [said] = noes(core, pod("p", cpu=1), "n1")

    assert said == "NodeResourcesFit: Insufficient cpu, once the pods are there that have been promised room"


def test_the_closest_nodes_lack_least() -> None:
    core = scheduler(
        node("far", cpu=1),
        node("near", cpu="3900m"),
        node("cordoned", cpu=4, unschedulable=True),
        node("twice", cpu="3900m", unschedulable=True),
    )
    asked = pod("p", cpu=4)
    decision = core.what_if(asked, exhaustive=True)

    found = closest(decision, PodInfo(asked), core.nodes, most=3)

    assert [one.name for one, _ in found] == ["near", "far", "cordoned"]
    assert [no.brief for _, noes in found for no in noes] == ["short 100m cpu", "short 3000m cpu", "cordoned"]


def test_nothing_is_close_where_something_fits() -> None:
    core = scheduler(node("n1"), node("n2", cpu=0))
    asked = pod("p", cpu=1)

    assert closest(core.what_if(asked, exhaustive=True), PodInfo(asked), core.nodes, most=3) == []


@pytest.mark.parametrize(
    ("resource", "value", "written"),
    [
        ("cpu", 1500, "1500m"),
        ("memory", 2 * GIB, "2Gi"),
        ("memory", 1_825_361_101, "1.7Gi"),
        ("memory", 0, "0"),
        ("ephemeral-storage", 999, "999"),
        ("hugepages-2Mi", 4 * 1024**2, "4Mi"),
        ("x.com/gpu", 8, "8"),
    ],
)
def test_amounts_are_written_as_people_do(resource: str, value: int, written: str) -> None:
    assert amount(resource, value) == written
