"""The rules about what is taken back: dry runs, reservations, and room that eviction would make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.trial import Trial
from kubesched.core import runner
from kubesched.core.runner import Broken
from kubesched.core.schedule import schedule
from kubesched.framework.cycle import Cycle
from kubesched.framework.errors import KubeschedError
from kubesched.framework.hooks import NodeSubset, Plugin
from kubesched.framework.status import Status
from kubesched.testing.kit import asking
from kubesched.testing.kit.asking import about, ask, call, hear, shown
from kubesched.testing.kit.memory import state
from kubesched.testing.kit.situation import Fault, Scene, World

DRY_RUNS, SPARE, RESERVE, ROOM = "dry runs", "spare", "reserve", "room"


# ── dry runs ─────────────────────────────────────────────────────────────────────────────────────────────────


def dry_runs(scene: Scene) -> None:
    """With a pod thought away or there, a filter says what it would say if that were so; then all is as before."""
    plugin, world = scene.plugin, scene.world
    cycle = world.cycle()
    said, nodes = asking.pre_filter(plugin, cycle, cycle.nodes)
    if nodes is None or not len(nodes):
        return
    cycle.judge = runner.Examiner(scene.alone)
    before = _answers(cycle, nodes.names)
    for other, name, placed in _moves(scene):
        if isinstance(said, NodeSubset) and name not in said.names:
            continue
        _one_move(scene, cycle, other, name, placed, before[name])
        after = _answers(cycle, nodes.names)
        if after != before:
            node = next(one for one in before if after[one] != before[one])
            where = f"{about(plugin, 'filter')}, about node {node}, when a dry run is over"
            raise Fault(
                DRY_RUNS,
                where,
                f"{shown(before[node])}, as before it; does the scratch value have a clone()?",
                shown(after[node]),
            )


def _moves(scene: Scene) -> list[tuple[PodInfo, str, bool]]:
    """Pods to think away, and one to think there."""
    table = scene.world.mirror.table
    here = [(pod, table.names[row], False) for row in table.rows.tolist() for pod in table.pods[row]]
    moves = [move for move in here if not move[0].pod.terminating][:3]
    node = table.names[int(table.rows[scene.situation.pick % len(table.rows)])]
    return moves + [(other, node, True) for other in scene.others()[:1]]


def _one_move(scene: Scene, cycle: Cycle, other: PodInfo, name: str, placed: bool, before: Status) -> None:
    node = NodeInfo(cycle.table, cycle.table.row_of[name])
    hook = "add_pod" if placed else "remove_pod"
    what = f"with pod {other.key} {'there' if placed else 'gone'}"
    with Trial(cycle.table) as trial:
        mark = trial.checkpoint()
        (trial.place if placed else trial.evict)(other, name)
        got = _judged(cycle, node, trial, hook)
        real = _real(scene, name)
        if real is not None and got != real:
            scene_name = scene.subject.name
            where = f"{scene_name}.filter, about node {name} {what}, in a dry run"
            raise Fault(DRY_RUNS, where, f"{shown(real)}, as if it were so; does {hook} keep up with it?", shown(got))
        trial.rollback(mark)
        back = _judged(cycle, node, trial, "remove_pod" if placed else "add_pod")
        if back != before:
            where = f"{scene.subject.name}.filter, about node {name}, {what} and then back"
            raise Fault(DRY_RUNS, where, f"{shown(before)}; add_pod and remove_pod undo each other", shown(back))
    scene.saw("dry runs")


def _judged(cycle: Cycle, node: NodeInfo, trial: Trial, hook: str) -> Status:
    try:
        return asking.settled(cycle.fits(node, trial))
    except Broken as broken:
        cause = broken.__cause__
        if cause is not None and not isinstance(cause, KubeschedError):
            where = f"{broken.plugin}.{hook} or filter, in a dry run about node {node.name}"
            raise Fault("answers", where, "an answer", f"{type(cause).__name__}: {cause}") from cause
        return Status(reasons=(broken.text,))


def _real(scene: Scene, name: str) -> Status | None:
    """What a new attempt says of a node, with the table as it is now; None where it says it another way."""
    plugin, cycle = scene.plugin, scene.world.cycle()
    _, nodes = asking.pre_filter(plugin, cycle, cycle.nodes)
    if nodes is None or name not in nodes.names:
        return None
    cycle.judge = runner.Examiner(scene.alone)
    return _answers(cycle, [name])[name]


def _answers(cycle: Cycle, names: list[str]) -> dict[str, Status]:
    """The filter's word on nodes one by one, as a dry run would hear it."""
    said = {}
    for name in names:
        with Trial(cycle.table) as trial:
            said[name] = _judged(cycle, NodeInfo(cycle.table, cycle.table.row_of[name]), trial, "filter")
    return said


def spare(scene: Scene) -> None:
    """Those spare cannot bring back are those that trying, one by one, cannot bring back."""
    plugin, cycle = scene.plugin, scene.world.cycle()
    _, nodes = asking.pre_filter(plugin, cycle, cycle.nodes)
    cycle.judge = runner.Examiner(scene.alone)
    for node in nodes or ():
        others = tuple(node.pods)[:: -1 if scene.situation.pick % 2 else 1]
        if not others:
            continue
        wanted = _by_trying(cycle, node, others)
        got = call(plugin, "spare", cycle, cycle.pod, node, others)
        where = f"{about(plugin, 'spare')}, about node {node.name} and {_keys(others)}"
        if isinstance(wanted, Status) or isinstance(got, Status):
            told = asking.settled(got) if isinstance(got, Status) else got
            if told != wanted:
                raise Fault(SPARE, where, f"{shown(wanted)}, as filter says with them gone", shown(told))
        elif [pod.uid for pod in got] != [pod.uid for pod in wanted]:
            raise Fault(SPARE, where, f"{_keys(wanted)}, as trying says", _keys(got))
        else:
            scene.saw("spared", len(others) - len(wanted))


def _by_trying(cycle: Cycle, node: NodeInfo, others: Sequence[PodInfo]) -> list[PodInfo] | Status:
    left = []
    with Trial(cycle.table) as trial:
        for other in others:
            trial.evict(other, node.name)
        status = _judged(cycle, node, trial, "remove_pod")
        if not status.ok:
            return status
        for other in others:
            trial.place(other, node.name)
            if not _judged(cycle, node, trial, "add_pod").ok:
                trial.evict(other, node.name)
                left.append(other)
    return left


def _keys(pods: Sequence[PodInfo]) -> str:
    return ", ".join(pod.key for pod in pods) or "nobody"


# ── reserve ──────────────────────────────────────────────────────────────────────────────────────────────────


def reserve(scene: Scene) -> None:
    """unreserve takes back all that reserve did; once more, or without a reserve, it changes nothing."""
    plugin, world = scene.plugin, scene.world
    for info in scene.others()[:1]:  # somebody else's reservation, so that the first of all is not special
        if (place := _place(plugin, world, info)) is not None:
            cycle, name = place
            ask(plugin, "reserve", cycle, info, name)
            ask(plugin, "unreserve", cycle, info, name)
    place = _place(plugin, world, world.info)
    if place is None:
        return
    cycle, name = place
    scene.saw("reserved")
    answers, outer, inner = hear(plugin, world), _claimed(world), state(plugin)
    before = asking.portrait(world)[: asking.OBJECTS]  # of other objects some may be assumed
    ask(plugin, "reserve", cycle, world.info, name)
    asking.unchanged(scene, before, about(plugin, "reserve"))
    during = state(plugin)
    touched = {attribute for attribute, value in during.items() if value != inner.get(attribute)}
    for again in ("unreserve", "a second unreserve"):
        _unreserved(scene, again, cycle, name)
        _taken_back(scene, f"{again} on node {name}", {attribute: inner.get(attribute) for attribute in touched})
        _as_before(scene, f"{again} on node {name}", outer, answers)
        touched, inner = {*inner}, state(plugin)  # from now on nothing may change at all


def _unreserved(scene: Scene, again: str, cycle: Cycle, name: str) -> None:
    try:
        ask(scene.plugin, "unreserve", cycle, cycle.pod, name)
    except Fault as fault:
        if again == "unreserve":
            raise
        where = f"{about(scene.plugin, 'unreserve')}, about node {name}, called a second time"
        raise Fault(RESERVE, where, "nothing, however often it is called", fault.got) from fault


def _place(plugin: Plugin, world: World, info: PodInfo) -> tuple[Cycle, str] | None:
    """An attempt that has found a node."""
    cycle = world.cycle(info)
    said, nodes = asking.pre_filter(plugin, cycle, cycle.nodes)
    if nodes is None:
        left = list(cycle.nodes.names) if isinstance(said, Status) and said.code.name == "SKIP" else []
    else:
        found = asking.filtered(plugin, cycle, nodes)
        left = [name for name in nodes.names if name not in found or found[name].ok]
    return (cycle, left[0]) if left else None


def _taken_back(scene: Scene, what: str, before: Mapping[str, Any]) -> None:
    """What reserve changed of the plugin itself is as it was."""
    now = state(scene.plugin)
    for name, was in before.items():
        if now.get(name) != was:
            where = f"{scene.subject.name}, after reserve and {what}"
            raise Fault(RESERVE, where, f"{name} as it was before: {was}", str(now.get(name)))


def _as_before(scene: Scene, what: str, assumed: list[str], answers: asking.Heard) -> None:
    where = f"{scene.subject.name}, after reserve and {what}"
    if _claimed(scene.world) != assumed:
        raise Fault(RESERVE, where, f"the objects assumed before: {assumed}", str(_claimed(scene.world)))
    found = answers.difference(hear(scene.plugin, scene.world))
    if found is not None:
        hook, expected, got = found
        raise Fault(RESERVE, f"{where}: {hook}", f"{expected}, as before", got)


def _claimed(world: World) -> list[str]:
    return sorted(f"{obj.kind} {obj.key}" for obj in world.mirror.objects.assumed())


# ── room ─────────────────────────────────────────────────────────────────────────────────────────────────────


def room(scene: Scene) -> None:
    """Whom post_filter wants evicted is there, and with them gone the pod fits; asking leaves no trace."""
    world = scene.world
    before = asking.portrait(world)
    cycle = world.cycle()
    decision = schedule(cycle, scene.profile)
    asking.unchanged(scene, before, about(scene.plugin, "post_filter"))
    found = decision.post_filter
    if decision.placed or found is None or not found.node or not found.victims:
        return
    scene.saw("made room")
    where = f"{about(scene.plugin, 'post_filter')} for {world.info.key}"
    row = cycle.table.row_of.get(found.node)
    if row is None:
        raise Fault(ROOM, where, "a node that is there", found.node)
    here = {pod.uid for pod in cycle.table.pods[row]}
    for victim in found.victims:
        if victim.uid not in here:
            raise Fault(ROOM, where, f"victims that are on node {found.node}", victim.key)
    with Trial(cycle.table) as trial:
        for victim in found.victims:
            trial.evict(victim, found.node)
        status = cycle.fits(NodeInfo(cycle.table, row), trial)
    if not status.ok:
        gone = ", ".join(victim.key for victim in found.victims)
        raise Fault(ROOM, where, f"room for it on {found.node} once {gone} are gone", shown(status))
