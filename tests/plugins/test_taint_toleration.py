import pytest
from tests.plugins.small_cluster import Cluster, node, pod, wakes

from kubesched.api.objects import Node, Pod
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.events import NODE, UNSCHEDULED_POD, Action, ClusterEvent
from kubesched.framework.features import Features
from kubesched.framework.status import Code
from kubesched.framework.tools import Tools
from kubesched.plugins.taint_toleration import REASON, TaintToleration


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def tolerates(key: str = "", value: str = "", effect: str = "", operator: str = "Equal") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect, "operator": operator}


# ── filter ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("taints", "tolerations", "fits"),
    [
        pytest.param([], [], True, id="no taints"),
        pytest.param([taint("dedicated", "alice")], [], False, id="not tolerated"),
        pytest.param(
            [taint("dedicated", "alice")], [tolerates("dedicated", "alice", "NoSchedule")], True, id="tolerated"
        ),
        pytest.param([taint("dedicated", "alice")], [tolerates("dedicated", "bob", "NoSchedule")], False, id="value"),
        pytest.param([taint("dedicated", "alice")], [tolerates("other", "alice")], False, id="key"),
        pytest.param([taint("dedicated", "alice")], [tolerates("dedicated", "alice", "NoExecute")], False, id="effect"),
        pytest.param([taint("dedicated", "alice")], [tolerates("dedicated", "alice")], True, id="any effect"),
        pytest.param([taint("dedicated", "alice")], [tolerates("dedicated", operator="Exists")], True, id="any value"),
        pytest.param([taint("dedicated", "alice")], [tolerates(operator="Exists")], True, id="anything"),
        pytest.param([taint("dedicated", "alice")], [tolerates("", "alice")], True, id="any key, this value"),
        pytest.param(
            [taint("dedicated", "alice")], [tolerates("dedicated", "alice", operator="")], True, id="no operator"
        ),
        pytest.param(
            [taint("dedicated", "alice")], [tolerates("dedicated", operator="In")], False, id="unknown operator"
        ),
        pytest.param([taint("a", effect="PreferNoSchedule")], [], True, id="a soft taint keeps nobody off"),
        pytest.param([taint("a", effect="NoExecute")], [], False, id="NoExecute keeps off, too"),
        pytest.param([taint("a"), taint("b")], [tolerates("a", operator="Exists")], False, id="one of two tolerated"),
        pytest.param(
            [taint("a"), taint("b", effect="PreferNoSchedule")],
            [tolerates("a", operator="Exists")],
            True,
            id="the hard one of two tolerated",
        ),
        pytest.param(
            [taint("a", "x"), taint("b", "y", "NoExecute")],
            [tolerates("b", "y"), tolerates("a", "x")],
            True,
            id="two taints, two tolerations",
        ),
    ],
)
def test_who_is_kept_off(taints: list[dict[str, str]], tolerations: list[dict[str, str]], fits: bool) -> None:
    cluster = Cluster(node("plain"), node("tainted", taints=taints))
    expected = {} if fits else {"tainted": REASON}
    assert cluster.rejects(TaintToleration(), pod(tolerations=tolerations)) == expected


def test_evicting_pods_would_not_help() -> None:
    [status] = Cluster(node(taints=[taint("a")])).filter(TaintToleration(), pod()).values()
    assert status.code is Code.UNRESOLVABLE


@pytest.mark.parametrize(
    ("operator", "bound", "value", "fits"),
    [
        ("Gt", "950", "999", True),
        ("Gt", "950", "950", False),
        ("Gt", "950", "900", False),
        ("Lt", "950", "900", True),
        ("Lt", "950", "950", False),
        ("Gt", "950", "high", False),
        ("Lt", "high", "900", False),
        ("Gt", "-5", "-4", True),
    ],
)
def test_comparing_values_takes_the_gate(operator: str, bound: str, value: str, fits: bool) -> None:
    cluster = Cluster(node(taints=[taint("sla", value)]))
    comparing = pod(tolerations=[tolerates("sla", bound, "NoSchedule", operator)])
    gate = Tools("TaintToleration", Features(taint_toleration_comparison_operators=True))

    assert cluster.rejects(TaintToleration(gate), comparing) == ({} if fits else {"n1": REASON})
    assert cluster.rejects(TaintToleration(), comparing) == {"n1": REASON}


# ── score ────────────────────────────────────────────────────────────────────────────────────────────────────


def soft(key: str, value: str = "") -> dict[str, str]:
    return taint(key, value, "PreferNoSchedule")


@pytest.mark.parametrize(
    ("nodes", "tolerations", "expected"),
    [
        pytest.param(
            {"a": [soft("cpu", "x")], "b": [soft("cpu", "y")]},
            [tolerates("cpu", "x", "PreferNoSchedule")],
            {"a": 100, "b": 0},
            id="the tolerated one is better",
        ),
        pytest.param(
            {"a": [], "b": [soft("cpu")], "c": [soft("cpu"), soft("disk")]},
            [tolerates("cpu", operator="Exists"), tolerates("disk", operator="Exists")],
            {"a": 100, "b": 100, "c": 100},
            id="how many are tolerated does not matter",
        ),
        pytest.param(
            {"a": [], "b": [soft("cpu")], "c": [soft("cpu"), soft("disk")]},
            [],
            {"a": 100, "b": 50, "c": 0},
            id="the fewer untolerated the better",
        ),
        pytest.param(
            {"a": [taint("gpu")], "b": [soft("cpu"), soft("disk")]},
            [tolerates("cpu", operator="Exists", effect="NoSchedule")],
            {"a": 100, "b": 0},
            id="tolerations of hard taints do not count",
        ),
        pytest.param(
            {"a": [], "b": [soft("cpu")]},
            [tolerates("cpu", operator="Exists")],
            {"a": 100, "b": 100},
            id="a toleration of every effect counts",
        ),
        pytest.param({"a": [taint("x", effect="NoExecute")]}, [], {"a": 100}, id="hard taints do not count"),
    ],
)
def test_the_score_counts_soft_taints(
    nodes: dict[str, list[dict[str, str]]], tolerations: list[dict[str, str]], expected: dict[str, int]
) -> None:
    cluster = Cluster(*(node(name, taints=taints) for name, taints in nodes.items()))
    assert cluster.scores(TaintToleration(), pod(tolerations=tolerations)) == expected


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────

TAINTED, PLAIN = node(taints=[taint("a")]), node()
TOLERANT = pod(tolerations=[tolerates("a", operator="Exists")])


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(pod(), None, TAINTED, False, id="a new node, tainted"),
        pytest.param(pod(), None, PLAIN, True, id="a new node without taints"),
        pytest.param(TOLERANT, None, TAINTED, True, id="a new node with tolerated taints"),
        pytest.param(pod(), TAINTED, PLAIN, True, id="the taint is gone"),
        pytest.param(pod(), PLAIN, TAINTED, False, id="a taint has come"),
        pytest.param(pod(), TAINTED, node(taints=[taint("b")]), False, id="another taint instead"),
        pytest.param(TOLERANT, TAINTED, PLAIN, False, id="it was tolerated before"),
        pytest.param(pod(), TAINTED, node(taints=[soft("a")]), True, id="the taint has gone soft"),
    ],
)
def test_nodes_that_wake(waiting: Pod, old: Node | None, new: Node, expected: bool) -> None:
    event = ClusterEvent(NODE, Action.ADD if old is None else Action.UPDATE_NODE_TAINT)
    assert wakes(TaintToleration(), event, waiting, old, new) is expected


@pytest.mark.parametrize(("changed", "expected"), [("p", True), ("q", False)])
def test_its_own_tolerations_wake(changed: str, expected: bool) -> None:
    event = ClusterEvent(UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION)
    new = pod(changed, tolerations=[tolerates("a", operator="Exists")])
    assert wakes(TaintToleration(), event, pod(), pod(changed), new) is expected


def test_pods_that_tolerate_the_same_are_signed_the_same() -> None:
    one = PodInfo(pod(tolerations=[tolerates("a"), tolerates("b")]))
    other = PodInfo(pod("q", tolerations=[tolerates("b"), {**tolerates("a"), "tolerationSeconds": 30}]))
    assert TaintToleration().sign_pod(one) == TaintToleration().sign_pod(other)
    assert TaintToleration().sign_pod(one) != TaintToleration().sign_pod(PodInfo(pod()))


@pytest.mark.parametrize("changed", [{"key": "b"}, {"value": "v"}, {"effect": "NoExecute"}, {"operator": "Exists"}])
def test_whatever_tells_tolerations_apart_signs(changed: dict[str, str]) -> None:
    one, other = (PodInfo(pod(tolerations=[{**tolerates("a"), **change}])) for change in ({}, changed))
    assert TaintToleration().sign_pod(one) != TaintToleration().sign_pod(other)
