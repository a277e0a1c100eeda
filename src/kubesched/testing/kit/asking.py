"""Asks a plugin one hook at a time, and holds it to the kind of answer that hook owes.

A plugin may say no, and may say that it cannot answer (an error status, or one of kubesched's own exceptions).  It
may not stumble: any other exception, and any answer of another kind, is a fault of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import GeneratorType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.errors import KubeschedError
from kubesched.framework.hooks import NodeSubset, Nomination, Plugin, name_of
from kubesched.framework.profile import MAX_SCORE, MIN_SCORE
from kubesched.framework.status import SUCCESS, Code, Status, Wait, error
from kubesched.framework.steps import Answer, Failure, fault_of
from kubesched.framework.vector import Verdict
from kubesched.testing.kit.situation import Fault, Scene, World

ANSWERS, SCORES = "answers", "scores"  # the rules an answer can break by itself

_YES_OR_NO = frozenset((Code.SUCCESS, Code.ERROR, Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING))
_MAY_SKIP = _YES_OR_NO | {Code.SKIP}


_STEPS_AT_MOST = 20


class Owed(NamedTuple):
    """What a hook may answer: these classes; a status only of these codes."""

    kinds: tuple[type, ...]
    codes: frozenset[Code] = frozenset()
    words: str = ""


HOOKS: Mapping[str, Owed] = {
    "pre_enqueue": Owed((Status,), _YES_OR_NO, "a Status: success or a rejection"),
    "pre_filter": Owed((Status, NodeSubset), _MAY_SKIP, "a Status or a NodeSubset"),
    "filter": Owed((Status,), _YES_OR_NO, "a Status: success or a rejection"),
    "filter_all": Owed((Verdict,), words="a Verdict with one answer per node"),
    "post_filter": Owed((Status, Nomination), _YES_OR_NO, "a Status or a Nomination"),
    "pre_score": Owed((Status,), _MAY_SKIP, "a Status: success or SKIP"),
    "reserve": Owed((Status,), _YES_OR_NO, "a Status: success or a rejection"),
    "unreserve": Owed((), words="nothing"),
    "permit": Owed((Status, Wait), _YES_OR_NO, "a Status or Wait(timeout)"),
    "pre_bind": Owed((Status, GeneratorType), _MAY_SKIP, "a Status, or a generator of steps"),
    "bind": Owed((Status, GeneratorType), _MAY_SKIP, "a Status, or a generator of steps"),
    "post_bind": Owed((), words="nothing"),
    "add_pod": Owed((), words="nothing"),
    "remove_pod": Owed((), words="nothing"),
}


def ask(plugin: Plugin, hook: str, *args: Any) -> Any:
    """The answer of a hook that owes a Status or something like it; None is success, as in Go.  Raises Fault."""
    owed = HOOKS[hook]
    try:
        answer = getattr(plugin, hook)(*args)
    except KubeschedError as problem:
        return error(str(problem))
    except Exception as problem:
        raise _stumbled(plugin, hook, args, problem, owed.words) from problem
    if answer is None:
        return SUCCESS
    good = isinstance(answer, owed.kinds) and (not isinstance(answer, Status) or answer.code in owed.codes)
    if not good or (isinstance(answer, Verdict) and len(answer) != len(args[2])):
        raise Fault(ANSWERS, about(plugin, hook, args), owed.words, shown(answer))
    if isinstance(answer, Wait) and answer.timeout < 0:
        raise Fault(ANSWERS, about(plugin, hook, args), "a timeout that is not negative", shown(answer))
    return answer


def seen_through(plugin: Plugin, hook: str, info: PodInfo, node: str, answer: Any) -> None:
    """Follow the steps a hook yields, every one of them failing: they can be carried out, and it ends with a Status."""
    if not isinstance(answer, GeneratorType):
        return
    where, owed = f"{about(plugin, hook)}, for {info.key} on {node}", "steps, and a Status in the end"
    failed = Answer(failure=Failure("Unreachable", "nobody answers", applied="unknown"))
    try:
        step = next(answer)
        for _ in range(_STEPS_AT_MOST):
            if fault_of(step):
                raise Fault(ANSWERS, where, owed, fault_of(step))
            step = answer.send(failed)
    except StopIteration as end:
        if end.value is not None and not isinstance(end.value, Status):
            raise Fault(ANSWERS, where, owed, shown(end.value)) from None
    except KubeschedError:
        return
    except Fault:
        raise
    except Exception as problem:
        raise _stumbled(plugin, hook, (node,), problem, owed) from problem
    else:
        raise Fault(ANSWERS, where, owed, f"more than {_STEPS_AT_MOST} steps, though every one fails")


def call(plugin: Plugin, hook: str, *args: Any) -> Any:
    """The answer of a hook that owes a value of its own.  Raises Fault where it stumbles."""
    try:
        return getattr(plugin, hook)(*args)
    except KubeschedError as problem:
        return error(str(problem))
    except Exception as problem:
        raise _stumbled(plugin, hook, args, problem, "an answer") from problem


def _stumbled(plugin: Plugin, hook: str, args: tuple[Any, ...], problem: Exception, owed: str) -> Fault:
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    line = "" if trace is None else f" in line {trace.tb_lineno} of {trace.tb_frame.f_code.co_filename}"
    text = f"{type(problem).__name__}: {problem}{line}"
    return Fault(ANSWERS, about(plugin, hook, args), f"{owed}; or, where it cannot say, status error(…)", text)


def about(plugin: Plugin, hook: str, args: tuple[Any, ...] = ()) -> str:
    """`Zones.filter, about node n1`."""
    on = args[-1] if args else None
    name = on.name if isinstance(on, NodeInfo) else on if isinstance(on, str) else ""
    return f"{name_of(plugin)}.{hook}" + (f", about node {name}" if name else "")


def shown(answer: Any) -> str:
    """An answer as a reader knows it."""
    if isinstance(answer, Status):
        return f"{answer.code.text} {list(answer.reasons)}" if answer.reasons else answer.code.text
    if isinstance(answer, Verdict):
        return f"a Verdict with {len(answer)} answers"
    if isinstance(answer, NodeSubset):
        return f"only the nodes {sorted(answer.names)}"
    if isinstance(answer, np.ndarray):
        return f"{answer.dtype} {answer.tolist()}"
    return repr(answer)


# ── an attempt, hook by hook ─────────────────────────────────────────────────────────────────────────────────


class Heard(NamedTuple):
    """Everything a plugin said of one pod, in a form that compares: statuses without the order of their reasons."""

    before: Any  # pre_filter's word, where it is not a plain yes
    filter: dict[str, Status]
    before_score: Any
    raw: dict[str, int]
    scores: dict[str, int]

    def difference(self, other: Heard) -> tuple[str, str, str] | None:
        """The first hook that answered otherwise: about what, this answer, the other."""
        for hook in ("pre_filter", "pre_score"):
            mine, theirs = (getattr(one, _FIELD[hook]) for one in (self, other))
            if mine != theirs:
                return hook, shown(mine), shown(theirs)
        for hook in ("filter", "raw", "scores"):
            mine, theirs = getattr(self, hook), getattr(other, hook)
            for node in {**mine, **theirs}:
                if mine.get(node) != theirs.get(node):
                    return f"{_HOOK[hook]}, about node {node}", shown(mine.get(node)), shown(theirs.get(node))
        return None


_FIELD = {"pre_filter": "before", "pre_score": "before_score"}
_HOOK = {"filter": "filter", "raw": "score", "scores": "normalize_score"}


def settled(status: Status) -> Status:
    """A status that compares with another: the order of reasons has no meaning."""
    return Status(status.code, tuple(sorted(status.reasons)))


def hear(plugin: Plugin, world: World, info: PodInfo | None = None, *, backwards: bool = False) -> Heard:
    """Ask everything about one pod, each hook by the tier the scheduler would take.  Raises Fault."""
    cycle = world.cycle(info)
    nodes = cycle.nodes if not backwards else Nodes(cycle.table, cycle.nodes.rows[::-1].copy())
    before, asked = pre_filter(plugin, cycle, nodes)
    statuses: dict[str, Status] = {}
    if asked is not None:
        statuses = filtered(plugin, cycle, asked)
    rejected = isinstance(before, Status) and (before.rejected or before.code is Code.ERROR)
    left = [name for name in nodes.names if name not in statuses or statuses[name].ok]
    allowed = before.names if isinstance(before, NodeSubset) else left
    fits = [] if rejected else [name for name in left if name in allowed]
    before_score, raw, scores = _scored(plugin, cycle, named(cycle, fits))
    said = before if isinstance(before, NodeSubset) else settled(before)
    return Heard(said, statuses, settled(before_score), raw, scores)


def pre_filter(plugin: Plugin, cycle: Cycle, nodes: Nodes) -> tuple[Any, Nodes | None]:
    """What pre_filter says, and the nodes filter is then asked about; None where it is not asked at all."""
    answer: Any = SUCCESS
    if hasattr(plugin, "pre_filter"):
        answer = ask(plugin, "pre_filter", cycle, cycle.pod, cycle.nodes)
    if isinstance(answer, NodeSubset):
        kept = [name in answer.names for name in nodes.names]
        return answer, nodes.where(np.array(kept, dtype=np.bool_))
    return answer, nodes if answer.ok else None


def filtered(plugin: Plugin, cycle: Cycle, nodes: Nodes) -> dict[str, Status]:
    """What the filter says of every node: in columns where it can."""
    if hasattr(plugin, "filter_all"):
        return by_columns(plugin, cycle, nodes)
    if hasattr(plugin, "filter"):
        return {node.name: settled(ask(plugin, "filter", cycle, cycle.pod, node)) for node in nodes}
    return {}


def by_columns(plugin: Plugin, cycle: Cycle, nodes: Nodes) -> dict[str, Status]:
    answer = ask(plugin, "filter_all", cycle, cycle.pod, nodes)
    if isinstance(answer, Status):  # it cannot say
        return {name: settled(answer) for name in nodes.names}
    if not isinstance(answer, Verdict):
        raise Fault(ANSWERS, about(plugin, "filter_all"), HOOKS["filter_all"].words, shown(answer))
    return {name: settled(answer.status(i)) for i, name in enumerate(nodes.names)}


def _scored(plugin: Plugin, cycle: Cycle, nodes: Nodes) -> tuple[Status, dict[str, int], dict[str, int]]:
    """pre_score's word, and raw and final scores by node; empty where nothing is scored."""
    scores_at_all = hasattr(plugin, "score") or hasattr(plugin, "score_all")
    if not len(nodes) or not (scores_at_all or hasattr(plugin, "pre_score")):
        return SUCCESS, {}, {}
    before = ready_to_score(plugin, cycle, nodes)
    if not before.ok or not scores_at_all:
        return before, {}, {}
    raw = raw_by_columns(plugin, cycle, nodes) if hasattr(plugin, "score_all") else raw_one_by_one(plugin, cycle, nodes)
    if isinstance(raw, Status):
        return raw, {}, {}
    final = normalized(plugin, cycle, raw)
    if isinstance(final, Status):
        return final, {}, {}
    names = nodes.names
    for name, score in zip(names, final.tolist(), strict=True):
        if not MIN_SCORE <= score <= MAX_SCORE:
            hook = "normalize_score" if hasattr(plugin, "normalize_score") else "score"
            expected = f"{MIN_SCORE} to {MAX_SCORE}" + ("" if hook != "score" else ", or a normalize_score beside it")
            raise Fault(SCORES, f"{about(plugin, hook)}, for node {name}", expected, str(score))
    return before, dict(zip(names, raw.tolist(), strict=True)), dict(zip(names, final.tolist(), strict=True))


def ready_to_score(plugin: Plugin, cycle: Cycle, nodes: Nodes) -> Status:
    if not hasattr(plugin, "pre_score"):
        return SUCCESS
    answer: Status = ask(plugin, "pre_score", cycle, cycle.pod, nodes)
    return answer


def raw_one_by_one(plugin: Plugin, cycle: Cycle, nodes: Nodes) -> Any:
    """Scores by the scalar hook; the Status where it cannot say."""
    scores = []
    for node in nodes:
        answer = call(plugin, "score", cycle, cycle.pod, node)
        if isinstance(answer, Status):
            return answer
        if not isinstance(answer, (int, np.integer)) or isinstance(answer, bool):
            raise Fault(SCORES, f"{about(plugin, 'score')}, for node {node.name}", "an integer", shown(answer))
        scores.append(int(answer))
    return np.array(scores, dtype=np.int64)


def raw_by_columns(plugin: Plugin, cycle: Cycle, nodes: Nodes) -> Any:
    """Scores by the vector hook; the Status where it cannot say."""
    return _checked(plugin, "score_all", call(plugin, "score_all", cycle, cycle.pod, nodes), len(nodes))


def normalized(plugin: Plugin, cycle: Cycle, raw: Any) -> Any:
    """What normalize_score makes of raw scores; the same where there is none."""
    if not hasattr(plugin, "normalize_score"):
        return raw
    given = raw.copy()
    answer = _checked(plugin, "normalize_score", call(plugin, "normalize_score", cycle, cycle.pod, given), len(raw))
    if not np.array_equal(given, raw):
        wanted = f"the scores it was given left as they are: {raw.tolist()}"
        raise Fault("arguments", about(plugin, "normalize_score"), wanted, f"{given.tolist()}; return a new array")
    return answer


def _checked(plugin: Plugin, hook: str, answer: Any, count: int) -> Any:
    if isinstance(answer, Status):
        return answer
    good = isinstance(answer, np.ndarray) and answer.shape == (count,) and answer.dtype.kind in "iu"
    if not good:
        wanted = "an array of integers, one per node"
        raise Fault(SCORES, about(plugin, hook), wanted, shown(answer))
    return answer


def named(cycle: Cycle, names: list[str]) -> Nodes:
    rows = [cycle.table.row_of[name] for name in names]
    return Nodes(cycle.table, np.array(rows, dtype=np.int32))


# ── what a hook is given, and must leave alone ───────────────────────────────────────────────────────────────


OBJECTS = 10  # from here on a portrait shows objects that are neither pods nor nodes


def portrait(world: World, nodes: Nodes | None = None) -> tuple[tuple[str, Any], ...]:
    """Everything a hook can reach, so that a change shows; named for the reader."""
    table, info = world.mirror.table, world.info
    rows = table.rows.tolist()
    parts: list[tuple[str, Any]] = [
        ("the pod", msgspec.json.encode(info.pod)),
        ("the pod's requests", (dict(info.requests), dict(info.usage), info.nonzero_usage)),
        ("a node", [msgspec.json.encode(table.nodes[row]) for row in rows]),
        ("what is requested of a node", table.requested[rows].tolist()),
        ("what is taken of a node", table.nonzero_requested[rows].tolist()),
        ("what a node can give", table.allocatable[rows].tolist()),
        ("whether a node is open", table.unschedulable[rows].tolist()),
        (
            "the pods of a node",
            [[(pod.uid, dict(pod.labels), dict(pod.requests)) for pod in table.pods[row]] for row in rows],
        ),
        ("the ports of a node", [dict(table.ports[row]) for row in rows]),
        ("the order of the nodes", rows),
    ]
    parts += [
        (f"a {kind.__name__}", [msgspec.json.encode(obj) for obj in world.mirror.objects.all(kind)])
        for kind in world.kinds.values()
        if world.mirror.objects.any(kind)
    ]
    if nodes is not None:
        parts.append(("the nodes asked about", nodes.rows.tolist()))
    return tuple(parts)


def columns(nodes: Nodes) -> list[Any]:
    """The columns of a selection, as the next plugin would read them."""
    resources = nodes.table.resources.values
    single = [column for name in resources for column in (nodes.capacity(name), nodes.taken(name))]
    shared = [nodes.allocatable, nodes.requested, nodes.nonzero_requested, nodes.unschedulable, *single]
    return [column.tolist() for column in shared]


def unchanged(scene: Scene, before: tuple[tuple[str, Any], ...], where: str) -> None:
    """Raises Fault if a hook has changed anything it could reach."""
    for (what, was), (_, now) in zip(before, portrait(scene.world), strict=False):
        if was != now:
            raise Fault("arguments", where, f"{what} left as it was", _change(was, now))


def _change(was: Any, now: Any) -> str:
    texts = [text.decode() if isinstance(text, bytes) else str(text) for text in (was, now)]
    return f"{texts[0]} became {texts[1]}"
