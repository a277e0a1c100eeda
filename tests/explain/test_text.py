"""A Decision in sentences."""

from kubesched.api.objects import Pod
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.core import Core
from kubesched.explain.text import Detail, aligned, told, why_not
from kubesched.framework.status import Status
from kubesched.testing import node, pod, scheduler


def text(core: Core, asked: Pod, detail: Detail = "text") -> list[str]:
    decision = core.what_if(asked, exhaustive=True)
    return list(told(decision, PodInfo(asked), core.nodes, core.profiles["default-scheduler"], detail))


def why(core: Core, asked: Pod, name: str) -> list[str]:
    return list(why_not(core.what_if(asked, exhaustive=True), PodInfo(asked), core.nodes, name))


def uneven(*more: Pod) -> Core:
    return scheduler(node("n1", cpu=4), node("n2", cpu=8), node("n3", cpu=1), *more)


# ── it goes somewhere ────────────────────────────────────────────────────────────────────────────────────────


def test_where_it_goes_by_how_much_and_why() -> None:
    assert text(uneven(), pod("web", cpu=2, memory="1Gi")) == [
        "default/web  goes to n2: total 454, 18 ahead of n1",
        "  node  total  TaintToleration  NodeResourcesFit  NodeResourcesBalancedAllocation",
        "  n2      454              300                85                               69",
        "  n1      436              300                73                               63",
        "  decided by  NodeResourcesFit +12 · NodeResourcesBalancedAllocation +6",
        "fits 2 of 3 nodes; the others:  1 Insufficient cpu",
    ]


def test_the_only_node_that_fits() -> None:
    told = text(uneven(), pod("web", cpu=5))

    assert told[0] == "default/web  goes to n2: no other node fits"
    assert told[-1] == "fits 1 of 3 nodes; the others:  2 Insufficient cpu"


def test_nodes_as_good_are_named() -> None:
    core = scheduler(*(node(f"n{i}") for i in range(12)))

    [first, *_] = text(core, pod("web"))

    assert first.startswith("default/web  goes to n0: total ")
    assert first.endswith(", as good as n1, n10, n11, n2, n3, n4, n5, n6 and 3 more (the smallest name is shown)")


def test_a_promised_node() -> None:
    assert text(uneven(), pod("web", cpu=1, nominated="n1"))[0] == "default/web  goes to n1: no other node fits"


def test_wide_shows_every_plugin_and_every_node() -> None:
    told = text(uneven(), pod("web", cpu=2), "wide")

    assert "ImageLocality" in told[1]
    assert told[-2:] == ["turned down:", "  n3  NodeResourcesFit: wants cpu 2000m, free 1000m of 1000m"]


# ── it goes nowhere ──────────────────────────────────────────────────────────────────────────────────────────


def test_why_nowhere_and_what_is_closest() -> None:
    core = scheduler(node("n1", cpu=4), node("n2", cpu=8), node("n3", cpu=9, taints=["gpu=true:NoSchedule"]))

    assert text(core, pod("web", cpu="8200m")) == [
        "default/web  unschedulable: 0 of 3 nodes fit",
        "  2 Insufficient cpu · 1 node(s) had untolerated taint(s)",
        "  closest: n2 (short 200m cpu) · n1 (short 4200m cpu) · n3 (taint gpu=true:NoSchedule)",
        (
            "  no room can be made: no new claims to deallocate, preemption: 0/3 nodes are available: "
            "3 Preemption is not helpful for scheduling."
        ),
        (
            "  retried when: a Node is added, can give something else or changes its taints or is uncordoned; "
            "a Pod is deleted, is scaled down or changes its tolerations; a DeviceClass is added or changes"
        ),
        "why not n2?  NodeResourcesFit: wants cpu 8200m, free 8000m of 8000m      (all other filters pass)",
    ]


def test_preemption_names_its_victims() -> None:
    core = uneven(*(pod(f"low{i}", cpu="700m", on="n2", priority=0) for i in range(11)))

    told = text(core, pod("web", cpu=8, priority=10))

    [line] = [line for line in told if "preemption" in line]
    assert line.startswith("  preemption makes room on n2, evicting default/low0 (priority 0), default/low1")
    assert line.endswith("default/low7 (priority 0) and 3 more")


def test_a_no_before_any_node_was_looked_at() -> None:
    told = text(uneven(), pod("web", claims=["data"]))

    assert told[1] == '  persistentvolumeclaim "data" not found [VolumeRestrictions]'
    assert not any("closest" in line for line in told)
    assert why(uneven(), pod("web", claims=["data"]), "n1") == [
        'why not n1?  persistentvolumeclaim "data" not found [VolumeRestrictions]: no node was looked at'
    ]


def test_no_nodes_at_all() -> None:
    assert text(scheduler(), pod("web"), "wide") == ["default/web  unschedulable: no nodes available to schedule pods"]


def test_an_attempt_that_broke() -> None:
    class Broken:
        def filter(self, cycle, pod, node) -> Status:
            raise ValueError("no idea")

    told = text(scheduler(node("n1"), plugins=[Broken()]), pod("web"), "wide")

    assert told[0].startswith("default/web  could not be decided: running")
    assert "no idea" in told[0]


# ── one node ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_why_not_this_node_that_does_not_fit() -> None:
    core = scheduler(node("n1", cpu=1, unschedulable=True), node("n2"))

    assert why(core, pod("web", cpu=2), "n1") == [
        "why not n1?  NodeUnschedulable: it is cordoned",
        "             NodeResourcesFit: wants cpu 2000m, free 1000m of 1000m      (all other filters pass)",
    ]


def test_why_not_this_node_that_fits() -> None:
    told = why(uneven(), pod("web", cpu=2, memory="1Gi"), "n1")

    assert told[:2] == [
        "why not n1?  it fits, place 2 of 2, 18 behind n2",
        "  NodeResourcesFit −12 · NodeResourcesBalancedAllocation −6",
    ]
    assert [line.split()[0] for line in told[2:]] == ["node", "n2", "n1"]


def test_the_chosen_node_and_one_as_good() -> None:
    core = scheduler(node("n1"), node("n2"))

    assert why(core, pod("web"), "n1")[0] == "n1?  it is the node that was chosen"
    assert why(core, pod("web"), "n2")[0] == "why not n2?  it is as good as n1: one of several best nodes is taken"


# ── strangers' text ──────────────────────────────────────────────────────────────────────────────────────────


def test_names_cannot_steer_a_terminal() -> None:
    core = scheduler(node("n\x1b[31m", cpu=1), node("m\u202e"), pod("b\x1b]0;x\x07", on="m\u202e", priority=0, cpu=7))
    for asked in (pod("w\x1b[2J"), pod("w\x1b[2J", cpu=8, priority=9), pod("w\x1b[2J", cpu=99)):
        for detail in ("text", "wide"):
            printed = "".join(text(core, asked, detail))
            assert printed.isprintable(), printed


def test_columns_stand_under_each_other() -> None:
    assert list(aligned([["node", "total"], ["a-long-name", "7"]])) == ["  node         total", "  a-long-name      7"]
