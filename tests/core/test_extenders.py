"""Extenders: what they are asked, what their answers change, and which answers are not believed."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kubesched.api.time import seconds
from kubesched.assemble import default_profile
from kubesched.core.core import Core
from kubesched.core.messages import AnyEffect, Bind, Call, Evict, ReadPod
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.extender import Extender
from kubesched.framework.profile import Profile
from kubesched.framework.records import State
from kubesched.framework.status import SUCCESS
from kubesched.framework.steps import HttpPost
from kubesched.testing.builders import bound, node, pod
from kubesched.testing.harness import answer, fail, observe, scheduler, tick, verify

URL = "http://127.0.0.1:8888/scheduler/"
Data = Mapping[str, Any]


class Anywhere:
    """A filter that takes every node."""

    def filter(self, cycle, pod, node):
        return SUCCESS


class ByNumber:
    """node3 scores 3."""

    def score(self, cycle, pod, node):
        return int(node.name[-1])


def extender(number: int = 0, **fields: Any) -> Extender:
    return Extender(number=number, url_prefix=fields.pop("url_prefix", URL), **fields)


def profile(*extenders: Extender, plugins: tuple[Any, ...] = ()) -> Profile:
    return Profile(Anywhere(), *plugins, tie="name", extenders=extenders)


def nodes(count: int = 3):
    return [node(f"node{i}", cpu=4) for i in range(1, count + 1)]


def asked(effects: list[AnyEffect]) -> HttpPost:
    """The one question to an extender among some effects."""
    [call] = [effect for effect in effects if isinstance(effect, Call)]
    assert isinstance(call.step, HttpPost)
    return call.step


def play(core: Core, *answers: Any, at: int = 0) -> list[AnyEffect]:
    """Tick, and answer each question to an extender in turn: data, or an exception's text to fail with."""
    effects = tick(core, at)
    for said in answers:
        [call] = [effect for effect in effects if isinstance(effect, Call)]
        if isinstance(said, Failed):
            effects = fail(core, call, said.reason, said.message, code=said.code, unknown=said.unknown)
        else:
            effects = answer(core, call, data=said)
    return effects


class Failed:
    def __init__(self, reason: str = "Unreachable", message: str = "", code: int = 0, unknown: bool = False) -> None:
        self.reason, self.message, self.code, self.unknown = reason, message, code, unknown


def decided(core: Core, name: str = "default/a") -> Decision:
    decision = core.why(name)
    assert decision is not None
    return decision


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_filter_is_asked_about_whole_nodes_in_the_words_of_go() -> None:
    core = scheduler(*nodes(2), pod("a", cpu=1, labels={"app": "web"}), profile=profile(extender(filter_verb="filter")))

    step = asked(tick(core))

    assert (step.extender, step.verb) == (0, "filter")
    assert set(step.body) == {"Pod", "Nodes", "NodeNames"}
    assert step.body["NodeNames"] is None
    assert [item["metadata"]["name"] for item in step.body["Nodes"]["items"]] == ["node1", "node2"]
    assert step.body["Pod"]["metadata"]["labels"] == {"app": "web"}
    assert "kind" not in step.body["Pod"]
    assert step.body["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == 4


def test_one_that_knows_the_nodes_is_asked_by_name() -> None:
    core = scheduler(*nodes(2), pod(), profile=profile(extender(filter_verb="filter", node_cache_capable=True)))

    step = asked(tick(core))

    assert step.body["NodeNames"] == ["node1", "node2"]
    assert step.body["Nodes"] is None


def test_nobody_asks_an_extender_about_pods_that_want_nothing_it_manages() -> None:
    manages = extender(filter_verb="filter", managed_resources=("example.com/gpu",))
    core = scheduler(*nodes(1), pod("a", cpu=1), profile=profile(manages))

    [bind] = [effect for effect in tick(core) if isinstance(effect, Bind)]

    assert bind.node == "node1"


@pytest.mark.parametrize("where", ["requests", "limits"])
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_a_request_or_a_limit_of_any_container_makes_it_interested(where: str, kind: str) -> None:
    manages = extender(filter_verb="filter", managed_resources=("example.com/gpu",))
    wanting = {"name": "c", "image": "x", "resources": {where: {"example.com/gpu": 1}}}
    core = scheduler(*nodes(1), pod("a", **{kind: [wanting]}), profile=profile(manages))

    assert asked(tick(core)).verb == "filter"


# ── filter ───────────────────────────────────────────────────────────────────────────────────────────────────


def listed(*names: str) -> Data:
    return {"items": [{"metadata": {"name": name}} for name in names]}


@pytest.mark.parametrize(
    ("knows_nodes", "said", "left"),
    [
        (True, {"NodeNames": ["node2"]}, ["node2"]),
        (True, {"nodenames": ["node2"]}, ["node2"]),  # Go reads field names in any case
        (True, {"NodeNames": ["node3", "node1", "node3"]}, ["node1", "node3"]),
        (True, {"NodeNames": [], "Nodes": listed("node1")}, []),
        (True, {"NodeNames": None, "Nodes": listed("node1")}, ["node1"]),
        (False, {"NodeNames": ["node2"], "Nodes": listed("node3")}, ["node3"]),
        (False, {"Nodes": {"items": None}}, []),
        (False, {"NodeNames": ["node2"]}, []),
        (False, {}, []),
        (False, None, []),
    ],
)
def test_a_filter_leaves_the_nodes_it_names(knows_nodes: bool, said: Any, left: list[str]) -> None:
    narrow = extender(filter_verb="filter", node_cache_capable=knows_nodes)
    core = scheduler(*nodes(3), pod(), profile=profile(narrow))

    play(core, said)

    decision = decided(core)
    assert [decision.names[row] for row in decision.feasible.tolist()] == left
    assert decision.placed == bool(left)


def test_what_a_filter_says_of_the_others_is_counted_in_the_message() -> None:
    core = scheduler(*nodes(3), pod(), profile=profile(extender(filter_verb="filter", node_cache_capable=True)))

    play(
        core,
        {
            "NodeNames": [],
            "FailedNodes": {"node1": "no licence", "node2": "overruled"},
            "FailedAndUnresolvableNodes": {"node2": "wrong site", "elsewhere": "unknown to us"},
        },
    )

    assert decided(core).message == "0/3 nodes are available: 1 no licence, 1 wrong site."
    assert decided(core).rejectors == {"Extender"}
    row = core.mirror.table.row_of
    assert decided(core).rejected.status(row["node1"]).code.text == "Unschedulable"
    assert decided(core).rejected.status(row["node2"]).code.text == "UnschedulableAndUnresolvable"


def test_extenders_narrow_one_after_the_other_until_nothing_is_left() -> None:
    chain = [extender(i, filter_verb="filter", node_cache_capable=True) for i in range(3)]
    core = scheduler(*nodes(3), pod(), profile=profile(*chain))

    first = tick(core)
    second = answer(core, first[-1], data={"NodeNames": ["node1", "node3"]})
    assert asked(second).body["NodeNames"] == ["node1", "node3"]
    third = answer(core, second[-1], data={"NodeNames": []})

    assert not [effect for effect in third if isinstance(effect, Call)]
    assert decided(core).outcome is Outcome.UNSCHEDULABLE


UNBELIEVABLE = [
    ({"Error": "no database"}, "no database"),
    (
        {"NodeNames": ["node9"]},
        f'extender "{URL}" claims a filtered node "node9" which is not found in the input node list',
    ),
    ("oops", "extender at URL http://127.0.0.1:8888/scheduler/filter must answer an object, and does not"),
    ({"NodeNames": "node1"}, "extender at URL http://127.0.0.1:8888/scheduler/filter must answer a list, and does not"),
    (
        {"NodeNames": [1]},
        "extender at URL http://127.0.0.1:8888/scheduler/filter must answer a list of names, and does not",
    ),
    (
        {"NodeNames": ["node1"], "FailedNodes": {"node2": {"why": 1}}},
        "extender at URL http://127.0.0.1:8888/scheduler/filter must answer messages by node, and does not",
    ),
    (
        {"NodeNames": ["node1"], "FailedNodes": ["node2"]},
        "extender at URL http://127.0.0.1:8888/scheduler/filter must answer an object by node, and does not",
    ),
    (
        {"Nodes": [{"metadata": {"name": "node1"}}]},
        "extender at URL http://127.0.0.1:8888/scheduler/filter must answer Nodes as a list object, and does not",
    ),
    (
        {"Nodes": {"items": [{"metadata": {}}]}},
        "extender at URL http://127.0.0.1:8888/scheduler/filter must answer Nodes with names, and does not",
    ),
    (Failed(code=500), "failed filter with extender at URL http://127.0.0.1:8888/scheduler/filter, code 500"),
    (Failed("Timeout"), "failed filter with extender at URL http://127.0.0.1:8888/scheduler/filter, Timeout"),
    (Failed(message="connection refused"), "connection refused"),
]


@pytest.mark.parametrize(("said", "sentence"), UNBELIEVABLE)
def test_an_answer_that_cannot_be_used_ends_the_attempt_with_a_sentence(said: Any, sentence: str) -> None:
    core = scheduler(*nodes(3), pod(), profile=profile(extender(filter_verb="filter", node_cache_capable=True)))

    play(core, said)

    assert decided(core).outcome is Outcome.ERROR
    assert decided(core).message == sentence
    assert core.state("default/a") is State.BACKOFF
    verify(core)


@pytest.mark.parametrize(("said", "sentence"), UNBELIEVABLE)
def test_one_that_may_be_ignored_then_changes_nothing(said: Any, sentence: str) -> None:
    narrow = extender(filter_verb="filter", node_cache_capable=True, ignorable=True)
    core = scheduler(*nodes(3), pod(), profile=profile(narrow))

    [bind] = play(core, said)

    assert isinstance(bind, Bind)
    assert bind.node == "node1"
    assert decided(core).notes == [f"extender {URL} is ignored: {sentence}"]


def test_a_promised_node_is_kept_only_if_the_extender_agrees() -> None:
    core = scheduler(
        *nodes(2),
        pod("a", nominated="node2"),
        profile=profile(extender(filter_verb="filter", node_cache_capable=True)),
    )

    first = tick(core)
    assert asked(first).body["NodeNames"] == ["node2"]
    again = answer(core, first[-1], data={"NodeNames": []})
    assert asked(again).body["NodeNames"] == ["node1", "node2"]
    [bind] = answer(core, again[-1], data={"NodeNames": ["node1"]})

    assert isinstance(bind, Bind)
    assert bind.node == "node1"


# ── prioritize ───────────────────────────────────────────────────────────────────────────────────────────────


def test_scores_count_ten_times_their_weight_beside_those_of_plugins() -> None:
    first, second = extender(prioritize_verb="rank", weight=1), extender(1, prioritize_verb="rank", weight=2)
    core = scheduler(*nodes(3), pod(), profile=profile(first, second, plugins=(ByNumber(),)))

    play(
        core,
        [{"Host": "node1", "Score": 5}, {"Host": "node2", "Score": 1}, {"Host": "elsewhere", "Score": 10}],
        [{"host": "node2", "score": 10}],
    )

    decision = decided(core)
    assert decision.scores["Extender"].tolist() == [50, 10 + 200, 0]
    assert decision.totals is not None
    assert decision.totals.tolist() == [51, 212, 3]
    assert decision.node == "node2"


def test_one_feasible_node_needs_no_scores() -> None:
    core = scheduler(*nodes(1), pod(), profile=profile(extender(prioritize_verb="rank", weight=1)))

    [bind] = tick(core)

    assert isinstance(bind, Bind)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([{"Host": "node2", "Score": 11}], f'extender "{URL}" gives node "node2" 11; a score is 0 to 10'),
        ([{"Host": "node2", "Score": -1}], f'extender "{URL}" gives node "node2" -1; a score is 0 to 10'),
        ([{"Host": "node2", "Score": float("nan")}], "must answer a list of Host and Score, and does not"),
        ([{"Host": "node2", "Score": 5.0}], "must answer a list of Host and Score, and does not"),
        ([{"Host": "node2", "Score": True}], "must answer a list of Host and Score, and does not"),
        ([{"Score": 5}], "must answer a list of Host and Score, and does not"),
        (["node2"], "must answer a list of Host and Score, and does not"),
        ({"Host": "node2"}, "must answer a list, and does not"),
        (Failed(code=404), "code 404"),
    ],
)
def test_scores_that_cannot_be_used_do_not_count_and_nobody_fails(said: Any, why: str) -> None:
    core = scheduler(*nodes(3), pod(), profile=profile(extender(prioritize_verb="rank", weight=1)))

    [bind] = play(core, said)

    assert isinstance(bind, Bind)
    assert bind.node == "node1"
    assert decided(core).notes[0].startswith(f"the scores of extender {URL} do not count: ")
    assert decided(core).notes[0].endswith(why)


# ── bind ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_interested_binder_binds_and_no_plugin_does() -> None:
    others = extender(0, bind_verb="bind", managed_resources=("example.com/gpu",))
    mine = extender(1, bind_verb="bind")
    core = scheduler(*nodes(1), pod(), profile=profile(others, mine))

    effects = tick(core)
    step = asked(effects)
    assert (step.extender, step.verb) == (1, "bind")
    assert step.body == {"PodName": "a", "PodNamespace": "default", "PodUID": "uid-of-a", "Node": "node1"}
    assert not [effect for effect in effects if isinstance(effect, Bind)]
    answer(core, effects[-1], data={"Error": ""})

    assert core.state("default/a") is State.BOUND


def test_a_binder_that_refuses_gives_the_room_back() -> None:
    core = scheduler(*nodes(1), pod("a", cpu=1), profile=profile(extender(bind_verb="bind")))

    play(core, {"Error": "not today"})

    assert core.state("default/a") is State.BACKOFF
    assert core.free("node1")["cpu"] == 4000
    assert decided(core).message == "not today"
    verify(core)


def test_a_binder_that_may_be_ignored_leaves_it_to_the_plugins() -> None:
    core = scheduler(*nodes(1), pod(), profile=profile(extender(bind_verb="bind", ignorable=True)))

    [bind] = play(core, Failed(code=503))

    assert isinstance(bind, Bind)


def test_when_nobody_knows_whether_an_extender_bound_the_room_is_kept_until_it_is_known() -> None:
    a = pod("a", cpu=1, version=1)
    core = scheduler(*nodes(1), a, profile=profile(extender(bind_verb="bind")))

    [read] = play(core, Failed("Timeout", unknown=True))
    assert isinstance(read, ReadPod)
    assert core.state("default/a") is State.AMBIGUOUS
    assert core.free("node1")["cpu"] == 3000
    answer(core, read, bound(a, "node1", version=2))

    assert core.state("default/a") is State.BOUND
    assert core.free("node1")["cpu"] == 3000


def test_an_extender_that_did_not_bind_after_all_is_an_error() -> None:
    a = pod("a", cpu=1, version=1)
    core = scheduler(*nodes(1), a, profile=profile(extender(bind_verb="bind")))

    [read] = play(core, Failed("Timeout", "no answer in 5s", unknown=True))
    answer(core, read, a)

    assert core.state("default/a") is State.BACKOFF
    assert core.free("node1")["cpu"] == 4000
    assert decided(core).message == "no answer in 5s"


# ── preemption ───────────────────────────────────────────────────────────────────────────────────────────────


def full_cluster(make: Callable[..., Any], **fields: Any) -> Core:
    """Two full nodes; node1's pod is missed less than node2's."""
    given = default_profile(tie="name")
    preempting = Profile(
        name=given.name,
        points=given.points,
        weights=given.weights,
        tie="name",
        extenders=[make(preempt_verb="preempt", **fields)],
    )
    return scheduler(
        *nodes(2),
        pod("low", cpu=4, priority=1, on="node1"),
        pod("middle", cpu=3, priority=2, on="node2"),
        pod("bystander", cpu=1, priority=100, on="node2"),
        pod("a", cpu=3, priority=10),
        profile=preempting,
    )


def test_an_extender_is_told_of_every_candidate_and_may_strike_some_out() -> None:
    core = full_cluster(extender)

    step = asked(effects := tick(core))
    assert step.verb == "preempt"
    victims = step.body["NodeNameToVictims"]
    assert {name: [one["metadata"]["name"] for one in said["Pods"]] for name, said in victims.items()} == {
        "node1": ["low"],
        "node2": ["middle"],
    }
    assert victims["node1"]["NumPDBViolations"] == 0
    [call] = [effect for effect in effects if isinstance(effect, Call)]
    later = answer(core, call, data={"NodeNameToMetaVictims": {"node2": {"Pods": [{"UID": "uid-of-middle"}]}}})

    assert [effect.pod for effect in later if isinstance(effect, Evict)] == ["default/middle"]
    assert decided(core).nominate == "node2"
    verify(core)


def test_one_that_knows_the_pods_is_told_their_uids() -> None:
    core = full_cluster(extender, node_cache_capable=True)

    body = asked(tick(core)).body

    assert body["NodeNameToMetaVictims"]["node1"] == {"Pods": [{"UID": "uid-of-low"}], "NumPDBViolations": 0}
    assert "NodeNameToVictims" not in body


def test_without_objections_the_cheapest_is_taken() -> None:
    core = full_cluster(extender)
    both = {"node2": {"Pods": [{"UID": "uid-of-middle"}]}, "node1": {"pods": [{"uid": "uid-of-low"}]}}

    effects = play(core, {"NodeNameToMetaVictims": both})

    assert [effect.pod for effect in effects if isinstance(effect, Evict)] == ["default/low"]


NOT_THERE = (
    f"extender: {URL} claims to preempt pod (UID: uid-of-nobody) on node: node1, but the pod is not found on that node"
)


def meta(name: str, *uids: str) -> Data:
    return {"NodeNameToMetaVictims": {name: {"Pods": [{"UID": uid} for uid in uids]}}}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "no candidate node for preemption"),
        ({"NodeNameToMetaVictims": {}}, "no candidate node for preemption"),
        (meta("node1"), 'expected at least one victim pod on node "node1"'),
        ({"NodeNameToMetaVictims": {"node1": None}}, 'expected at least one victim pod on node "node1"'),
        (
            meta("node1", "uid-of-nobody"),
            NOT_THERE,
        ),
        (
            meta("node2", "uid-of-bystander"),
            f"extender: {URL} claims to preempt pod default/bystander, which has no lower priority",
        ),
        (
            meta("node9", "uid-of-low"),
            f'extender: {URL} claims to preempt on node "node9", which was not proposed to it',
        ),
        (
            {"NodeNameToMetaVictims": {"node1": {"Pods": "all"}}},
            "extender at URL http://127.0.0.1:8888/scheduler/preempt must answer a list, and does not",
        ),
        (
            {"NodeNameToMetaVictims": {"node1": {"Pods": ["uid-of-low"]}}},
            "extender at URL http://127.0.0.1:8888/scheduler/preempt must answer Pods with their UID, and does not",
        ),
        (
            {"NodeNameToMetaVictims": {"node1": {"Pods": [{"UID": "uid-of-low"}], "NumPDBViolations": "0"}}},
            f"extender at URL {URL}preempt must answer NumPDBViolations as a number, and does not",
        ),
    ],
)
def test_an_objection_leaves_everyone_where_they_are(said: Data, message: str) -> None:
    core = full_cluster(extender)

    effects = play(core, said)

    assert not [effect for effect in effects if isinstance(effect, Evict)]
    assert decided(core).message.endswith(f"preemption: {message}")
    assert decided(core).nominate is None
    verify(core)


def test_one_that_may_be_ignored_cannot_stop_a_preemption_by_failing() -> None:
    core = full_cluster(extender, ignorable=True)

    effects = play(core, Failed(code=500))

    assert [effect.pod for effect in effects if isinstance(effect, Evict)] == ["default/low"]


def test_nodes_without_victims_are_dropped_for_one_that_may_be_ignored() -> None:
    core = full_cluster(extender, ignorable=True)
    said = {"NodeNameToMetaVictims": {"node1": {"Pods": []}, "node2": {"Pods": [{"UID": "uid-of-middle"}]}}}

    effects = play(core, said)

    assert [effect.pod for effect in effects if isinstance(effect, Evict)] == ["default/middle"]


# ── while it is asked ────────────────────────────────────────────────────────────────────────────────────────


def test_the_world_goes_on_while_an_extender_thinks() -> None:
    core = scheduler(
        *nodes(2), pod("a", cpu=4), profile=profile(extender(filter_verb="filter", node_cache_capable=True))
    )

    effects = tick(core)
    observe(core, pod("b", cpu=1), at=seconds(1))
    assert tick(core, at=seconds(2)) == []  # one attempt at a time
    [bind] = answer(core, effects[-1], data={"NodeNames": ["node2"]})

    assert isinstance(bind, Bind)
    assert (bind.pod, bind.node) == ("default/a", "node2")
    verify(core)
