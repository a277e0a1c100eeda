"""A stage of the tutorial: what it is called, the scheduler it builds, and the little cluster it is tried on.

    cordoned   nine cordoned nodes, node0 to node8, then pod1; node10 arrives after three seconds, open
    numbered   ten open nodes, node0 to node9, then pod1 and pod3

Everything happens in virtual time, so even the five minutes of stage 6 are over at once.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from kubesched.api.time import seconds
from kubesched.core.core import Core
from kubesched.framework.plain import plain
from kubesched.framework.records import Record
from kubesched.sim.client import Client
from kubesched.sim.simulation import Simulation
from kubesched.telemetry.words import picture, places, story

HORIZON = seconds(600)


@dataclass(frozen=True)
class Stage:
    """One step of the way.  `after` is the module of the step before."""

    number: int
    title: str
    scheduler: Callable[[], Core]
    scenario: str
    after: ModuleType | None = None

    @property
    def module(self) -> ModuleType:
        module = inspect.getmodule(self.scheduler)
        assert module is not None
        return module

    @property
    def text(self) -> str:
        """What the stage says about itself."""
        return inspect.cleandoc(self.module.__doc__ or "")

    @property
    def source(self) -> str:
        """The program itself."""
        return Path(self.module.__file__ or "").read_text(encoding="utf-8")

    def difference(self) -> str:
        """What this program has that the one before has not, as a diff; the whole file where there is none before."""
        if self.after is None:
            return self.source
        before, now = (Path(module.__file__ or "") for module in (self.after, self.module))
        lines = difflib.unified_diff(_program(before), _program(now), before.name, now.name, lineterm="", n=2)
        return "\n".join(lines) + "\n"

    @property
    def heading(self) -> str:
        return f"Stage {self.number} — {self.title}"

    def run(self) -> Run:
        """Play the scenario to its end."""
        return Run(self)

    def lines(self) -> Iterator[str]:
        """The run, told line by line."""
        run = self.run()
        yield self.heading
        yield ""
        yield from run.told()

    def play(self) -> None:
        """Run the stage and print what happens."""
        for line in self.lines():
            print(line)


def _program(path: Path) -> list[str]:
    """The lines of a file behind what it says about itself."""
    text = path.read_text(encoding="utf-8")
    return text.splitlines()[ast.parse(text).body[0].end_lineno :]


class Run:
    """A stage, played."""

    def __init__(self, stage: Stage) -> None:
        self.core = stage.scheduler()
        self.happened: list[tuple[int, str]] = []
        with Simulation(self.core) as simulation:
            self.simulation = simulation
            self._note(0, SCENARIOS[stage.scenario](self))
            simulation.run(until=HORIZON)
        self.records: list[Record] = list(self.core.life.recent)

    @property
    def client(self) -> Client:
        return self.simulation.client

    def later(self, after: int, action: Callable[[], str]) -> None:
        """Plan something for so many seconds into the run; what it says is part of the story."""
        self.simulation.at(seconds(after), lambda: self._note(after, action()))

    def _note(self, after: int, text: str) -> None:
        self.happened.append((seconds(after), text))

    def told(self) -> Iterator[str]:
        """What happened to the cluster and to the pods, in order, with pictures of the queue where it matters."""
        start = self.simulation.world.start
        told = [(start + at, -1, f"{at / 1e9:9.3f}s  {text}") for at, text in self.happened]
        words = story(self.records, start)
        told += [(record.at, i, line) for i, (record, line) in enumerate(zip(self.records, words, strict=True))]
        seen: list[Record] = []
        for _, i, line in sorted(told):
            yield line
            if i >= 0:
                seen.append(self.records[i])
                yield from drawn_after(seen)
        yield ""
        yield from map(outcome, self.client.list("Pod"))


def outcome(pod: dict[str, Any]) -> str:
    """Where a pod is in the end, or why it is nowhere."""
    name, node = plain(pod["metadata"]["name"]), pod.get("spec", {}).get("nodeName")
    if node:
        return f"{name} is on {plain(node)}"
    conditions = pod.get("status", {}).get("conditions", [])
    why = next((c["message"] for c in conditions if c["type"] == "PodScheduled"), "nobody tried")
    return f"{name} is on no node: {plain(why)}"


def drawn_after(records: list[Record]) -> Iterator[str]:
    """The queue as a picture, where the last of these moves is one that matters."""
    if records[-1].cause in ("unfit", "wait", "bound"):
        yield from (f"{'':11}{drawn}" for drawn in picture(_shown(records)))


def _shown(records: list[Record]) -> dict[str, list[str]]:
    drawn = {name: [pod.partition("/")[2] for pod in pods] for name, pods in places(records).items()}
    return {name: drawn[name] for name in ("active", "backoff", "parked", "in flight", "bound")}


# ── the two little clusters ──────────────────────────────────────────────────────────────────────────────────


def _node(name: str, *, cordoned: bool) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name}, "spec": {"unschedulable": True} if cordoned else {}}


def _pod(name: str) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "pause:3.9"}]}}


class Maker(Protocol):
    """Who makes objects."""

    def create(self, obj: dict[str, Any]) -> Any: ...


class Stagehand(Protocol):
    """What a scenario is played with, whoever's time it is."""

    @property
    def client(self) -> Maker: ...

    def later(self, after: int, action: Callable[[], str]) -> None:
        """Plan something for so many seconds into the run; what it says is part of the story."""
        ...


def _cordoned(run: Stagehand) -> str:
    for i in range(9):
        run.client.create(_node(f"node{i}", cordoned=True))
    run.client.create(_pod("pod1"))

    def node10() -> str:
        run.client.create(_node("node10", cordoned=False))
        return "node10 is added, open to pods"

    run.later(3, node10)
    return "node0 to node8 are there, all cordoned; pod1 is created"


def _numbered(run: Stagehand) -> str:
    for i in range(10):
        run.client.create(_node(f"node{i}", cordoned=False))
    for name in ("pod1", "pod3"):
        run.client.create(_pod(name))
    return "node0 to node9 are there; pod1 and pod3 are created"


SCENARIOS: dict[str, Callable[[Stagehand], str]] = {"cordoned": _cordoned, "numbered": _numbered}
