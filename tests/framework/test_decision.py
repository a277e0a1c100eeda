"""A Decision answers whoever asks, and asking changes nothing."""

from tests.core.little import Fit, Patience

from kubesched.api.time import seconds
from kubesched.core.messages import Publish
from kubesched.framework.decision import Outcome
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
