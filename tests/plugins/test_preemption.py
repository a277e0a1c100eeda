"""Whose eviction makes room for a pod, on which node, and what is said where none does."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.plugins.preempting import NOW, Crowd, budget, node, outcome, pod, profile, said
from tests.plugins.small_cluster import wakes
from tests.plugins.storage import claim
from tests.plugins.storage import pod as pod_with_claims

from kubesched.api.objects import KubeObject, Pod, PodDisruptionBudget
from kubesched.api.time import Instant, seconds
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.core import Core
from kubesched.core.messages import Completed, Evict, Observed, Tick
from kubesched.core.schedule import schedule
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import ASSIGNED_POD_DELETE
from kubesched.framework.hooks import Nomination
from kubesched.framework.profile import Profile
from kubesched.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from kubesched.framework.steps import Answer
from kubesched.plugins.node_resources_fit import NodeResourcesFit
from kubesched.plugins.preemption import (
    Budgets,
    Candidate,
    DefaultPreemption,
    DefaultPreemptionArgs,
    Victims,
    candidates,
    pick_one,
    price,
    validate_default_preemption,
)

VIP = pod("vip", 100, 4)


# ── who must leave ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("there", "wanted", "victims"),
    [
        pytest.param([pod("a", 1, 4, on="n1")], VIP, ["a"], id="the only one"),
        pytest.param([pod("a", 1, 2, on="n1"), pod("b", 2, 2, on="n1")], VIP, ["b", "a"], id="all, highest first"),
        pytest.param(
            [pod("a", 1, 2, on="n1"), pod("b", 2, 2, on="n1")], pod("vip", 100, 2), ["a"], id="the higher may stay"
        ),
        pytest.param(
            [pod("old", 1, 2, on="n1", started="01:00"), pod("new", 1, 2, on="n1", started="02:00")],
            pod("vip", 100, 2),
            ["new"],
            id="of equals, the one that runs longer may stay",
        ),
        pytest.param(
            [pod("new", 1, 2, on="n1", started="02:00"), pod("old", 1, 2, on="n1", started="01:00")],
            pod("vip", 100, 2),
            ["new"],
            id="whoever came to the node first",
        ),
        pytest.param(
            [pod("old", 1, 2, on="n1", started="01:00"), pod("waits", 1, 2, on="n1")],
            pod("vip", 100, 2),
            ["waits"],
            id="one that has not started yet runs least",
        ),
        pytest.param(
            [pod("high", 200, 2, on="n1"), pod("low", 1, 2, on="n1")],
            pod("vip", 100, 2),
            ["low"],
            id="never a higher one",
        ),
        pytest.param(
            [pod("peer", 100, 2, on="n1"), pod("low", 1, 2, on="n1")], pod("vip", 100, 2), ["low"], id="never an equal"
        ),
        pytest.param(
            [pod("large", 2, 3, on="n1"), pod("small", 1, 1, on="n1")],
            pod("vip", 100, 3),
            ["large"],
            id="a lower one may stay where a higher one cannot",
        ),
        pytest.param([pod("a", -5, 4, on="n1")], pod("vip", 0, 4), ["a"], id="priorities below zero are priorities"),
    ],
)
def test_the_fewest_and_lowest_leave(there: Sequence[Pod], wanted: Pod, victims: list[str]) -> None:
    assert outcome(Crowd(node("n1"), *there).decide(wanted)) == ("n1", victims)


def test_pods_that_keep_the_pod_away_leave_and_others_stay() -> None:
    away = {"labelSelector": {"matchLabels": {"app": "noisy"}}, "topologyKey": "kubernetes.io/hostname"}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [away]}
    wanted = pod("vip", 100, 1, affinity={"podAntiAffinity": terms})
    there = [pod("noisy", 5, 1, on="n1", labels={"app": "noisy"}), pod("calm", 1, 1, on="n1")]
    assert outcome(Crowd(node("n1"), *there).decide(wanted)) == ("n1", ["noisy"])


def test_the_user_of_an_exclusive_claim_leaves_where_it_is() -> None:
    holder = pod_with_claims("holder", "mine", on="n2", priority=1)
    crowd = Crowd(node("n1"), node("n2"), claim("mine", modes=["ReadWriteOncePod"]), holder, pod("x", 1, 1, on="n1"))
    wanted = pod_with_claims("vip", "mine", priority=100)
    decision = crowd.decide(wanted)
    assert outcome(decision) == ("n2", ["holder"])


def test_the_user_of_an_exclusive_claim_stays_if_it_is_as_high() -> None:
    holder = pod_with_claims("holder", "mine", on="n1", priority=100)
    crowd = Crowd(node("n1"), claim("mine", modes=["ReadWriteOncePod"]), holder)
    decision = crowd.decide(pod_with_claims("vip", "mine", priority=100))
    text = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    assert (outcome(decision), said(decision)) == (("", []), text)


def test_room_promised_to_a_higher_pod_is_not_given_away() -> None:
    crowd = Crowd(node("n1", 4), pod("low", 1, 4, on="n1"))
    promised = {"n1": [pod("boss", 200, 3)]}
    decision = crowd.decide(pod("vip", 100, 2), nominated=promised)
    assert outcome(decision) == ("", [])
    assert said(decision) == "preemption: 0/1 nodes are available: 1 Insufficient cpu."


def test_room_promised_to_a_lower_pod_is() -> None:
    crowd = Crowd(node("n1", 4), pod("low", 1, 4, on="n1"))
    assert outcome(crowd.decide(VIP, nominated={"n1": [pod("mid", 50, 3)]})) == ("n1", ["low"])


def test_pods_alike_are_asked_about_once() -> None:
    asked: list[int] = []

    class Watched(NodeResourcesFit):
        filter_all = None  # asked node by node, so that it can be watched

        def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
            asked.append(node.pod_count)
            return super().filter(cycle, pod, node)

    there = [pod(f"p{i}", 1, 1, on="n1", started="01:00") for i in range(4)]
    crowd = Crowd(node("n1"), *there)
    decision = schedule(crowd.cycle(pod("vip", 100, 3)), Profile(Watched(), DefaultPreemption()))
    assert outcome(decision) == ("n1", ["p1", "p2", "p3"])
    assert asked == [4, 0, 1, 2], "with all, with none, with the first back, with two; the others need no asking"


def test_asking_leaves_no_trace() -> None:
    crowd = Crowd(node("n1"), pod("a", 1, 2, on="n1"), pod("b", 2, 2, on="n1"))
    table = crowd.mirror.table
    before = [list(table.pods[0]), table.requested.tolist(), table.generation.tolist(), table.clock]
    crowd.decide(VIP)
    assert [list(table.pods[0]), table.requested.tolist(), table.generation.tolist(), table.clock] == before


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────────

WEB, DB = {"app": "web"}, {"app": "db"}


def test_a_protected_pod_is_brought_back_before_a_more_important_one() -> None:
    there = [pod("web", 1, 2, on="n1", labels=WEB), pod("high", 5, 2, on="n1")]
    assert outcome(Crowd(node("n1"), *there).decide(pod("vip", 100, 2))) == ("n1", ["web"])
    protected = Crowd(node("n1"), *there, budget("web", 0, WEB))
    assert outcome(protected.decide(pod("vip", 100, 2))) == ("n1", ["high"])


def test_victims_are_in_order_of_importance_protected_or_not() -> None:
    there = [pod("web", 1, 1, on="n1", labels=WEB), pod("high", 5, 2, on="n1"), pod("low", 0, 1, on="n1")]
    crowd = Crowd(node("n1"), *there, budget("web", 0, WEB))
    assert outcome(crowd.decide(VIP)) == ("n1", ["high", "web", "low"])


def names(pods: Sequence[PodInfo]) -> list[str]:
    return [one.name for one in pods]


@pytest.mark.parametrize(
    ("budgets", "protected"),
    [
        pytest.param([], [], id="no budget"),
        pytest.param([budget("b", 0, WEB)], ["a", "b"], id="nothing allowed"),
        pytest.param([budget("b", 1, WEB)], ["b"], id="one allowed: the more important uses it up"),
        pytest.param([budget("b", 2, WEB)], [], id="both allowed"),
        pytest.param([budget("b", -1, WEB)], ["a", "b"], id="less than nothing"),
        pytest.param([budget("b", 0, WEB, namespace="x")], [], id="a budget of another namespace"),
        pytest.param([budget("b", 0)], [], id="an empty selector means nobody"),
        pytest.param([budget("b", 0, selector=None)], [], id="nor does no selector"),
        pytest.param(
            [budget("b", 0, selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]})],
            ["a", "b", "c"],
            id="an expression",
        ),
        pytest.param([budget("b", 0, WEB, disrupted=["a"])], ["b"], id="one that is going anyway is not protected"),
        pytest.param([budget("b", 1, WEB, disrupted=["a"])], [], id="nor does it draw on the budget"),
        pytest.param([budget("b", 1, WEB), budget("d", 0, DB)], ["b", "c"], id="two budgets"),
        pytest.param([budget("b", 1, WEB), budget("d", 0, WEB)], ["a", "b"], id="the stricter of two decides"),
        pytest.param(
            [budget("b", 0, selector={"matchExpressions": [{"key": "app", "operator": "Nonsense"}]})],
            [],
            id="a budget nobody can read protects nobody",
        ),
    ],
)
def test_whose_eviction_would_overdraw_a_budget(budgets: list[PodDisruptionBudget], protected: list[str]) -> None:
    pods = [pod("a", 5, labels=WEB), pod("b", 4, labels=WEB), pod("c", 3, labels=DB), pod("d", 2)]
    kept, others = Budgets(Objects(budgets)).split([PodInfo(one) for one in pods])
    assert names(kept) == protected
    assert names(others) == [name for name in "abcd" if name not in protected]


# ── which node ───────────────────────────────────────────────────────────────────────────────────────────────


def full(name: str, *pods: Pod) -> list[KubeObject]:
    return [node(name, 4), *pods]


@pytest.mark.parametrize(
    ("objects", "chosen"),
    [
        pytest.param(
            [
                *full("n1", pod("a", 1, 4, on="n1", labels=WEB)),
                *full("n2", pod("b", 50, 4, on="n2")),
                budget("web", 0, WEB),
            ],
            "n2",
            id="fewest budgets overdrawn, though the victim is higher",
        ),
        pytest.param(
            [*full("n1", pod("a", 9, 4, on="n1")), *full("n2", pod("b", 8, 2, on="n2"), pod("c", 8, 2, on="n2"))],
            "n2",
            id="the lowest highest victim, though there are two",
        ),
        pytest.param(
            [
                *full("n1", pod("a", 9, 2, on="n1"), pod("b", 8, 2, on="n1")),
                *full("n2", pod("c", 9, 2, on="n2"), pod("d", 1, 2, on="n2")),
            ],
            "n2",
            id="the lowest sum of priorities",
        ),
        pytest.param(
            [
                *full("n1", pod("a", 9, 2, on="n1"), pod("b", -9, 2, on="n1")),
                *full("n2", pod("c", 9, 4, on="n2")),
            ],
            "n2",
            id="a victim below zero is one more victim all the same",
        ),
        pytest.param(
            [
                *full("n1", pod("a", 9, 4, on="n1", started="01:00")),
                *full("n2", pod("b", 9, 4, on="n2", started="02:00")),
            ],
            "n2",
            id="the victim that started last",
        ),
        pytest.param(
            [
                *full("n1", pod("a", 9, 2, on="n1", started="03:00"), pod("b", 9, 2, on="n1", started="01:00")),
                *full("n2", pod("c", 9, 2, on="n2", started="02:00"), pod("d", 9, 2, on="n2", started="02:30")),
            ],
            "n2",
            id="by the first to start of the highest on each node",
        ),
        pytest.param(
            [
                *full("n1", pod("a", 9, 2, on="n1", started="02:00"), pod("b", 1, 2, on="n1", started="09:00")),
                *full("n2", pod("c", 9, 2, on="n2", started="03:00"), pod("d", 1, 2, on="n2", started="01:00")),
            ],
            "n2",
            id="only the highest count for that",
        ),
        pytest.param(
            [*full("n1", pod("a", 9, 4, on="n1", started="01:00")), *full("n2", pod("b", 9, 4, on="n2"))],
            "n2",
            id="one that has not started yet starts last",
        ),
        pytest.param(
            [*full("n1", pod("a", 9, 4, on="n1")), *full("n2", pod("b", 200, 4, on="n2"))],
            "n1",
            id="the only node where it helps",
        ),
        pytest.param(
            [*full("n1", pod("a", 1, 4, on="n1")), *full("n2", pod("b", 1, 4, on="n2"))],
            "n1",
            id="the first of equals",
        ),
    ],
)
def test_the_victims_that_are_least_missed(objects: Sequence[KubeObject], chosen: str) -> None:
    assert outcome(Crowd(*objects).decide(VIP))[0] == chosen


def test_fewer_victims_are_only_better_where_their_priorities_add_up_to_the_same() -> None:
    few = Victims((PodInfo(pod("a", 2**31 - 1)), PodInfo(pod("b", 0))), 0)
    # With every priority lifted by 2^31 these three weigh as much as those two.
    many = Victims((PodInfo(pod("c", 2**31 - 1)), PodInfo(pod("d", -(2**30))), PodInfo(pod("e", -(2**30)))), 0)
    assert price(few, NOW)[:3] == price(many, NOW)[:3]
    found = [Candidate("many", many), Candidate("few", few)]
    assert pick_one(found, NOW) == Candidate("few", few)


def test_nothing_to_pick_from() -> None:
    assert pick_one([], NOW) is None


# ── how far to search ────────────────────────────────────────────────────────────────────────────────────────


def equal_nodes(count: int) -> Crowd:
    nodes = [node(f"n{i}") for i in range(count)]
    return Crowd(*nodes, *(pod(f"p{i}", 1, 4, on=f"n{i}") for i in range(count)))


@pytest.mark.parametrize(
    ("args", "offset", "tried"),
    [
        pytest.param(DefaultPreemptionArgs(), 0, "n0 n1 n2 n3 n4 n5", id="at least a hundred"),
        pytest.param(
            DefaultPreemptionArgs(min_candidate_nodes_percentage=50, min_candidate_nodes_absolute=1),
            0,
            "n0 n1 n2",
            id="a share",
        ),
        pytest.param(
            DefaultPreemptionArgs(min_candidate_nodes_percentage=1, min_candidate_nodes_absolute=2),
            0,
            "n0 n1",
            id="but at least so many",
        ),
        pytest.param(
            DefaultPreemptionArgs(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=2),
            5,
            "n5 n0",
            id="from where luck says, and round",
        ),
        pytest.param(
            DefaultPreemptionArgs(min_candidate_nodes_percentage=100, min_candidate_nodes_absolute=0),
            2,
            "n2 n3 n4 n5 n0 n1",
            id="all",
        ),
    ],
)
def test_the_search_ends_when_enough_are_found(args: DefaultPreemptionArgs, offset: int, tried: str) -> None:
    crowd = equal_nodes(6)
    tried_names: list[str] = []
    cycle = crowd.cycle(VIP, offset=offset)
    usual = NodeResourcesFit.filter

    class Watched(NodeResourcesFit):
        filter_all = None  # asked node by node, so that it can be watched

        def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
            if not node.pod_count:
                tried_names.append(node.name)
            return usual(self, cycle, pod, node)

    decision = schedule(cycle, Profile(Watched(), DefaultPreemption(args)))
    assert tried_names == tried.split()
    assert outcome(decision)[0] == tried.split()[0]


def test_the_search_goes_on_until_a_node_is_found_where_nobody_is_protected() -> None:
    objects = [*full("n1", pod("a", 1, 4, on="n1", labels=WEB)), *full("n2", pod("b", 9, 4, on="n2"))]
    crowd = Crowd(*objects, budget("web", 0, WEB))
    one = DefaultPreemptionArgs(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=1)
    assert outcome(crowd.decide(VIP, one)) == ("n2", ["b"])


def test_where_everybody_is_protected_the_least_harm_is_done() -> None:
    objects = [
        *full("n1", pod("a", 1, 2, on="n1", labels=WEB), pod("b", 1, 2, on="n1", labels=WEB)),
        *full("n2", pod("c", 9, 4, on="n2", labels=WEB)),
    ]
    assert outcome(Crowd(*objects, budget("web", 0, WEB)).decide(VIP)) == ("n2", ["c"])


def test_the_search_can_be_used_by_itself() -> None:
    crowd = equal_nodes(3)
    cycle = crowd.cycle(VIP, offset=1)
    schedule(cycle, profile())
    search = candidates(cycle, cycle.pod, cycle.nodes.rows, 2)
    assert [(one.node, names(one.victims.pods)) for one in search.found] == [("n1", ["p1"]), ("n2", ["p2"])]
    assert (search.statuses, search.errors) == ({}, [])


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("objects", "wanted", "text"),
    [
        pytest.param(
            [node("n1"), pod("a", 100, 4, on="n1")],
            VIP,
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="nobody is lower",
        ),
        pytest.param(
            [node("n1", 2)],
            VIP,
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            id="the node is too small",
        ),
        pytest.param(
            [node("n1", cordoned=True), pod("a", 1, 4, on="n1")],
            VIP,
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            id="the node is closed",
        ),
        pytest.param(
            [node("n1"), pod("a", 1, 2, on="n1"), pod("b", 100, 2, on="n1")],
            VIP,
            "0/1 nodes are available: 1 Insufficient cpu.",
            id="the lower ones are not enough",
        ),
        pytest.param(
            [
                node("n1", 2),
                node("n2"),
                node("n3"),
                node("n4"),
                pod("a", 100, 4, on="n2"),
                pod("b", 100, 4, on="n3"),
                pod("c", 1, 1, on="n4"),
                pod("d", 100, 3, on="n4"),
            ],
            VIP,
            "0/4 nodes are available: 1 Insufficient cpu, 1 Preemption is not helpful for scheduling, "
            "2 No preemption victims found for incoming pod.",
            id="every node has its reason",
        ),
    ],
)
def test_what_is_said_where_evictions_do_not_help(objects: Sequence[KubeObject], wanted: Pod, text: str) -> None:
    decision = Crowd(*objects).decide(wanted)
    assert said(decision) == f"preemption: {text}"
    assert decision.nominate == "", "an earlier promise is taken back"
    assert decision.post_filter is not None
    assert decision.post_filter.status.code is Code.UNSCHEDULABLE
    assert decision.message.endswith(f" preemption: {text}")


def test_success_says_nothing() -> None:
    decision = equal_nodes(2).decide(VIP)
    assert decision.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert decision.nominate == "n0"


class Moody:
    """Turns down full nodes, and answers for emptied ones as told."""

    name = "Moody"

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        if node.pod_count:
            return unschedulable("full")
        answer = self.answers[node.name]
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Status)
        return answer


def moody(**answers: Any) -> Any:
    nodes = [node(name) for name in answers]
    crowd = Crowd(*nodes, *(pod(f"p-{name}", 1, 1, on=name) for name in answers))
    return schedule(crowd.cycle(VIP), Profile(Moody(answers), DefaultPreemption()))


def test_a_node_that_cannot_be_judged_does_not_spoil_the_others() -> None:
    assert outcome(moody(n1=ValueError("oops"), n2=SUCCESS)) == ("n2", ["p-n2"])


def test_where_nothing_else_was_found_errors_are_told_once_each() -> None:
    decision = moody(n1=error("oops"), n2=error("oops"), n3=error("dear"), n4=unresolvable("no"))
    assert decision.post_filter.status.code is Code.ERROR
    text = 'running "Moody" filter plugin: '
    assert said(decision) == f"preemption: [{text}oops, {text}dear]"
    assert decision.nominate is None, "nothing is known, so nothing is taken back"


def test_reasons_of_emptied_nodes_are_counted() -> None:
    decision = moody(n1=unschedulable("still"), n2=unresolvable("never"), n3=unschedulable("still"))
    assert said(decision) == "preemption: 0/3 nodes are available: 1 never, 2 still."


def test_no_nodes_at_all() -> None:
    cycle = Crowd().cycle(VIP)
    rejected = Crowd(node("n1")).decide(VIP).rejected
    answer = DefaultPreemption().post_filter(cycle, cycle.pod, rejected)
    assert answer == error("preemption: no nodes available")


def test_a_pre_filter_that_turns_the_pod_down_for_now_lets_every_node_be_tried() -> None:
    crowd = equal_nodes(2)
    cycle = crowd.cycle(VIP)
    decision = schedule(cycle, profile())
    decision.rejected.parts.clear()
    decision.rejected.absent = unschedulable("a quota")
    answer = DefaultPreemption().post_filter(cycle, cycle.pod, decision.rejected)
    assert isinstance(answer, Nomination)
    assert (answer.node, names(answer.victims)) == ("n0", ["p0"])


# ── may it? ──────────────────────────────────────────────────────────────────────────────────────────────────

BY_SCHEDULER = "PreemptionByScheduler"


def test_a_pod_may_be_told_never_to_preempt() -> None:
    decision = equal_nodes(1).decide(pod("vip", 100, 4, preemptionPolicy="Never"))
    assert said(decision) == "preemption: not eligible due to preemptionPolicy=Never."
    assert decision.nominate is None


@pytest.mark.parametrize(
    ("there", "waits"),
    [
        pytest.param(pod("a", 1, 4, on="n1", leaving=BY_SCHEDULER), True, id="a victim is on its way out"),
        pytest.param(
            pod("a", 1, 4, on="n1", leaving="DeletionByTaintManager"), False, id="it leaves for other reasons"
        ),
        pytest.param(pod("a", 1, 4, on="n1"), False, id="it does not leave"),
        pytest.param(pod("a", 100, 4, on="n1", leaving=BY_SCHEDULER), False, id="it is no victim of ours"),
    ],
)
def test_a_pod_waits_for_victims_on_the_node_it_was_promised(there: Pod, waits: bool) -> None:
    decision = Crowd(node("n1"), there).decide(pod("vip", 100, 4, nominated="n1"))
    expected = "preemption: not eligible due to a terminating pod on the nominated node."
    assert (said(decision) == expected) is waits
    assert (decision.nominate is None) is waits


def test_a_pod_does_not_wait_for_a_node_that_would_not_take_it_any_more() -> None:
    leaving = pod("a", 1, 4, on="n1", leaving=BY_SCHEDULER)
    crowd = Crowd(node("n1", cordoned=True), leaving, node("n2"), pod("b", 1, 4, on="n2"))
    assert outcome(crowd.decide(pod("vip", 100, 4, nominated="n1"))) == ("n2", ["b"])


def test_a_pod_does_not_wait_for_a_node_that_is_gone() -> None:
    crowd = Crowd(node("n2"), pod("b", 1, 4, on="n2"))
    assert outcome(crowd.decide(pod("vip", 100, 4, nominated="n1"))) == ("n2", ["b"])


# ── with the real core ───────────────────────────────────────────────────────────────────────────────────────


def test_the_preemptor_is_held_back_until_its_victims_have_been_told_to_go() -> None:
    preemption = DefaultPreemption()
    core = Core(Profile(NodeResourcesFit(), preemption))
    low = pod("low", 1, 4, on="n1")
    for obj in (node("n1"), low, VIP):
        core.handle(Observed(obj), Instant(0))
    vip = PodInfo(VIP)
    assert preemption.pre_enqueue(vip).ok

    [evict] = [effect for effect in core.handle(Tick(), Instant(0)) if isinstance(effect, Evict)]
    assert evict.pod == "default/low"
    held = preemption.pre_enqueue(vip)
    assert (held.code, held.message) == (Code.UNRESOLVABLE, "waiting for the preemption for this pod to be finished")
    assert preemption.pre_enqueue(PodInfo(pod("other", 100))).ok

    core.handle(Completed(evict.id, Answer()), Instant(0))
    assert preemption.pre_enqueue(vip).ok
    core.handle(Observed(low, gone=True), Instant(seconds(1)))
    core.handle(Tick(), Instant(seconds(1)))
    assert core.mirror.placed["uid-of-vip"].node == "n1"


def test_deletions_wake_nobody_on_their_own() -> None:
    deleted = pod("low", 1, 4, on="n1")
    assert not wakes(DefaultPreemption(), ASSIGNED_POD_DELETE, VIP, deleted, None)
    assert [hint for hint in DefaultPreemption().events_to_register() if hint.matches(ASSIGNED_POD_DELETE)]


# ── arguments ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("percentage", "absolute", "problems"),
    [
        (10, 100, []),
        (0, 1, []),
        (100, 0, []),
        (-1, 100, [("minCandidateNodesPercentage", "Invalid value: -1: not in valid range [0, 100]")]),
        (101, 100, [("minCandidateNodesPercentage", "Invalid value: 101: not in valid range [0, 100]")]),
        (10, -1, [("minCandidateNodesAbsolute", "Invalid value: -1: not in valid range [0, inf)")]),
        (
            0,
            0,
            [
                (
                    "minCandidateNodesPercentage",
                    "Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
                ),
                (
                    "minCandidateNodesAbsolute",
                    "Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage",
                ),
            ],
        ),
    ],
)
def test_arguments(percentage: int, absolute: int, problems: list[tuple[str, str]]) -> None:
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute)
    assert list(validate_default_preemption(args)) == problems
