"""A plugin that raises, or answers nonsense, costs only its own pod: whatever the hook, whatever the nonsense.

One pod is called `bad`, and the plugin misbehaves about it alone.  Every other pod is placed as if nothing were
wrong, every invariant holds, every effect can be written down, and the bad pod's Decision and Event name the plugin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.core.little import Fit

from kubesched.api.time import seconds
from kubesched.core.core import Core
from kubesched.drive.journal import Reading
from kubesched.framework.hooks import HELPERS, POINTS, NodeSubset, Nomination
from kubesched.framework.profile import Profile
from kubesched.framework.records import State
from kubesched.framework.status import SKIP, SUCCESS, Code, Status, Wait, error, unschedulable
from kubesched.framework.steps import BindPod, Create, Delete, Patch, WaitFor
from kubesched.framework.vector import Verdict
from kubesched.sim import Simulation
from kubesched.testing import verify


class Unspeakable:
    """Something that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __str__(self) -> str:
        raise RuntimeError("no words")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("like nothing else")

    __hash__ = None


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def recurse() -> None:
    recurse()


def raising(error: BaseException) -> Callable[[], Any]:
    def misbehave() -> Any:
        raise error

    return misbehave


def answering(value: Any) -> Callable[[], Any]:
    return lambda: value


RAISES = {
    "ValueError": raising(ValueError("no idea")),
    "AssertionError": raising(AssertionError()),
    "StopIteration": raising(StopIteration("early")),
    "unspeakable": raising(UnspeakableError()),
    "recursion": recurse,
    "not implemented": raising(NotImplementedError()),
    "newlines": raising(KeyError("a\nb\x1b[2J")),
}
NONSENSE = {
    "an integer": answering(7),
    "text": answering("yes"),
    "true": answering(True),
    "a list": answering([SUCCESS]),
    "a class": answering(Status),
    "a function": answering(answering),
    "NaN": answering(math.nan),
    "unspeakable": answering(Unspeakable()),
    "reasons of another kind": answering(Status(Code.UNSCHEDULABLE, (3, None))),
    "reasons nobody can hash": answering(Status(Code.UNSCHEDULABLE, ([],))),
    "a reason alone": answering(Status(Code.UNSCHEDULABLE, "no")),
    "a code of another kind": answering(Status("no", ("why",))),
    "a wait from nowhere": answering(Status(Code.WAIT)),
}
OF_HOOKS: dict[str, dict[str, Callable[[], Any]]] = {
    "pre_filter": {
        "names that are none": answering(NodeSubset(3)),
        "names in a list": answering(NodeSubset([["n1"]])),
        "nodes that are not there": answering(NodeSubset(frozenset({"nowhere"}))),
        "names of another kind": answering(NodeSubset(frozenset({1, None}))),
    },
    "filter_all": {
        "a verdict too short": answering(Verdict(1)),
        "a verdict too long": answering(Verdict(99)),
        "an array": answering(np.zeros(2)),
    },
    "score": {
        "far too much": answering(1 << 70),
        "too much": answering(101),
        "too little": answering(-1),
        "half a point": answering(0.5),
        "an array": answering(np.zeros(2, dtype=np.int64)),
    },
    "score_all": {
        "too few": answering(np.zeros(1, dtype=np.int64)),
        "floats": answering(np.array([0.5, math.nan])),
        "too much": answering(np.array([1 << 62, 0])),
        "objects": answering(np.array([None, "x"], dtype=object)),
    },
    "normalize_score": {"too few": answering(np.zeros(1, dtype=np.int64)), "too much": answering(np.array([9999, 0]))},
    "post_filter": {
        "a node that is not there": answering(Nomination("nowhere")),
        "victims without a node": answering(Nomination("", ("x",))),
        "victims that are none": answering(Nomination("n1", ("x", None))),
        "no tuple of victims": answering(Nomination("n1", 3)),
        "a node that is no name": answering(Nomination(3)),
        "nonsense for a status": answering(Nomination("n1", (), 3)),
    },
    "permit": {
        "a wait of text": answering(Wait("5s")),
        "a wait of nothing": answering(Wait(None)),
        "a wait that is no number": answering(Wait(math.nan)),
        "a wait into the past": answering(Wait(-5)),
        "a wait of half a nanosecond": answering(Wait(0.5)),
    },
    "pre_bind": {},
    "bind": {},
}


def steps(*wants: Any) -> Callable[[], Any]:
    def walk() -> Iterator[Any]:
        yield from wants
        return SUCCESS

    return walk


def breaks_later() -> Iterator[Any]:
    yield WaitFor(lambda objects: SUCCESS, seconds(1), "nothing")
    raise ValueError("no idea")


def ends_in_nonsense() -> Iterator[Any]:
    yield WaitFor(lambda objects: SUCCESS, seconds(1), "nothing")
    return 7


def will_not_end() -> Iterator[Any]:
    while True:
        try:
            yield WaitFor(raising(ValueError("no idea")), seconds(1), "nothing")
        except GeneratorExit:
            yield 3


STEPS = {
    "yields an integer": steps(7),
    "yields nothing": steps(None),
    "yields something unspeakable": steps(Unspeakable()),
    "patches with a set": steps(Patch("Pod", "default/bad", {"a": {1, 2}})),
    "patches with NaN": steps(Patch("Pod", "default/bad", {"a": math.nan})),
    "patches with itself": steps(Patch("Pod", "default/bad", {"a": Unspeakable()})),
    "patches what is no kind": steps(Patch("Nonsense", "x", {})),
    "patches a kind of another kind": steps(Patch(3, None, [])),
    "creates nothing": steps(Create("Pod", "x", {})),
    "deletes what is not there": steps(Delete("Pod", "default/nobody", "x")),
    "waits with a broken look": steps(WaitFor(raising(ValueError("no idea")), seconds(1), "nothing")),
    "waits with nonsense": steps(WaitFor(answering(7), seconds(1), "nothing")),
    "waits with no look at all": steps(WaitFor(None, seconds(1), "nothing")),
    "waits for text": steps(WaitFor(answering(None), "1s", "nothing")),
    "breaks later": breaks_later,
    "ends in nonsense": ends_in_nonsense,
    "will not end": will_not_end,
}
OF_HOOKS["pre_bind"] = OF_HOOKS["bind"] = STEPS

OF_BOARDS = {"sign_pod", "alike", "context", "outlook", "refilter", "rescore", "by_value"}
HARMLESS = {*OF_BOARDS, "post_bind", "unreserve", "key", "less", "add_pod", "remove_pod", "spare"}
"""Hooks whose failure loses nothing: their pod is bound all the same."""


def hooks() -> list[str]:
    points = {method.name for methods in POINTS.values() for method in methods}
    return sorted(points | {method.name for method in HELPERS} - {"events_to_register"})


def behaviours(hook: str) -> dict[str, Callable[[], Any]]:
    return {**{f"raises {name}": act for name, act in RAISES.items()}, **NONSENSE, **OF_HOOKS.get(hook, {})}


CASES = [(hook, name) for hook in hooks() for name in behaviours(hook)]


def plugin_with(hook: str, misbehave: Callable[[], Any]) -> Any:
    """A plugin with one hook, which misbehaves about the pod called `bad`."""

    def call(self: Any, *args: Any) -> Any:
        about = next((arg for arg in args if getattr(arg, "name", "") == "bad"), None)
        about = about or next((arg for arg in args if getattr(getattr(arg, "info", None), "name", "") == "bad"), None)
        return misbehave() if about is not None else usual(hook, *args)

    methods: dict[str, Any] = {hook: call}
    if hook == "normalize_score":
        methods["score"] = lambda self, cycle, pod, node: 1
    if hook == "pre_score":
        methods["score"] = lambda self, cycle, pod, node: 1
    if hook in ("add_pod", "remove_pod"):
        methods["pre_filter"] = lambda self, cycle, pod, nodes: SUCCESS
        methods |= dict.fromkeys({"add_pod", "remove_pod"} - {hook}, usual_move)
    if hook in OF_BOARDS:
        methods |= board_methods(hook, call)
    if hook == "reserve":
        methods["unreserve"] = lambda self, cycle, pod, node: None
    if hook == "unreserve":
        methods["reserve"] = lambda self, cycle, pod, node: SUCCESS
        methods["pre_bind"] = lambda self, cycle, pod, node: (
            unschedulable("not yet") if pod.name == "bad" and pod.pod.metadata.labels.get("tried") is None else SUCCESS
        )
    return type("Mischief", (), methods)()


def usual_move(self: Any, cycle: Any, pod: Any, other: Any, node: Any) -> None:
    """Nothing to be kept up to date."""


def board_methods(hook: str, call: Any) -> dict[str, Any]:
    """Whatever a plugin needs besides, so that a board asks this hook."""
    return {
        "filter": lambda self, cycle, pod, node: SUCCESS,
        "sign_pod": lambda self, pod: (),
        hook: call,
    }


def usual(hook: str, *args: Any) -> Any:
    """What the hook answers about everybody else."""
    match hook:
        case "filter_all":
            return Verdict(len(args[-1]))
        case "score":
            return 1
        case "score_all":
            return np.ones(len(args[-1]), dtype=np.int64)
        case "normalize_score":
            return args[-1]
        case "key":
            return (args[0].added,)
        case "less":
            return args[0].added < args[1].added
        case "post_filter":
            return unschedulable("no room")
        case "bind":
            return SKIP
        case "sign_pod" | "sign":
            return ()
        case _:
            return SUCCESS


def a_node(name: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "20"}}}


def a_pod(name: str, cpu: str = "1") -> dict[str, Any]:
    wants = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": wants}


class Binder:
    """Binds whatever the plugin before it does not."""

    def bind(self, cycle, pod, node):
        yield BindPod(node)
        return SUCCESS


def a_run(plugin: Any, hook: str, journal: Path) -> tuple[Core, Simulation]:
    others = (Fit(), *([Binder()] if hook == "bind" else []))
    core = Core(Profile(plugin, *others, tie="name"))
    with Simulation(core, journal=journal) as simulation:
        for name in ("n1", "n2"):
            simulation.client.create(a_node(name))
        simulation.client.create(a_pod("before"))
        simulation.client.create(a_pod("bad", cpu="9" if hook == "post_filter" else "1"))
        simulation.client.create(a_pod("after"))
        simulation.at(seconds(3), lambda: simulation.client.create(a_pod("later")))
        simulation.at(seconds(4), lambda: simulation.client.label("Pod", "bad", tried="yes"))
        simulation.run(until=seconds(6))
    return core, simulation


@pytest.mark.parametrize(("hook", "behaviour"), CASES)
def test_a_bad_plugin_costs_its_own_pod_alone(hook: str, behaviour: str, tmp_path: Path) -> None:
    plugin = plugin_with(hook, behaviours(hook)[behaviour])
    core, simulation = a_run(plugin, hook, tmp_path / "run.jsonl")

    verify(core)
    for name in ("before", "after", "later"):
        assert core.state(f"default/{name}") is State.BOUND, name
        assert simulation.client.node_of(name)
    entries = list(Reading(tmp_path / "run.jsonl"))
    assert len(entries) == core.position, "every effect could be written down"
    state = core.state("default/bad")
    assert state is not None
    if hook in HARMLESS:
        assert state is State.BOUND
    elif behaviour.startswith("raises"):
        assert state in (State.BACKOFF, State.GATED, State.PARKED, State.ACTIVE, State.WAITING), state
        published = simulation.world.seat.requests.published
        said = [effect.note for _, effect in published if effect.regarding == "default/bad"]
        if hook != "pre_enqueue":
            assert any("Mischief" in note for note in said), said
            assert "Mischief" in core.why("default/bad").message


def test_every_hook_is_tried() -> None:
    assert {hook for hook, _ in CASES} == set(hooks())
    assert len(hooks()) > 20


# ── what its tools are asked for ─────────────────────────────────────────────────────────────────────────────

MISUSES: dict[str, Callable[[Any, Any], object]] = {
    "a delay of text": lambda tools, pod: tools.allow_after(pod, "soon"),
    "a delay of nothing": lambda tools, pod: tools.allow_after(pod, None),
    "a delay that is no number": lambda tools, pod: tools.reject_after(pod, math.nan, "no"),
    "a delay into the past": lambda tools, pod: tools.allow_after(pod, -1),
    "no pod": lambda tools, pod: tools.allow(None),
    "a name for a pod": lambda tools, pod: tools.activate(pod.name),
    "no message": lambda tools, pod: tools.reject(pod, Unspeakable()),
    "an unspeakable remark": lambda tools, pod: tools.note(Unspeakable()),
    "a remark of an odd verbosity": lambda tools, pod: tools.note("x", verbosity="loud"),
    "an unspeakable value": lambda tools, pod: tools.note("x", value=Unspeakable()),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_wish_nobody_can_grant_is_refused_where_it_is_made(misuse: str, tmp_path: Path) -> None:
    plugin: Any = plugin_with("permit", lambda: MISUSES[misuse](plugin.tools, asked[-1]))
    asked: list[Any] = []
    call = type(plugin).permit

    def permit(self: Any, cycle: Any, pod: Any, node: str) -> Any:
        asked.append(pod)
        return call(self, cycle, pod, node)

    type(plugin).permit = permit
    core, _ = a_run(plugin, "permit", tmp_path / "run.jsonl")
    verify(core)
    assert core.state("default/later") is State.BOUND
    assert core.state("default/bad") is State.BACKOFF
    assert 'running Permit plugin "Mischief": ' in core.why("default/bad").message


# ── a no where nobody could be woken ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("hook", ["pre_bind", "bind"])
def test_a_no_as_late_as_the_bind_waits_its_backoff_out(hook: str, tmp_path: Path) -> None:
    """What happens while a pod is being bound is not written down, so nothing could say that trying again helps."""
    plugin = plugin_with(hook, answering(unschedulable("not yet")))
    core, _ = a_run(plugin, hook, tmp_path / "run.jsonl")
    verify(core)
    tries = [record.at for record in core.story("default/bad") if record.cause == "popped"]
    assert [round((at - tries[0]) / 1e9) for at in tries] == [0, 2, 5]
    assert core.why("default/bad").message == "0/1 nodes are available: 1 not yet."


# ── a pod that a plugin stumbles over again and again ────────────────────────────────────────────────────────


class Stumbling:
    def filter(self, cycle, pod, node):
        if pod.name == "bad" and pod.pod.metadata.labels.get("mended") is None:
            raise ZeroDivisionError
        return SUCCESS


def stumbles(until: int, *, mended_at: int | None = None, plugin: Any = None) -> list[int]:
    """When a pod was tried that a plugin stumbles over, in seconds."""
    core = Core(Profile(plugin or Stumbling(), Fit(), tie="name"))
    with Simulation(core) as simulation:
        simulation.client.create(a_node("n1"))
        simulation.client.create(a_pod("bad"))
        if mended_at is not None:
            simulation.at(seconds(mended_at), lambda: simulation.client.label("Pod", "bad", mended="yes"))
        simulation.run(until=seconds(until))
    tried = [record.at for record in core.life.recent if record.cause == "popped"]
    return [round((at - tried[0]) / 1e9) for at in tried]


def test_a_pod_a_plugin_stumbles_over_is_tried_less_and_less_often() -> None:
    waits = [later - earlier for earlier, later in pairwise(stumbles(1500))]
    assert waits[:10] == [2, 3, 5, 9, 17, 33, 65, 129, 257, 301]


def test_a_plugin_that_says_what_is_wrong_is_asked_as_often_as_in_kubernetes() -> None:
    class Plain:
        def filter(self, cycle, pod, node):
            return error("the server is away")

    waits = [later - earlier for earlier, later in pairwise(stumbles(60, plugin=Plain()))]
    assert waits == [2, 3, 5, 9, 11, 11, 11]


def test_a_pod_that_changes_is_not_held_to_account_for_what_it_was() -> None:
    assert stumbles(1500, mended_at=100) == [0, 2, 5, 10, 19, 36, 69, 100]
