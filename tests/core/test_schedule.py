"""The algorithm: which nodes are looked at, who says no, which node is best, and what is said when none is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.core.little import Fit

from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.trial import Trial
from kubesched.core.core import Core
from kubesched.core.schedule import enough
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.hooks import NodeSubset
from kubesched.framework.profile import Profile
from kubesched.framework.records import State
from kubesched.framework.status import SKIP, SUCCESS, Status, pending, unresolvable, unschedulable
from kubesched.framework.vector import Verdict
from kubesched.testing import node, observe, pod, scheduler, tick


def no_boards(*objects: Any, plugins: Any = (), **settings: Any) -> Core:
    """A core that works everything out; ties go to the smallest name where nothing else is said."""
    profile = Profile(*plugins, **{"tie": "name", **settings})
    return scheduler(*objects, profile=profile, boards=False)


def numbered(count: int) -> list[Any]:
    return [node(f"n{i:03}") for i in range(count)]


def decided(core: Core, name: str = "a", **asked: Any) -> Decision:
    observe(core, pod(name, **asked))
    tick(core)
    decision = core.why(f"default/{name}")
    assert decision is not None
    return decision


class Where:
    """Turns down the nodes a function names, and writes down whom it was asked about."""

    def __init__(self, fits: Callable[[str], bool] = lambda name: True, name: str = "Where") -> None:
        self.name, self.fits = name, fits
        self.asked: list[str] = []

    def filter(self, cycle, pod, node) -> Status:
        self.asked.append(node.name)
        return SUCCESS if self.fits(node.name) else unschedulable(f"not for {self.name}")


class Mark:
    """Scores nodes by a table; others get 0."""

    def __init__(self, marks: dict[str, int] | None = None, name: str = "Mark") -> None:
        self.name, self.marks = name, marks or {}
        self.pods: list[str] = []

    def pre_score(self, cycle, pod, nodes) -> Status:
        self.pods.append(pod.name)
        return SUCCESS

    def score(self, cycle, pod, node) -> int:
        return self.marks.get(node.name, 0)


# ── how many nodes are enough ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("percentage", "count", "wanted"),
    [
        (None, 10, 10),
        (None, 5000, 5000),  # not said: every node
        (0, 99, 99),  # an explicit nought is adaptive, and begins at a hundred
        (0, 100, 100),
        (0, 1000, 420),
        (0, 6000, 300),  # 50 - 48 is less than 5
        (40, 10, 10),
        (40, 1000, 400),
        (40, 6000, 2400),
        (10, 150, 100),
        (100, 6000, 6000),
    ],
)
def test_the_three_meanings_of_the_percentage(percentage: int | None, count: int, wanted: int) -> None:
    assert enough(Profile(Mark(), percentage_of_nodes_to_score=percentage), count) == wanted


def test_without_anybody_to_score_one_is_enough() -> None:
    assert enough(Profile(Fit()), 5000) == 1
    assert enough(Profile(Fit()), 0) == 0


# ── the rotation ─────────────────────────────────────────────────────────────────────────────────────────────


def test_searches_take_turns_in_going_first() -> None:
    core = no_boards(*numbered(500), plugins=[Where(), Mark()], percentage_of_nodes_to_score=30)
    starts = []
    for i in range(20):
        starts.append(core.rotation)
        decision = decided(core, f"p{i}")
        assert len(decision.feasible) == 150
    assert starts == [i * 150 % 500 for i in range(20)]


def test_the_search_ends_with_one_more_than_enough_which_does_not_count() -> None:
    where = Where(lambda name: int(name[1:]) % 2 == 0)
    core = no_boards(*numbered(300), plugins=[where, Mark()], percentage_of_nodes_to_score=34)
    decision = decided(core)
    assert decision.feasible_nodes == [f"n{i:03}" for i in range(0, 204, 2)]
    assert len(decision.rejected) == 102, "up to the hundred-and-third that fits, which is dropped"
    assert core.rotation == 204
    assert decision.evaluated == 204


def test_a_search_goes_round_the_end() -> None:
    core = no_boards(*numbered(200), plugins=[Where(), Mark()], percentage_of_nodes_to_score=50)
    core.rotation = 150
    decision = decided(core)
    assert decision.feasible_nodes == [f"n{i % 200:03}" for i in range(150, 250)]
    assert core.rotation == 50


def test_every_node_is_looked_at_where_nothing_is_said() -> None:
    where = Where()
    core = no_boards(*numbered(200), plugins=[where, Mark({"n199": 1})])
    assert decided(core).node == "n199"
    assert len(where.asked) == 200
    assert core.rotation == 0


def test_the_rotation_counts_only_nodes_that_were_judged() -> None:
    class Some:
        def pre_filter(self, cycle, pod, nodes) -> NodeSubset:
            return NodeSubset(frozenset({"n001", "n003", "stranger"}))

        def filter(self, cycle, pod, node) -> Status:
            return unschedulable("no")

    core = no_boards(*numbered(9), plugins=[Some(), Mark()])
    decided(core)
    assert core.rotation == 2


# ── who says no ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_filter_is_asked_only_about_nodes_the_earlier_ones_let_through() -> None:
    first, second = Where(lambda name: name != "n000", name="First"), Where(lambda name: name == "n002", name="Second")
    core = no_boards(*numbered(3), plugins=[first, second])
    decision = decided(core)
    assert decision.node == "n002"
    assert second.asked == ["n001", "n002"]
    assert decision.status("n000").plugin == "First"
    assert decision.status("n001").plugin == "Second"
    assert decision.rejectors == {"First", "Second"}


def test_reasons_are_counted_and_sorted_as_texts() -> None:
    few, nobody = Where(lambda name: name in ("n000", "n001"), "B"), Where(lambda _: False, "A")
    core = no_boards(*numbered(12), plugins=[few, nobody])
    assert decided(core).message == "0/12 nodes are available: 10 not for B, 2 not for A."


def test_a_no_for_all_nodes_is_the_message_and_counts_for_every_node() -> None:
    class Never:
        def pre_filter(self, cycle, pod, nodes) -> Status:
            return unresolvable("not today")

        def filter(self, cycle, pod, node) -> Status:
            raise AssertionError("nobody is asked any more")

    decision = decided(no_boards(*numbered(3), plugins=[Never()]))
    assert decision.message == "0/3 nodes are available: not today."
    assert decision.rejectors == {"Never"}
    assert {decision.status(f"n00{i}").reasons for i in range(3)} == {("not today",)}


def test_who_narrows_the_search_is_a_rejector_though_its_filter_never_says_no() -> None:
    class Only:
        def pre_filter(self, cycle, pod, nodes) -> NodeSubset:
            return NodeSubset(frozenset({"n001"}))

    core = no_boards(*numbered(3), plugins=[Only(), Where(lambda _: False)])
    decision = decided(core)
    assert decision.rejectors == {"Only", "Where"}
    assert decision.message == (
        "0/3 nodes are available: 1 not for Where, 2 node(s) didn't satisfy plugin(s) [Only]."
    )


def test_who_skips_is_not_asked_and_whom_others_do_not_follow() -> None:
    class Skips(Where):
        def pre_filter(self, cycle, pod, nodes) -> Status:
            return SKIP

    skipping = Skips(lambda _: False)
    decision = decided(no_boards(*numbered(2), plugins=[skipping, Where(name="Other")]))
    assert decision.placed
    assert skipping.asked == []


def test_who_waits_for_somebody_outside_is_told_apart() -> None:
    class Waits:
        def filter(self, cycle, pod, node) -> Status:
            return pending("a claim is being made")

    decision = decided(no_boards(*numbered(2), plugins=[Waits()]))
    assert decision.pending == {"Waits"}
    assert decision.rejectors == {"Waits"}


# ── promised room ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_promised_node_is_tried_first_and_alone() -> None:
    where = Where()
    core = no_boards(*numbered(5), plugins=[where, Mark({"n004": 9})])
    decision = decided(core, nominated="n002")
    assert decision.node == "n002"
    assert where.asked == ["n002"]
    assert decision.totals is None
    assert core.rotation == 0, "the search has not begun"


def test_a_promised_node_that_does_not_fit_any_more_is_followed_by_the_whole_search() -> None:
    core = no_boards(*numbered(5), plugins=[Where(lambda name: name != "n002"), Mark({"n004": 9})])
    decision = decided(core, nominated="n002")
    assert decision.node == "n004"
    assert decision.status("n002").plugin == "Where"


def test_a_promised_node_that_is_gone_is_forgotten() -> None:
    assert decided(no_boards(*numbered(2), plugins=[Where()]), nominated="gone").placed


@pytest.mark.parametrize(("priority", "fits"), [(0, False), (5, False), (6, True)])
def test_room_promised_to_a_pod_of_the_same_or_higher_priority_is_taken(priority: int, fits: bool) -> None:
    core = no_boards(node("n1", cpu=2), plugins=[Fit()])
    observe(core, pod("promised", cpu=9, priority=5, nominated="n1"))
    tick(core)
    assert core.state("default/promised") is State.PARKED
    core.queue.nominate(_info(core, "promised"), "n1")
    decision = decided(core, cpu=2, priority=priority)
    assert decision.placed is fits


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    core = no_boards(node("n1", cpu=2), plugins=[Fit()])
    observe(core, pod("a", cpu=2, nominated="n1"))
    core.queue.nominate(_info(core, "a"), "n1")
    tick(core)
    assert core.why("default/a").placed


def _info(core: Core, name: str) -> PodInfo:
    return PodInfo(core.mirror.pods[f"default/{name}"])


# ── which is best ────────────────────────────────────────────────────────────────────────────────────────────


def test_totals_are_the_sums_of_weighted_scores() -> None:
    one, two = Mark({"n000": 10, "n001": 4}, "One"), Mark({"n001": 3}, "Two")
    core = no_boards(*numbered(2), plugins=[one, two], weights={"Two": 3})
    decision = decided(core)
    assert decision.scores_of("n000") == {"One": 10, "Two": 0}
    assert decision.scores_of("n001") == {"One": 4, "Two": 9}
    assert decision.totals is not None
    assert decision.totals.tolist() == [10, 13]
    assert decision.node == "n001"


def test_a_lone_node_is_not_scored() -> None:
    mark = Mark()
    core = no_boards(*numbered(3), plugins=[Where(lambda name: name == "n001"), mark])
    assert decided(core).node == "n001"
    assert mark.pods == []


def test_who_skips_scoring_is_worth_nothing() -> None:
    class Indifferent(Mark):
        def pre_score(self, cycle, pod, nodes) -> Status:
            return SKIP

    decision = decided(no_boards(*numbered(2), plugins=[Indifferent({"n001": 50}), Mark({"n000": 1}, "Other")]))
    assert decision.node == "n000"


def test_normalizing_comes_before_weights_and_sees_all_feasible_nodes_at_once() -> None:
    seen: list[list[int]] = []

    class Stretched(Mark):
        def normalize_score(self, cycle, pod, scores):
            seen.append(scores.tolist())
            return scores * 100 // max(1, int(scores.max()))

    core = no_boards(*numbered(2), plugins=[Stretched({"n000": 1, "n001": 2})], weights={"Mark": 2})
    decision = decided(core)
    assert seen == [[1, 2]]
    assert decision.scores_of("n000") == {"Mark": 100}
    assert decision.scores_of("n001") == {"Mark": 200}


def test_without_scores_every_node_is_worth_one() -> None:
    class Everywhere:
        def filter(self, cycle, pod, node) -> Status:
            return SUCCESS

        def score(self, cycle, pod, node) -> int:
            return 0

    decision = decided(no_boards(*numbered(2), plugins=[Everywhere()]))
    assert decision.best == ("n000", "n001")


@pytest.mark.parametrize(
    ("tie", "order", "picked"),
    [("name", ("n2", "n1", "n3"), "n1"), ("first", ("n2", "n1", "n3"), "n2"), ("first", ("n3", "n1", "n2"), "n3")],
)
def test_ties_go_by_the_rule(tie: str, order: tuple[str, ...], picked: str) -> None:
    core = no_boards(*map(node, order), plugins=[Mark({"n1": 5, "n2": 5, "n3": 5})], tie=tie)
    decision = decided(core)
    assert decision.node == picked
    assert decision.tie_rule == tie
    assert decision.best == ("n1", "n2", "n3")


def test_seeded_ties_are_the_same_for_the_same_seed_and_fair_over_many() -> None:
    def picks(seed: int) -> list[str]:
        core = scheduler(*numbered(4), profile=Profile(Mark()), seed=seed)
        return [decided(core, f"p{i}").node for i in range(200)]

    assert picks(1) == picks(1)
    assert picks(1) != picks(2)
    counts = np.unique(picks(3), return_counts=True)[1]
    assert counts.min() > 25, "nobody is left out"


# ── two tiers ────────────────────────────────────────────────────────────────────────────────────────────────


class Scalar:
    """Keeps pods off nodes that have no room, and prefers the emptier; one node at a time."""

    name = "Room"

    def filter(self, cycle, pod, node) -> Status:
        free = node.allocatable("cpu") - node.requested("cpu")
        return SUCCESS if pod.requests.get("cpu", 0) <= free else unschedulable("no room")

    def score(self, cycle, pod, node) -> int:
        return min(100, (node.allocatable("cpu") - node.requested("cpu")) // 1000)


class Columns:
    """The same, said of all nodes at once and nothing else."""

    name = "Room"

    def filter_all(self, cycle, pod, nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        verdict.reject(pod.requests.get("cpu", 0) > self._free(nodes), "no room")
        return verdict

    def score_all(self, cycle, pod, nodes):
        return np.minimum(100, self._free(nodes) // 1000)

    def _free(self, nodes):
        column = nodes.table.resource_column("cpu")
        return nodes.allocatable[:, column] - nodes.requested[:, column]


class Evicting:
    """Looks, on a trial, where the pod would fit without the pods that are there."""

    def post_filter(self, cycle, pod, rejected) -> Status:
        for one in cycle.nodes:
            with Trial(cycle.table) as trial:
                for other in list(one.pods):
                    trial.evict(other, one.name)
                cycle.note(f"without its pods {one.name} would {'do' if cycle.fits(one, trial).ok else 'not do'}")
        return unschedulable("only asking")


@pytest.mark.parametrize("tier", [Scalar, Columns])
def test_either_tier_alone_is_a_whole_plugin(tier: type) -> None:
    core = no_boards(node("n1", cpu=4), node("n2", cpu=8), plugins=[tier(), Evicting()])
    assert decided(core, "a", cpu=2).node == "n2"
    assert decided(core, "b", cpu=3).node == "n2"
    assert decided(core, "c", cpu=4).node == "n1"

    promised = decided(core, "d", cpu=3, nominated="n2")
    assert (promised.node, promised.outcome) == ("n2", Outcome.PLACED)

    refused = decided(core, "e", cpu=6)
    assert refused.message.startswith("0/2 nodes are available: 2 no room.")
    assert refused.notes == ["without its pods n1 would not do", "without its pods n2 would do"]


@pytest.mark.parametrize("tier", [Scalar, Columns])
def test_either_tier_says_the_same_of_every_node(tier: type) -> None:
    core = no_boards(*(node(f"n{i}", cpu=i) for i in range(1, 9)), plugins=[tier()])
    decision = core.what_if(pod("a", cpu=5))
    assert decision.feasible_nodes == ["n5", "n6", "n7", "n8"]
    assert decision.totals is not None
    assert decision.totals.tolist() == [5, 6, 7, 8]
    assert {decision.status(f"n{i}").reasons for i in range(1, 5)} == {("no room",)}
