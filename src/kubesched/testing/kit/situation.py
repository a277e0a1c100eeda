"""A small cluster, a pod, and what happens next: the material every rule of the kit is tried on.

A situation is plain JSON, so that it can be printed, cut down and made again.  A `Scene` is one plugin in one
situation: the cluster as the plugin sees it, changing step by step as the situation says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from kubesched.api.objects import KINDS, KubeObject, Pod, read
from kubesched.api.selectors import SelectorError
from kubesched.cluster.columns import Nodes
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.luck import SeededLuck
from kubesched.framework.cycle import Cycle
from kubesched.framework.hooks import Plugin
from kubesched.framework.profile import Profile
from kubesched.testing.parity import NOON, Desk

Json = dict[str, Any]


class Step(Struct, frozen=True):
    """Something that happens to one object: it appears, changes, or goes.

    Attributes:
        key: `namespace/name`, or the name alone.
        body: the object that appears; what changes, as a merge patch; nothing for one that goes.
    """

    verb: Literal["add", "change", "delete"]
    kind: str
    key: str
    body: Json = {}


class Situation(Struct, frozen=True):
    """What a rule is tried on.

    Attributes:
        objects: the cluster, pods on nodes included.
        pod: who wants in.
        others: more pods without a node, for rules that need company.
        steps: what happens one after the other.
        twists: what else might happen, each from the beginning.
        pick: a number to choose by, where a rule must choose a node or a pod.
    """

    objects: tuple[Json, ...]
    pod: Json
    others: tuple[Json, ...] = ()
    steps: tuple[Step, ...] = ()
    twists: tuple[tuple[Step, ...], ...] = ()
    pick: int = 0


class Fault(Exception):
    """A rule is broken: what it expects, what it got instead, and where."""

    def __init__(self, rule: str, where: str, expected: str, got: str) -> None:
        self.rule, self.where, self.expected, self.got = rule, where, expected, got
        super().__init__(f"{rule}: {where}: expected {expected}, got {got}")


def key_of(raw: Json) -> str:
    meta = raw.get("metadata", {})
    namespace = meta.get("namespace", "")
    return f"{namespace}/{meta.get('name', '')}" if namespace else str(meta.get("name", ""))


def merged(body: Any, patch: Any) -> Any:
    """A JSON merge patch applied: null takes a field away, lists are replaced whole."""
    if not isinstance(patch, dict):
        return patch
    result = dict(body) if isinstance(body, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


class Told(NamedTuple):
    """One message of the API server."""

    obj: KubeObject
    gone: bool


class World:
    """The cluster of a situation, as it is after the steps taken so far."""

    def __init__(self, situation: Situation, kinds: Mapping[str, type[KubeObject]]) -> None:
        self.kinds = kinds
        self.pod_key = key_of(situation.pod)
        self.raw: dict[tuple[str, str], Json] = {(raw["kind"], key_of(raw)): raw for raw in situation.objects}
        self.raw_pod = situation.pod
        self.mirror = Mirror()
        self.desk = Desk(self.mirror)
        self.info = PodInfo(read(situation.pod, Pod))
        for raw in situation.objects:
            self.mirror.observe(self.view(raw))

    def view(self, raw: Json) -> KubeObject:
        return read(raw, self.kinds[raw["kind"]])

    def views(self) -> list[KubeObject]:
        """Every object there is, the waiting pod not among them."""
        return [self.view(raw) for raw in self.raw.values()]

    @property
    def nodes(self) -> Nodes:
        return Nodes(self.mirror.table, self.mirror.table.rows)

    def cycle(self, info: PodInfo | None = None, number: int = 0) -> Cycle:
        """An attempt to place the waiting pod, or another."""
        wanted = self.info if info is None else info
        return Cycle(wanted, self.nodes, self.mirror.objects, now=NOON, luck=SeededLuck(0, number), number=number)

    def take(self, step: Step) -> Told | None:
        """Let a step happen; None where it means nothing (any more)."""
        told = self._told(step)
        if told is None:
            return None
        if isinstance(told.obj, Pod) and told.obj.key == self.pod_key:
            self.info = PodInfo(told.obj)
        else:
            self.mirror.observe(told.obj, told.gone)
        return told

    def _told(self, step: Step) -> Told | None:
        if step.kind == "Pod" and step.key == self.pod_key:
            after = merged(self.raw_pod, step.body)
            if step.verb != "change" or not _allowed(self.raw_pod, after):
                return None
            self.raw_pod = after
            return Told(read(after, Pod), gone=False)
        at = (step.kind, step.key)
        before = self.raw.get(at)
        if step.verb == "add":
            if before is not None:
                return None
            self.raw[at] = step.body
            return Told(self.view(step.body), gone=False)
        if before is None:
            return None
        if step.verb == "delete":
            return Told(self.view(self.raw.pop(at)), gone=True)
        after = merged(before, step.body)
        if step.kind == "Pod" and not _allowed(before, after):
            return None
        self.raw[at] = after
        return Told(self.view(after), gone=False)


def _allowed(before: Json, after: Json) -> bool:
    """Whether the API server would let a pod change so: tolerations are only added, gates only taken away."""
    was, now = (raw.get("spec", {}) for raw in (before, after))
    tolerated = was.get("tolerations", [])
    gates = was.get("schedulingGates", [])
    return now.get("tolerations", [])[: len(tolerated)] == tolerated and all(
        gate in gates for gate in now.get("schedulingGates", [])
    )


class Maker(Protocol):
    """Makes one more instance of the plugin that is examined."""

    def __call__(self) -> Plugin: ...


class Subject(NamedTuple):
    """The plugin that is examined.

    Attributes:
        make: one more instance of it.
        name: what it calls itself.
        beside: makes the plugins that stand beside it in the profile.
        kinds: the kinds of objects there are, its own among them.
    """

    make: Maker
    name: str
    beside: tuple[Maker, ...] = ()
    kinds: Mapping[str, type[KubeObject]] = KINDS


class Scene:
    """One situation, told to one plugin.  Rules leave it as they found it, or make their own."""

    def __init__(self, subject: Subject, situation: Situation) -> None:
        self.subject = subject
        self.situation = situation
        self.world = World(situation, subject.kinds)
        self.plugin = self.fresh()
        self.seen: dict[str, int] = {}
        """How often something worth looking at was met: a node turned down, a pod that fits at last."""

    def fresh(self, world: World | None = None) -> Plugin:
        """Another instance, shown this cluster."""
        plugin = self.subject.make()
        plugin.tools.attach((world or self.world).desk)
        return plugin

    @cached_property
    def alone(self) -> Profile:
        """The plugin and nobody else."""
        return Profile(self.plugin, tie="name")

    @cached_property
    def profile(self) -> Profile:
        """The plugin, with those that stand beside it, as the scheduler would run them."""
        if not self.subject.beside:
            return self.alone
        beside = [make() for make in self.subject.beside]
        for plugin in beside:
            plugin.tools.attach(self.world.desk)
        return Profile(self.plugin, *beside, tie="name")

    def anew(self) -> World:
        """The same cluster, made once more."""
        return World(self.situation, self.subject.kinds)

    def others(self) -> list[PodInfo]:
        return [PodInfo(read(raw, Pod)) for raw in self.situation.others]

    def saw(self, what: str, count: int = 1) -> None:
        self.seen[what] = self.seen.get(what, 0) + count


def readable(situation: Situation, kinds: Mapping[str, type[KubeObject]]) -> bool:
    """Whether every object of a situation has the shape its kind promises."""
    try:
        World(situation, kinds)
        for raw in situation.others:
            PodInfo(read(raw, Pod)).measure()
    except (ValueError, KeyError, TypeError, SelectorError):
        return False
    return True


def lines(situation: Situation, steps: Sequence[Step]) -> Iterator[str]:
    """A situation for a reader, an object a line."""
    for raw in situation.objects:
        yield f"  {raw['kind']} {key_of(raw)}  {_short(raw)}"
    yield f"  the pod {key_of(situation.pod)}  {_short(situation.pod)}"
    for raw in situation.others:
        yield f"  another pod {key_of(raw)}  {_short(raw)}"
    for step in steps:
        yield f"  then: {step.verb} {step.kind} {step.key}" + (f"  {_short(step.body)}" if step.body else "")


def _short(raw: Json) -> str:
    """Without what the line has said already."""
    meta = {name: value for name, value in raw.get("metadata", {}).items() if name not in ("name", "namespace", "uid")}
    told = {name: value for name, value in raw.items() if name not in ("kind", "apiVersion", "metadata")}
    return json.dumps({"metadata": meta, **told} if meta else told, ensure_ascii=False)
