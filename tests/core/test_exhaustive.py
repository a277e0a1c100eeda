"""Asking every filter about every node explains a decision; it never changes it."""

from kubesched.framework.decision import Outcome
from kubesched.framework.status import SUCCESS, Status, unresolvable, unschedulable
from kubesched.testing import node, pod, scheduler


class Early:
    """Turns n1 down."""

    def filter(self, cycle, pod, node) -> Status:
        return unschedulable("early") if node.name == "n1" else SUCCESS


class Late:
    """Cannot answer about n1, which nobody asks it about."""

    def filter(self, cycle, pod, node) -> Status:
        assert node.name != "n1", "n1 has gone"
        return unschedulable("late") if node.name == "n2" else SUCCESS


class BrokenScore:
    def score(self, cycle, pod, node) -> int:
        raise ValueError("no idea")


class Refusing:
    """Says no before the filters are told anything, and has a filter that needs to be told."""

    def pre_filter(self, cycle, pod, nodes) -> Status:
        return unresolvable("never")

    def filter(self, cycle, pod, node) -> Status:
        return cycle.get(Status)


def exhausted(*plugins, nodes=("n1", "n2", "n3")):
    core = scheduler(*(node(name) for name in nodes), plugins=plugins)
    return core.what_if(pod("a"), exhaustive=True)


def test_every_filter_is_asked_about_every_node() -> None:
    class Other:
        def filter(self, cycle, pod, node) -> Status:
            return unschedulable("other")

    decision = exhausted(Early(), Other())

    assert decision.verdicts is not None
    assert decision.verdicts["Early"].counts() == {"early": 1}
    assert decision.verdicts["Other"].counts() == {"other": 3}
    assert decision.rejected.counts() == {"early": 1, "other": 2}


def test_a_filter_that_only_fails_where_nobody_asked_leaves_a_note() -> None:
    decision = exhausted(Early(), Late())

    assert decision.outcome is Outcome.PLACED
    assert decision.node == "n3"
    assert list(decision.verdicts or {}) == ["Early"]
    assert any("Late could not be asked about every node" in note for note in decision.notes)


def test_the_only_node_that_fits_is_scored_but_need_not_be() -> None:
    decision = exhausted(Early(), Late(), BrokenScore())

    assert decision.node == "n3"
    assert decision.totals is None
    assert any("no idea" in note for note in decision.notes)


def test_nobody_is_asked_after_a_no_for_all_nodes() -> None:
    decision = exhausted(Refusing())

    assert decision.message == "0/3 nodes are available: never."
    assert decision.verdicts == {}
