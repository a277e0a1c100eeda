"""A Decision answers whoever asks, and asking changes nothing."""

import pytest
from tests.core.little import Fit, Patience

from kubesched.api.time import seconds
from kubesched.core.messages import Publish
from kubesched.framework.decision import Outcome
from kubesched.framework.hooks import NodeSubset
from kubesched.framework.status import SUCCESS, pending, unresolvable, unschedulable
from kubesched.testing import answer, node, pod, run, scheduler, tick


def test_asking_while_the_pod_is_in_flight_does_not_change_what_is_said_later():
    core = scheduler(node("n1"), pod("a"), plugins=[Fit(), Patience(seconds(5))])
    [promise] = tick(core)
    answer(core, promise)
    asked = core.why("default/a")
    assert asked is not None
    assert asked.message == ""

    [said] = [effect for effect in run(core, at=seconds(5)) if isinstance(effect, Publish)]

    assert "rejected due to timeout after waiting 5s at plugin Patience" in said.note
    assert asked.message == said.note


def test_a_refusal_counts_every_reason():
    core = scheduler(node("n1", cpu=1), node("n2", unschedulable=True), pod("a", cpu=2), plugins=[Fit()])
    tick(core)
    decision = core.why("default/a")
    assert decision.outcome is Outcome.UNSCHEDULABLE
    assert decision.message == "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were closed."
    assert decision.rejectors == {"Fit"}
    assert decision.status("n2").reasons == ("node(s) were closed",)
    assert decision.evaluated == 2


def test_without_nodes_it_says_so_and_blames_nobody():
    core = scheduler(pod("a"), plugins=[Fit()])
    tick(core)
    decision = core.why("default/a")
    assert decision.message == "no nodes available to schedule pods"
    assert decision.rejectors == frozenset()


def test_the_nodes_tied_for_best_are_named():
    class Number:
        def score(self, cycle, pod, node):
            return int(node.name[-1]) // 2

    core = scheduler(*(node(f"n{i}") for i in range(4)), pod("a"), plugins=[Fit(), Number()])
    tick(core)
    decision = core.why("default/a")
    assert decision.best == ("n2", "n3")
    assert decision.node == "n2"
    assert decision.scores_of("n3") == {"Number": 1}
    assert decision.totals.tolist() == [0, 0, 1, 1]


# ── what the event says ──────────────────────────────────────────────────────────────────────────────────────

BUSY, CLOSED, ODD = unschedulable("Insufficient cpu"), unresolvable("node(s) were closed"), pending("wait for it")


class Says:
    """Says of all nodes, of each by its name, and of the room that could be made, what it was told to say."""

    def __init__(self, *, before=SUCCESS, of=(), after=None):
        self._before, self._of = before, dict(of)
        if after is not None:
            self.post_filter = lambda cycle, pod, rejected: after

    def pre_filter(self, cycle, pod, nodes):
        return self._before

    def filter(self, cycle, pod, node):
        return self._of.get(node.name, BUSY)


class SaysAfter(Says):
    def post_filter(self, cycle, pod, rejected):
        raise AssertionError("what was told stands in its place")


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(Says(), "3 Insufficient cpu.", id="all for one reason"),
        pytest.param(
            Says(of={"n2": CLOSED}), "1 node(s) were closed, 2 Insufficient cpu.", id="sorted as texts, number first"
        ),
        pytest.param(
            Says(of={"n1": unschedulable("Insufficient cpu", "Insufficient memory")}),
            "1 Insufficient memory, 3 Insufficient cpu.",
            id="every reason of a node is counted",
        ),
        pytest.param(
            Says(of={"n1": unschedulable("twice", "twice"), "n2": CLOSED, "n3": CLOSED}),
            "2 node(s) were closed, 2 twice.",
            id="as often as it is given",
        ),
        pytest.param(Says(of={"n1": ODD, "n2": ODD, "n3": ODD}), "3 wait for it.", id="waiting is a reason too"),
        pytest.param(Says(of=dict.fromkeys(("n1", "n2", "n3"), unschedulable())), "", id="no reasons are no reasons"),
        pytest.param(Says(before=CLOSED), "node(s) were closed.", id="of all nodes at once, and not counted"),
        pytest.param(Says(before=unschedulable("a", "b")), "a, b.", id="for two reasons"),
        pytest.param(
            Says(before=NodeSubset(frozenset(("n1",)))),
            "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [Says].",
            id="nodes left out",
        ),
        pytest.param(
            Says(before=NodeSubset(frozenset())), "node(s) didn't satisfy plugin Says.", id="all of them left out"
        ),
        pytest.param(
            SaysAfter(after=unschedulable("no victims")), "3 Insufficient cpu. no victims", id="and no room can be made"
        ),
        pytest.param(
            SaysAfter(before=CLOSED, after=unschedulable("no victims", "none")),
            "node(s) were closed. no victims, none",
            id="whoever said no",
        ),
        pytest.param(SaysAfter(after=unschedulable()), "3 Insufficient cpu.", id="or nothing is said about room"),
    ],
)
def test_what_an_operator_reads(plugin, message):
    core = scheduler(*(node(name) for name in ("n1", "n2", "n3")), pod("a"), plugins=[plugin])
    tick(core)
    told = f" {message}" if message else ""
    assert core.why("default/a").message == f"0/3 nodes are available:{told}"
