"""The rules about what happens later: pods are woken by what helps them, boards follow, the queue has an order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal

import msgspec
from msgspec import structs

from kubesched.api.objects import KubeObject, Node, Pod
from kubesched.api.time import Instant
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.board import Boards
from kubesched.core.queue.hints import LISTENING_POINTS, HintMap
from kubesched.core.schedule import schedule
from kubesched.explain.fields import fields
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, ClusterEvent, QueueingHint, node_changes, pod_changes, resource_name
from kubesched.framework.hooks import Plugin, name_of, points_of
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod
from kubesched.framework.records import State
from kubesched.framework.status import Status
from kubesched.testing.harness import observe, scheduler, tick, vanish
from kubesched.testing.kit.asking import ANSWERS, about, ask, call, shown
from kubesched.testing.kit.situation import Fault, Scene, Situation, Step, Told, World
from kubesched.testing.parity import differences

HINTS, ORDER, BOARDS = "hints", "order", "boards"
_ASLEEP = (State.PARKED, State.GATED)


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────


def hints(scene: Scene) -> None:
    """A pod that was turned down is woken by whatever makes it fit."""
    if LISTENING_POINTS.isdisjoint(points_of(scene.plugin)):
        return
    if not _told(scene, scene.situation):
        for twist in scene.situation.twists:
            _told(scene, structs.replace(scene.situation, steps=twist))


def _told(scene: Scene, situation: Situation) -> bool:
    """Follow the steps of a situation; returns whether the pod fitted at the beginning."""
    moving = Scene(scene.subject, situation)
    first = fitted = _fits(moving)
    for step in situation.steps:
        waiting = moving.world.info.pod
        before = moving.world.views()
        told = moving.world.take(step)
        if told is None:
            continue
        if not fitted:
            _looks(moving, PodInfo(waiting), [one for one in (*before, waiting) if _same(one, told.obj)], told)
        fits = _fits(moving)
        if fits and not fitted:
            scene.saw("fits at last")
            _must_wake(scene, before, waiting, told, step)
        fitted = fits
    return first


def _fits(scene: Scene) -> bool:
    """Whether the plugin would have the pod bound somewhere now."""
    world, profile = scene.world, scene.profile
    if world.info.pod.spec.node_name:
        return False
    if any(ask(plugin, "pre_enqueue", world.info).rejected for plugin in profile.pre_enqueue):
        return False
    cycle = world.cycle()
    decision = schedule(cycle, profile)
    if not decision.placed:
        return False
    fits = True
    for plugin in profile.reserve:
        fits = fits and bool(ask(plugin, "reserve", cycle, world.info, decision.node).ok)
        ask(plugin, "unreserve", cycle, world.info, decision.node)
    permits = (ask(plugin, "permit", cycle, world.info, decision.node) for plugin in profile.permit if fits)
    return fits and not any(isinstance(answer, Status) and not answer.ok for answer in permits)


def _must_wake(scene: Scene, before: list[KubeObject], waiting: Pod, told: Told, step: Step) -> None:
    """Play it on a real scheduler: the pod is turned down, the step happens, the pod must not sleep on."""
    plugins = [scene.subject.make(), *(make() for make in scene.subject.beside)]
    core = scheduler(*before, profile=Profile(*plugins, tie="name", name=waiting.spec.scheduler_name), checks=False)
    observe(core, waiting)
    tick(core)
    if core.state(waiting.key) not in _ASLEEP or core.preempting(waiting.uid):
        return  # it could not be decided, or makes room for itself: such a pod is tried again without being told
    (vanish if told.gone else observe)(core, told.obj)
    if core.state(waiting.key) not in _ASLEEP:
        return
    raise Fault(
        HINTS,
        f"{waiting.key} was turned down, then came: {step.verb} {step.kind} {step.key}, and now it fits",
        f"a hint of {scene.subject.name} that answers QUEUE to that",
        f"it sleeps on; {scene.subject.name} listens to {_listens(scene)}",
    )


def _looks(scene: Scene, waiting: PodInfo, before: list[KubeObject], told: Told) -> None:
    """Ask the hints for themselves: one that stumbles is taken to say QUEUE, which would hide it."""
    plugin = scene.plugin
    if not hasattr(plugin, "events_to_register"):
        return
    old, new = before[0] if before else None, None if told.gone else told.obj
    hints = [hint for hint in plugin.events_to_register() if hint.look is not None]
    for event in _events(old, new) if hints else ():
        for hint in hints:
            if hint.look is None or not hint.matches(event):
                continue
            where = f"a hint of {scene.subject.name} for {event.label}"
            given = msgspec.json.encode((waiting.pod, old, new))
            try:
                answer: object = hint.look(waiting, old, new)
            except Exception as problem:
                raise Fault(ANSWERS, where, "QUEUE or SKIP", f"{type(problem).__name__}: {problem}") from problem
            if not isinstance(answer, QueueingHint):
                raise Fault(ANSWERS, where, "QUEUE or SKIP", shown(answer))
            left = msgspec.json.encode((waiting.pod, old, new))
            if left != given:
                raise Fault("arguments", where, f"what it was given left as it was: {given.decode()}", left.decode())


def _same(one: KubeObject, other: KubeObject) -> bool:
    return type(one) is type(other) and one.key == other.key


def _events(old: KubeObject | None, new: KubeObject | None) -> Iterable[ClusterEvent]:
    """What the core would tell of."""
    if isinstance(old, Node) and isinstance(new, Node):
        return node_changes(old, new)
    if isinstance(old, Pod) and isinstance(new, Pod):
        return pod_changes(old, new)
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    obj = new if old is None else old
    return () if obj is None else (ClusterEvent(resource_name(type(obj)), action),)


def _listens(scene: Scene) -> str:
    """What a plugin registered, in words."""
    turned_down = QueuedPod(scene.world.info, Instant(0), 0)
    turned_down.rejectors = frozenset((scene.subject.name,))
    listeners = HintMap({turned_down.info.pod.spec.scheduler_name: scene.alone}, lambda plugin, hook, problem: None)
    return listeners.alarm(turned_down) or "nothing"


# ── boards ───────────────────────────────────────────────────────────────────────────────────────────────────


class _EveryNode:
    """Finds no node better than another.  With a score in the profile every node is looked at, not the first alone."""

    board: Literal["node", "row"] = "node"

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        return 0

    def alike(self, cycle: Cycle, pod: PodInfo) -> Hashable:
        return ()


def boards(scene: Scene) -> None:
    """What is kept of pods alike never changes a decision (`board`, `alike`, `context`, `outlook`)."""
    if getattr(scene.plugin, "board", None) is None:
        return
    moving = Scene(scene.subject, scene.situation)
    profile, kept = Profile(moving.plugin, _EveryNode(), tie="name"), Boards()
    pods = [moving.world.info, *moving.others()[:1]]
    number = 0
    for step in (None, None, *scene.situation.steps):  # a board is only kept from the second pod of a kind on
        if step is not None:
            moving.world.take(step)
        for info in pods:
            number += 1
            _decided_alike(moving.world, profile, kept, _copy(info, number), number)
    scene.saw("decided by a board", kept.hits)


def _decided_alike(world: World, profile: Profile, kept: Boards, info: PodInfo, number: int) -> None:
    """Decide once the long way and once with boards; every other pod then takes its place."""
    plain = schedule(world.cycle(info, number), profile)
    told = schedule(world.cycle(info, number), profile, boards=kept)
    for found in differences("", [fields(plain)], [fields(told)]):
        where = f"{name_of(profile.plugins[0])}, pod number {number} ({info.name}), {found.what}"
        raise Fault(BOARDS, where, f"{found.expected}, as without a board", str(found.got))
    if plain.placed and number % 4 < 2:
        world.mirror.assume(info, plain.node)


def _copy(info: PodInfo, number: int) -> PodInfo:
    name = f"{info.name}-{number}"
    meta = structs.replace(info.pod.metadata, name=name, uid=f"uid-of-{name}")
    return PodInfo(structs.replace(info.pod, metadata=meta))


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────


def order(scene: Scene) -> None:
    """A queue_sort is a strict weak order: of two pods at most one comes first, and what is before is transitive."""
    plugin = scene.plugin
    if not (hasattr(plugin, "key") or hasattr(plugin, "less")):
        return
    pods = _queued(scene)
    before = [_state(pod) for pod in pods]
    first = _first(plugin)
    less = {(i, j): first(a, b) for i, a in enumerate(pods) for j, b in enumerate(pods)}
    again = {(i, j): first(a, b) for i, a in enumerate(pods) for j, b in enumerate(pods)}
    if [_state(pod) for pod in pods] != before:
        raise Fault(
            "arguments", _sorting(plugin), f"the pods left as they were: {before}", str([_state(pod) for pod in pods])
        )
    for pair, answer in less.items():
        if again[pair] != answer:
            raise Fault("purity", _sorting(plugin, pods, pair), f"{answer}, as before", f"{again[pair]}, asked again")
    scene.saw("sorted", sum(less.values()))
    _strict(plugin, pods, less)
    _transitive(plugin, pods, less)


def _strict(plugin: Plugin, pods: list[QueuedPod], less: dict[tuple[int, int], bool]) -> None:
    for (i, j), answer in less.items():
        if answer and i == j:
            raise Fault(ORDER, _sorting(plugin, pods, (i, j)), "no pod before itself", "it comes before itself")
        if answer and less[j, i]:
            raise Fault(ORDER, _sorting(plugin, pods, (i, j)), "at most one before the other", "each before the other")


def _transitive(plugin: Plugin, pods: list[QueuedPod], less: dict[tuple[int, int], bool]) -> None:
    count = range(len(pods))

    def even(i: int, j: int) -> bool:
        return not less[i, j] and not less[j, i]

    for i in count:
        for j in count:
            for k in count:
                where = _sorting(plugin, pods, (i, j, k))
                if less[i, j] and less[j, k] and not less[i, k]:
                    raise Fault(ORDER, where, "the first before the third, as it is before the second", "it is not")
                if even(i, j) and even(j, k) and not even(i, k):
                    raise Fault(
                        ORDER, where, "the first and the third even, as both are with the second", "they are not"
                    )


def _queued(scene: Scene) -> list[QueuedPod]:
    """The pods of a situation in a queue, some waiting longer, some tried before."""
    pick = scene.situation.pick
    pods = []
    for i, info in enumerate([scene.world.info, *scene.others(), *_sitting(scene.world)][:6]):
        pod = QueuedPod(info, Instant((pick * (i + 3) % 5) * 1_000_000_000), seq=i)
        pod.attempts = pick * (i + 1) % 3
        pods.append(pod)
    return pods


def _sitting(world: World) -> list[PodInfo]:
    return [pod for row in world.mirror.table.rows.tolist() for pod in world.mirror.table.pods[row]]


def _first(plugin: Plugin) -> Callable[[QueuedPod, QueuedPod], bool]:
    def by_less(a: QueuedPod, b: QueuedPod) -> bool:
        answer = call(plugin, "less", a, b)
        if not isinstance(answer, bool):
            raise Fault("answers", about(plugin, "less"), "True or False", shown(answer))
        return answer

    def by_key(a: QueuedPod, b: QueuedPod) -> bool:
        one, other = call(plugin, "key", a), call(plugin, "key", b)
        try:
            return bool(one < other)
        except TypeError as problem:
            where = f"{about(plugin, 'key')} of {a.info.key} and {b.info.key}"
            raise Fault("answers", where, "keys that compare", f"{one!r} and {other!r}: {problem}") from None

    return by_less if hasattr(plugin, "less") else by_key


def _state(pod: QueuedPod) -> tuple[Any, ...]:
    return (*tuple(getattr(pod, name) for name in QueuedPod.__slots__ if name != "info"), pod.info.key)


def _sorting(plugin: Plugin, pods: list[QueuedPod] | None = None, which: tuple[int, ...] = ()) -> str:
    hook = "less" if hasattr(plugin, "less") else "key"
    named = [
        f"{pods[i].info.key} (priority {pods[i].priority}, added {pods[i].added // 1_000_000_000}s)"
        for i in which
        if pods
    ]
    return about(plugin, hook) + (f", of {', '.join(named)}" if named else "")
