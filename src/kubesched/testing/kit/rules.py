"""The rules about answers: they agree, they repeat, they are in range, and asking changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kubesched.api.objects import Pod, read
from kubesched.cluster.columns import Nodes
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.hooks import NodeSubset, Plugin
from kubesched.framework.status import Status
from kubesched.testing.kit import asking
from kubesched.testing.kit.asking import about, ask, call, hear, shown
from kubesched.testing.kit.memory import state
from kubesched.testing.kit.situation import Fault, Scene

Check = Callable[[Scene], None]


def answers(scene: Scene) -> None:
    """Every hook answers what it must, and stumbles over no cluster."""
    plugin, world = scene.plugin, scene.world
    info = world.info
    for what, count in _counts(scene).items():
        scene.saw(what, count)
    cycle = world.cycle()
    asking.pre_filter(plugin, cycle, cycle.nodes)
    node = world.nodes.names[scene.situation.pick % len(world.nodes)] if len(world.nodes) else ""
    for hook in ("permit", "pre_bind", "bind", "post_bind"):
        if node and hasattr(plugin, hook):
            asking.seen_through(plugin, hook, info, node, ask(plugin, hook, cycle, info, node))


def tells(scene: Scene, rare: str) -> bool:
    """Whether the plugin gives the answer here that it rarely gives: `turned down` or `let through`."""
    if not _filters(scene.plugin) and not hasattr(scene.plugin, "pre_enqueue"):
        return True
    try:
        return _counts(scene)[rare] > 0
    except Fault:
        return True


def _counts(scene: Scene) -> dict[str, int]:
    """How the plugin took a situation, in numbers."""
    heard = hear(scene.plugin, scene.world)
    rejected = sum(not status.ok for status in heard.filter.values())
    held = isinstance(heard.before, Status) and heard.before.rejected
    let = len(heard.filter) - rejected
    if hasattr(scene.plugin, "pre_enqueue"):
        gated = not ask(scene.plugin, "pre_enqueue", scene.world.info).ok
        held, let = held or gated, let + (not gated)
    return {
        "turned down": rejected + held,
        "let through": let,
        "scored above 0": sum(score > 0 for score in heard.scores.values()),
        "told apart": (0 < rejected < len(heard.filter)) + (len(set(heard.scores.values())) > 1),
    }


# ── tiers ────────────────────────────────────────────────────────────────────────────────────────────────────


def tiers(scene: Scene) -> None:
    """What is said of all nodes at once is what is said of each, whoever else is asked about."""
    plugin, cycle = scene.plugin, scene.world.cycle()
    before, nodes = asking.pre_filter(plugin, cycle, cycle.nodes)
    feasible = list(cycle.nodes.names) if nodes is None else nodes.names
    if nodes is not None and hasattr(plugin, "filter_all"):
        together = asking.by_columns(plugin, cycle, nodes)
        if hasattr(plugin, "filter"):
            alone = {node.name: asking.settled(ask(plugin, "filter", cycle, cycle.pod, node)) for node in nodes}
            _same("tiers", about(plugin, "filter_all"), alone, "filter", together)
        for some in _selections(scene, nodes):
            _same(
                "tiers",
                f"{about(plugin, 'filter_all')}, asked about {some.names} alone",
                {name: together[name] for name in some.names},
                "asked about all",
                asking.by_columns(plugin, cycle, some),
            )
        feasible = [name for name in nodes.names if together[name].ok]
    elif nodes is not None and hasattr(plugin, "filter"):
        feasible = [name for name, status in asking.filtered(plugin, cycle, nodes).items() if status.ok]
    if isinstance(before, Status) and (before.rejected or not feasible):
        return
    if hasattr(plugin, "score_all") and feasible:
        _score_tiers(scene, plugin, cycle, asking.named(cycle, feasible))


def _score_tiers(scene: Scene, plugin: Plugin, cycle: Cycle, nodes: Nodes) -> None:
    if not asking.ready_to_score(plugin, cycle, nodes).ok:
        return
    together = _by_name(nodes, asking.raw_by_columns(plugin, cycle, nodes))
    if hasattr(plugin, "score"):
        alone = _by_name(nodes, asking.raw_one_by_one(plugin, cycle, nodes))
        _same("tiers", about(plugin, "score_all"), alone, "score", together)
    for some in _selections(scene, nodes):
        expected = {name: together[name] for name in some.names}
        got = _by_name(some, asking.raw_by_columns(plugin, cycle, some))
        _same(
            "tiers", f"{about(plugin, 'score_all')}, asked about {some.names} alone", expected, "asked about all", got
        )


def _by_name(nodes: Nodes, scores: Any) -> dict[str, Any]:
    if isinstance(scores, Status):
        return dict.fromkeys(nodes.names, asking.settled(scores))
    return dict(zip(nodes.names, scores.tolist(), strict=True))


def _selections(scene: Scene, nodes: Nodes) -> list[Nodes]:
    """Each node alone, all of them backwards, and nobody."""
    rows = nodes.rows
    picked = scene.situation.pick % max(1, len(rows))
    return [Nodes(nodes.table, chosen) for chosen in (rows[picked : picked + 1], rows[::-1].copy(), rows[:0])]


def _same(rule: str, where: str, expected: Mapping[str, Any], by: str, got: Mapping[str, Any]) -> None:
    for node, wanted in expected.items():
        if got.get(node) != wanted:
            raise Fault(rule, f"{where}, about node {node}", f"{shown(wanted)}, as {by} says", shown(got.get(node)))


# ── the same question, the same answer ───────────────────────────────────────────────────────────────────────


def purity(scene: Scene) -> None:
    """The same question gets the same answer: again, from another instance, in another order, later on."""
    first, known = hear(scene.plugin, scene.world), state(scene.plugin)
    _repeats(first, hear(scene.plugin, scene.world), scene, "asked again")
    for name, now in state(scene.plugin).items():
        if now != known.get(name):
            where = f"{scene.subject.name}, which is asked the same again"
            raise Fault("purity", where, f"{name} as it was: {known.get(name)}; no hook keeps count", str(now))
    _repeats(first, hear(scene.plugin, scene.world, backwards=True), scene, "asked about the nodes in another order")
    other = scene.anew()
    _repeats(first, hear(scene.fresh(other), other), scene, "asked of another instance")
    for info in scene.others():
        hear(scene.plugin, scene.world, info)
    _repeats(first, hear(scene.plugin, scene.world), scene, "asked again after other pods")
    _signs_alike(scene)
    _keeps_up(scene)


def _keeps_up(scene: Scene) -> None:
    """An instance that has seen the cluster change says what a new one says."""
    moving = Scene(scene.subject, scene.situation)
    for step in scene.situation.steps:
        hear(moving.plugin, moving.world)
        if moving.world.take(step) is not None:
            fresh = hear(moving.fresh(), moving.world)
            _repeats(fresh, hear(moving.plugin, moving.world), scene, "an instance that saw the cluster change")


def _repeats(first: asking.Heard, again: asking.Heard, scene: Scene, how: str) -> None:
    found = first.difference(again)
    if found is not None:
        where, expected, got = found
        raise Fault("purity", f"{scene.subject.name}.{where}", f"{expected}, as before", f"{got}, {how}")


def _signs_alike(scene: Scene) -> None:
    plugin = scene.plugin
    for hook, args in (("sign_pod", ()), ("pre_enqueue", ())):
        if hasattr(plugin, hook):
            said = [call(one, hook, scene.world.info, *args) for one in (plugin, plugin, scene.fresh())]
            if any(one != said[0] for one in said):
                raise Fault("purity", about(plugin, hook), f"{shown(said[0])}, as before", shown(said[-1]))


# ── what is given is left alone ──────────────────────────────────────────────────────────────────────────────


def arguments(scene: Scene) -> None:
    """A hook changes nothing that it is given: not the pod, no node, no object, no column, no score."""
    scene = Scene(scene.subject, scene.situation)  # that nobody has touched before
    plugin, world = scene.plugin, scene.world
    cycle = world.cycle()
    before = asking.portrait(world)
    if hasattr(plugin, "pre_enqueue"):
        ask(plugin, "pre_enqueue", world.info)
        asking.unchanged(scene, before, about(plugin, "pre_enqueue"))
    answer, nodes = asking.pre_filter(plugin, cycle, cycle.nodes)
    asking.unchanged(scene, before, about(plugin, "pre_filter"))
    feasible = cycle.nodes.names
    if nodes is not None:
        given = Nodes(nodes.table, nodes.rows.copy())
        asking.columns(given)  # read once, so that they lie where the next plugin finds them
        feasible = [name for name, status in asking.filtered(plugin, cycle, given).items() if status.ok]
        feasible = feasible or ([] if _filters(plugin) else nodes.names)
        asking.unchanged(scene, before, about(plugin, "filter"))
        _columns_as_they_were(given, nodes, about(plugin, "filter_all"))
    if isinstance(answer, NodeSubset) or answer.ok or answer.code.name == "SKIP":
        _score_arguments(scene, plugin, cycle, asking.named(cycle, feasible), before)
        for hook in ("permit", "pre_bind", "bind", "post_bind") if feasible else ():
            if hasattr(plugin, hook):
                answered = ask(plugin, hook, cycle, world.info, feasible[0])
                asking.seen_through(plugin, hook, world.info, feasible[0], answered)
                asking.unchanged(scene, before, about(plugin, hook))


def _filters(plugin: Plugin) -> bool:
    return hasattr(plugin, "filter") or hasattr(plugin, "filter_all")


def _score_arguments(scene: Scene, plugin: Plugin, cycle: Cycle, nodes: Nodes, before: Any) -> None:
    if not len(nodes) or not asking.ready_to_score(plugin, cycle, nodes).ok:
        return
    asking.unchanged(scene, before, about(plugin, "pre_score"))
    raw: Any = np.zeros(len(nodes), dtype=np.int64)
    for hook, score in (("score_all", asking.raw_by_columns), ("score", asking.raw_one_by_one)):
        if hasattr(plugin, hook):
            given = Nodes(nodes.table, nodes.rows.copy())
            asking.columns(given)
            raw = score(plugin, cycle, given)
            asking.unchanged(scene, before, about(plugin, hook))
            _columns_as_they_were(given, nodes, about(plugin, hook))
    if not isinstance(raw, Status):
        asking.normalized(plugin, cycle, raw)
        asking.unchanged(scene, before, about(plugin, "normalize_score"))


def _columns_as_they_were(given: Nodes, usual: Nodes, where: str) -> None:
    if given.rows.tolist() != usual.rows.tolist():
        raise Fault("arguments", where, f"the rows {usual.rows.tolist()} left as they were", str(given.rows.tolist()))
    for got, expected in zip(asking.columns(given), asking.columns(Nodes(usual.table, usual.rows)), strict=True):
        if got != expected:
            raise Fault("arguments", where, f"a column of the nodes left as it was: {expected}", str(got))


def scores(scene: Scene) -> None:
    """A score is an integer, and ends between 0 and 100."""
    hear(scene.plugin, scene.world)  # looks at every one


# ── pods alike ───────────────────────────────────────────────────────────────────────────────────────────────


def signatures(scene: Scene) -> None:
    """Pods that sign_pod or alike cannot tell apart are answered alike."""
    plugin, world = scene.plugin, scene.world
    if not (hasattr(plugin, "sign_pod") or hasattr(plugin, "alike")):
        return
    for info in _variants(scene):
        one, other = (_signature(scene, pod) for pod in (world.info, info))
        if one is None or one != other:
            continue
        scene.saw("signed alike")
        found = hear(plugin, world).difference(hear(plugin, world, info))
        if found is not None:
            where, expected, got = found
            text = f"{expected}, as for {world.info.key}, which it signs alike: {one}"
            raise Fault("signatures", f"{scene.subject.name}.{where}, for {info.key}", text, got)


def _variants(scene: Scene) -> list[PodInfo]:
    """The pod with one part of its spec taken from another."""
    mine = scene.world.raw_pod
    own = mine.get("spec", {})
    found = []
    for other in scene.situation.others:
        theirs = other.get("spec", {})
        for part in {**own, **theirs}:
            spec = {name: value for name, value in own.items() if name != part or part == "containers"}
            spec |= {part: theirs[part]} if part in theirs else {}
            found.append(PodInfo(read({**other, "metadata": {**mine["metadata"], **_names(other)}, "spec": spec}, Pod)))
        found.append(PodInfo(read({**other, "spec": own}, Pod)))
    return found


def _names(raw: Mapping[str, Any]) -> dict[str, str]:
    return {name: raw["metadata"][name] for name in ("name", "uid")}


def _signature(scene: Scene, info: PodInfo) -> Any:
    """What the plugin reads of a pod, as it says itself; None where it does not say."""
    plugin, cycle = scene.plugin, scene.world.cycle(info)
    if hasattr(plugin, "alike"):
        signed = call(plugin, "alike", cycle, info)
    else:
        signed = call(plugin, "sign_pod", info)
    if isinstance(signed, Status):
        return None
    try:
        hash(signed)
    except TypeError:
        hook = "alike" if hasattr(plugin, "alike") else "sign_pod"
        raise Fault("answers", about(plugin, hook), "something hashable, or None", shown(signed)) from None
    return signed
