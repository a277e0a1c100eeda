"""Several plugins at one point: who is asked, whose word counts, and what is said in the end.

Rules: a pre_filter's Skip silences its own filter; one that finds the pod hopeless ends it, one that turns it down for
now does not; restrictions to nodes meet, and no node left is hopeless.  The first filter that says no is a node's
rejector; anything that is neither yes nor no breaks the attempt.  The first post_filter that makes room or finds it
hopeless ends it; the others' reasons add up, in the name of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.core.little import Fit

from kubesched.api.time import seconds
from kubesched.core.runner import post_filter, pre_filter
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Rejected
from kubesched.framework.hooks import NodeSubset, Nomination
from kubesched.framework.profile import Profile
from kubesched.framework.status import SKIP, SUCCESS, Code, Status, Wait, error, pending, unresolvable, unschedulable
from kubesched.testing import node, observe, pod, scheduler, tick
from kubesched.testing.kit.situation import Situation, World

NOW, NEVER, LATER = unschedulable("not now"), unresolvable("never"), pending("when he has said so")
NAMES = ("A", "B", "C")


def only(*names: str) -> NodeSubset:
    return NodeSubset(frozenset(names))


class Says:
    """Answers one hook as it was told; an exception is raised."""

    def __init__(self, hook: str, name: str, answer: Any, heard: list[str]) -> None:
        self.name = name

        def said(*args: Any) -> Any:
            heard.append(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        setattr(self, hook, said)


class SaysBefore(Says):
    """Answers pre_filter as it was told, and then lets every node through."""

    def __init__(self, hook: str, name: str, answer: Any, heard: list[str]) -> None:
        super().__init__(hook, name, answer, heard)
        self._heard = heard

    def pre_filter(self, cycle: Any, pod: Any, nodes: Any) -> Any: ...  # the profile asks the class for its hooks

    def filter(self, cycle: Any, pod: Any, node: Any) -> Status:
        self._heard.append(f"{self.name}.filter {node.name}")
        return SUCCESS


class SaysFilter(Says):
    def filter(self, cycle: Any, pod: Any, node: Any) -> Any: ...


class SaysAfter(Says):
    def post_filter(self, cycle: Any, pod: Any, rejected: Any) -> Any: ...


def decided(kind: type[Says], hook: str, answers: Sequence[Any], *beside: Any) -> tuple[Decision, list[str]]:
    """What comes of one pod on three nodes, and who was asked."""
    heard: list[str] = []
    plugins = [kind(hook, name, answer, heard) for name, answer in zip(NAMES, answers, strict=False)]
    core = scheduler(*(node(name, cpu=1) for name in ("n1", "n2", "n3")), plugins=[*plugins, *beside])
    observe(core, pod("a", cpu=1))
    tick(core)
    decision = core.why("default/a")
    assert decision is not None
    return decision, heard


# ── pre_filter ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answers", "asked", "code", "said", "who"),
    [
        pytest.param([SUCCESS, SUCCESS], "AB", Code.SUCCESS, "", "", id="everybody is content"),
        pytest.param([None, SUCCESS], "AB", Code.SUCCESS, "", "", id="no word is a yes"),
        pytest.param([SKIP, SKIP], "AB", Code.SUCCESS, "", "", id="nobody cares"),
        pytest.param([NOW, SUCCESS], "AB", Code.UNSCHEDULABLE, "not now", "A", id="not now, and the next is asked"),
        pytest.param([NOW, SKIP], "AB", Code.UNSCHEDULABLE, "not now", "A", id="or does not care"),
        pytest.param([SUCCESS, NOW], "AB", Code.UNSCHEDULABLE, "not now", "B", id="the second says no"),
        pytest.param([NOW, unschedulable("nor now")], "AB", Code.UNSCHEDULABLE, "nor now", "B", id="the last counts"),
        pytest.param([NEVER, SUCCESS], "A", Code.UNRESOLVABLE, "never", "A", id="never, and nobody else is asked"),
        pytest.param([NOW, NEVER, SUCCESS], "AB", Code.UNRESOLVABLE, "never", "B", id="never counts before not now"),
        pytest.param([only("n1"), NEVER], "AB", Code.UNRESOLVABLE, "never", "B", id="never counts before a few nodes"),
        pytest.param([only("n1"), NOW], "AB", Code.UNSCHEDULABLE, "not now", "B", id="not now does so too"),
    ],
)
def test_a_word_about_all_nodes(answers: Sequence[Any], asked: str, code: Code, said: str, who: str) -> None:
    found, heard = before_all(answers)
    assert "".join(heard) == asked
    assert (found.status.code, found.status.message, found.status.plugin) == (code, said, who)


def before_all(answers: Sequence[Any]) -> tuple[Any, list[str]]:
    heard: list[str] = []
    plugins = [SaysBefore("pre_filter", name, answer, heard) for name, answer in zip(NAMES, answers, strict=False)]
    return pre_filter(attempt(), Profile(*plugins, tie="name")), heard


def attempt() -> Cycle:
    nodes = tuple({"kind": "Node", "metadata": {"name": name, "uid": name}} for name in ("n1", "n2", "n3"))
    return World(
        Situation(nodes, {"kind": "Pod", "metadata": {"name": "a", "uid": "a"}}), {"Node": type(node())}
    ).cycle()


@pytest.mark.parametrize(
    ("answers", "names", "narrowed", "said"),
    [
        pytest.param([SUCCESS, SKIP], None, "", "", id="all nodes"),
        pytest.param([only("n1", "n2")], "n1 n2", "A", "", id="some"),
        pytest.param([only("n1", "n2"), SUCCESS], "n1 n2", "A", "", id="some, and all"),
        pytest.param([SUCCESS, only("n1", "n2")], "n1 n2", "B", "", id="all, and some"),
        pytest.param([only("n1", "n2"), only("n2", "n3")], "n2", "A B", "", id="what both leave"),
        pytest.param([only("n1", "n2"), only("n1", "n2")], "n1 n2", "A B", "", id="both leave the same"),
        pytest.param([only("gone"), SUCCESS], "gone", "A", "", id="a node that is not there"),
        pytest.param([only(), SUCCESS], "", "A", "node(s) didn't satisfy plugin A", id="none"),
        pytest.param(
            [only("n1"), only("n2"), SUCCESS],
            "",
            "A B",
            "node(s) didn't satisfy plugin(s) [A B] simultaneously",
            id="none that both leave",
        ),
        pytest.param(
            [only("n1"), SUCCESS, only("n2")],
            "",
            "A C",
            "node(s) didn't satisfy plugin(s) [A C] simultaneously",
            id="who left all is not named",
        ),
    ],
)
def test_the_nodes_that_are_left(answers: Sequence[Any], names: str | None, narrowed: str, said: str) -> None:
    found, heard = before_all(answers)
    assert (None if found.names is None else " ".join(sorted(found.names))) == names
    assert " ".join(found.narrowed_by) == narrowed
    assert (found.status.message, found.status.code) == (said, Code.UNRESOLVABLE if said else Code.SUCCESS)
    assert not said or found.status.plugin == "", "it is nobody's own word"
    assert len(heard) == (len(answers) if not said else NAMES.index(narrowed[-1]) + 1), "the last word ends it"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(error("broken"), 'running PreFilter plugin "A": broken', id="it cannot say"),
        pytest.param(RuntimeError("oh"), 'running PreFilter plugin "A": RuntimeError: oh', id="it stumbles"),
        pytest.param(LATER, 'running PreFilter plugin "A": when he has said so', id="nobody may be waited for here"),
    ],
)
def test_a_pre_filter_that_breaks_ends_the_attempt(answer: Any, said: str) -> None:
    decision, heard = decided(SaysBefore, "pre_filter", [answer, SUCCESS])
    assert (decision.outcome.value, decision.error) == ("error", said)
    assert heard == ["A"]


def test_who_skips_is_not_asked_about_nodes() -> None:
    decision, heard = decided(SaysBefore, "pre_filter", [SKIP, SUCCESS])
    assert decision.placed
    assert heard == ["A", "B", "B.filter n1", "B.filter n2", "B.filter n3"]


# ── filter ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answers", "asked", "who", "message"),
    [
        pytest.param([SUCCESS, SUCCESS], "AB", "", "", id="it fits"),
        pytest.param([NOW, SUCCESS], "A", "A", "3 not now.", id="the first no"),
        pytest.param([SUCCESS, NOW], "AB", "B", "3 not now.", id="the second"),
        pytest.param([NEVER, NOW], "A", "A", "3 never.", id="never is a no"),
        pytest.param([NOW, NEVER], "A", "A", "3 not now.", id="and the first no counts, whichever it is"),
        pytest.param([LATER, NOW], "A", "A", "3 when he has said so.", id="so is waiting for somebody"),
        pytest.param([unschedulable("x", "y")], "A", "A", "3 x, 3 y.", id="every reason is counted"),
        pytest.param([None, NOW], "AB", "B", "3 not now.", id="no word is a yes"),
    ],
)
def test_a_word_about_one_node(answers: Sequence[Any], asked: str, who: str, message: str) -> None:
    decision, heard = decided(SaysFilter, "filter", answers)
    assert sorted(set(heard)) == sorted(asked)
    assert decision.rejectors == ({who} if who else set())
    assert decision.message == (f"0/3 nodes are available: {message}" if message else "")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(error("broken"), 'running "A" filter plugin: broken', id="it cannot say"),
        pytest.param(RuntimeError("oh"), 'running "A" filter plugin: RuntimeError: oh', id="it stumbles"),
        pytest.param(SKIP, 'running "A" filter plugin: Skip', id="it does not care"),
        pytest.param(Wait(seconds(1)), "A.filter must return a Status, not Wait(", id="it wants to wait"),
    ],
)
def test_a_filter_that_breaks_ends_the_attempt(answer: Any, said: str) -> None:
    decision, _ = decided(SaysFilter, "filter", [answer, SUCCESS])
    assert decision.outcome.value == "error"
    assert (decision.error or "").startswith(said), decision.error


# ── post_filter ──────────────────────────────────────────────────────────────────────────────────────────────


def after_all(answers: Sequence[Any]) -> tuple[Any, list[str]]:
    heard: list[str] = []
    plugins = [SaysAfter("post_filter", name, answer, heard) for name, answer in zip(NAMES, answers, strict=False)]
    return post_filter(attempt(), Profile(*plugins, tie="name"), Rejected(["n1", "n2", "n3"], 3)), heard


@pytest.mark.parametrize(
    ("answers", "asked", "code", "said", "who", "promised"),
    [
        pytest.param([Nomination("n1"), NOW], "A", Code.SUCCESS, "", "", "n1", id="the first makes room"),
        pytest.param([NOW, Nomination("n2")], "AB", Code.SUCCESS, "", "", "n2", id="the second makes room"),
        pytest.param([SUCCESS, NOW], "A", Code.SUCCESS, "", "", None, id="room was made, nobody says where"),
        pytest.param([NOW, NEVER, SUCCESS], "AB", Code.UNRESOLVABLE, "never", "B", None, id="the second is hopeless"),
        pytest.param(
            [NOW, unschedulable("nor I")], "AB", Code.UNSCHEDULABLE, "not now, nor I", "A", None, id="reasons add up"
        ),
        pytest.param([LATER, NOW], "AB", Code.UNSCHEDULABLE, "when he has said so, not now", "A", None, id="of all"),
        pytest.param(
            [Nomination("", status=NOW), unschedulable("nor I")],
            "AB",
            Code.UNSCHEDULABLE,
            "not now, nor I",
            "A",
            "",
            id="one takes the promise back",
        ),
        pytest.param(
            [Nomination("", status=NOW), Nomination("n2")],
            "AB",
            Code.SUCCESS,
            "",
            "",
            "n2",
            id="the next makes one",
        ),
        pytest.param([error("broken"), SUCCESS], "A", Code.ERROR, "broken", "A", None, id="the first is broken"),
        pytest.param(
            [NOW, RuntimeError("oh")],
            "AB",
            Code.ERROR,
            'running PostFilter plugin "B": RuntimeError: oh',
            "B",
            None,
            id="the second stumbles",
        ),
    ],
)
def test_a_word_about_room(
    answers: Sequence[Any], asked: str, code: Code, said: str, who: str, promised: str | None
) -> None:
    found, heard = after_all(answers)
    assert "".join(heard) == asked
    assert (found.status.code, found.status.message, found.status.plugin) == (code, said, who)
    assert found.node == promised


def test_nobody_makes_room_for_a_pod_that_fits() -> None:
    _, heard = decided(SaysAfter, "post_filter", [NOW], Fit())
    assert heard == []


# ── score ────────────────────────────────────────────────────────────────────────────────────────────────────


class Scores:
    """Scores nodes by their names' digits, and makes of them what it was told."""

    def __init__(self, name: str = "Scores", raw: int = 10, normalized: Any = None) -> None:
        self.name, self._raw, self._normalized = name, raw, normalized
        if normalized is not None:
            self.normalize_score = self._normalize

    def score(self, cycle: Any, pod: Any, node: Any) -> Any:
        return self._raw * int(node.name[1:])

    def _normalize(self, cycle: Any, pod: Any, scores: Any) -> Any:
        if isinstance(self._normalized, Exception):
            raise self._normalized
        return np.array([self._normalized] * len(scores), dtype=np.int64)


def scored(*plugins: Any, weights: dict[str, int] | None = None) -> Decision:
    core = scheduler(
        *(node(name) for name in ("n1", "n2", "n3")), profile=Profile(*plugins, weights=weights or {}, tie="name")
    )
    observe(core, pod("a"))
    tick(core)
    decision = core.why("default/a")
    assert decision is not None
    return decision


@pytest.mark.parametrize(
    ("plugins", "weights", "totals"),
    [
        pytest.param([Scores()], {}, [10, 20, 30], id="as they are"),
        pytest.param([Scores()], {"Scores": 3}, [30, 60, 90], id="by weight"),
        pytest.param([Scores(), Scores("More", 1)], {"More": 2}, [12, 24, 36], id="added up"),
        pytest.param([Scores(raw=1000, normalized=7)], {}, [7, 7, 7], id="brought into range before they are judged"),
        pytest.param([Scores(raw=33)], {"Scores": 100}, [3300, 6600, 9900], id="a weight may lead out of range"),
        pytest.param([Scores(raw=0)], {}, [0, 0, 0], id="nobody is better"),
    ],
)
def test_scores_of_several(plugins: Sequence[Any], weights: dict[str, int], totals: list[int]) -> None:
    decision = scored(*plugins, weights=weights)
    assert dict(zip(decision.names, decision.totals.tolist(), strict=True)) == dict(
        zip(("n1", "n2", "n3"), totals, strict=True)
    )


RANGE = "it should in the range of [0, 100] after normalizing"


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        pytest.param(Scores(raw=34), f'plugin "Scores" returns an invalid score 102, {RANGE}', id="too high"),
        pytest.param(Scores(raw=-1), f'plugin "Scores" returns an invalid score -3, {RANGE}', id="too low: the worst"),
        pytest.param(
            Scores(normalized=101), f'plugin "Scores" returns an invalid score 101, {RANGE}', id="normalized too high"
        ),
        pytest.param(Scores(normalized=-1), f'plugin "Scores" returns an invalid score -1, {RANGE}', id="or too low"),
        pytest.param(Scores(normalized=RuntimeError("oh")), "running Normalize on Score plugins: ", id="it stumbles"),
    ],
)
def test_scores_nobody_can_use(plugin: Any, said: str) -> None:
    decision = scored(plugin)
    assert decision.outcome.value == "error"
    assert said in (decision.error or "")
