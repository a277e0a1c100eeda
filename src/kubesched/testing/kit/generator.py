"""Draws situations: clusters of a few nodes, small enough that things happen to meet.

A situation is about a few themes only — taints, say, and ports — for a cluster in which everything varies is one
in which nothing fits and nothing is learned.  Which themes a plugin cares for shows in its answers; the kit draws
those more often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from kubesched.testing.builders import HOSTNAME
from kubesched.testing.kit import storage, themes
from kubesched.testing.kit.dice import Dice
from kubesched.testing.kit.situation import Json, Situation, Step, key_of, merged
from kubesched.testing.kit.themes import Words

NODES = ("n1", "n2", "n3", "n4")
STEPS_AT_MOST = 5


def _nothing(dice: Dice, words: Words) -> Json:
    return {}


class Theme(NamedTuple):
    """What may vary in a situation: of a node, of a pod, in the rest of the cluster, and later on."""

    node: Callable[[Dice, Words], Json] = _nothing
    pod: Callable[[Dice, Words], Json] = _nothing
    more: Callable[[Dice, Words, Sequence[str]], list[Json]] = lambda dice, words, names: []
    change: Callable[[Dice, Words, Json], Json] = lambda dice, words, raw: {}
    """How an object may change, as a merge patch; nothing where this theme does not touch its kind."""


THEMES: Mapping[str, Theme] = {
    "labels": Theme(themes.labelled_node, themes.choosy_pod, change=themes.relabelled),
    "words": Theme(themes.worded, themes.worded, change=themes.reworded),
    "taints": Theme(themes.tainted_node, themes.tolerant_pod, change=themes.retainted),
    "resources": Theme(themes.sized_node, themes.sized_pod, themes.device_classes, themes.resized),
    "ports": Theme(pod=themes.listening_pod),
    "images": Theme(themes.stocked_node, themes.imaged_pod, change=themes.restocked),
    "spread": Theme(themes.zoned_node, themes.spreading_pod, themes.services, themes.moved),
    "affinity": Theme(themes.zoned_node, themes.sociable_pod, themes.namespaces, themes.moved),
    "storage": Theme(storage.node, storage.pod, storage.more, storage.change),
    "gates": Theme(pod=themes.gated_pod, change=themes.ungated),
    "features": Theme(themes.able_node, themes.demanding_pod, change=themes.enabled),
    "priority": Theme(themes.small_node, themes.ranked_pod, themes.budgets),
    "names": Theme(pod=themes.named_pod),
    "claims": Theme(pod=themes.claiming_pod, more=themes.device_classes),
}


class Plan(Struct, frozen=True):
    """What situations are drawn from.

    Attributes:
        themes: by name, each with how often it is wanted.
        words: labels to draw from.
        objects: objects that may be there besides; several of one kind and name are versions of it.
    """

    themes: Mapping[str, int]
    words: Words = Words()
    objects: tuple[Json, ...] = ()


def situation(dice: Dice, plan: Plan) -> tuple[Situation, list[str]]:
    """A situation, and the themes it is about."""
    about = _themes(dice, plan)
    chosen = [THEMES[name] for name in about]
    names = sorted(dice.some(NODES, 3, least=1))
    nodes = [node(dice, plan.words, name, chosen) for name in names]
    placed = [pod(dice, plan.words, f"there-{i}", chosen, on=dice.pick(names)) for i in range(dice.count(4))]
    more = [raw for theme in chosen for raw in theme.more(dice, plan.words, names)]
    more += [dice.pick(versions) for versions in _versions(plan.objects) if dice.chance(2)]
    objects = [*nodes, *more, *storage.shared_once(placed, more)]
    wanted = pod(dice, plan.words, f"p{dice.count(9)}", chosen)
    others = [pod(dice, plan.words, f"q{i}", chosen) for i in range(2)]
    steps = _steps(dice, plan, chosen, objects, wanted)
    unique = {(raw["kind"], key_of(raw)): raw for raw in objects}
    return Situation(tuple(unique.values()), wanted, tuple(others), tuple(steps), dice.count(1000)), about


def _themes(dice: Dice, plan: Plan) -> list[str]:
    tickets = [name for name, weight in plan.themes.items() for _ in range(weight)]
    return list(dict.fromkeys(dice.pick(tickets) for _ in range(dice.count(3, least=1))))


def _versions(objects: Sequence[Json]) -> list[list[Json]]:
    found: dict[tuple[str, str], list[Json]] = {}
    for raw in objects:
        found.setdefault((raw["kind"], key_of(raw)), []).append(raw)
    return list(found.values())


def node(dice: Dice, words: Words, name: str, about: Sequence[Theme]) -> Json:
    """A node with room for everyone, but for what the themes say."""
    raw: Json = {
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": {HOSTNAME: name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    }
    return _with(raw, [theme.node(dice, words) for theme in about])


def pod(dice: Dice, words: Words, name: str, about: Sequence[Theme], on: str = "") -> Json:
    """A pod of one container that asks for nothing, but for what the themes say."""
    raw: Json = {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "labels": {}},
        "spec": {"containers": [{"name": "c"}]},
    }
    raw = _with(raw, [theme.pod(dice, words) for theme in about])
    if on:
        raw["spec"]["nodeName"] = on
        raw["spec"].pop("schedulingGates", None)  # nobody with a gate has ever been placed
    else:
        raw.get("status", {}).pop("startTime", None)
    return raw


def _with(raw: Json, parts: Sequence[Json]) -> Json:
    """Everything the themes say, mixed: fields side by side, the parts of one container in one."""
    for part in parts:
        raw = _mixed(raw, part)
    return raw


def _mixed(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{name: _mixed(one[name], value) if name in one else value for name, value in other.items()}}
    if isinstance(one, list) and isinstance(other, list) and one and isinstance(one[0], dict):
        if one[0].get("name") and other and one[0]["name"] == other[0].get("name"):
            return [_mixed(one[0], other[0]), *one[1:], *other[1:]]
        return one + other
    return other


# ── what happens next ────────────────────────────────────────────────────────────────────────────────────────


def _steps(dice: Dice, plan: Plan, about: Sequence[Theme], objects: Sequence[Json], wanted: Json) -> list[Step]:
    there = {(raw["kind"], key_of(raw)): raw for raw in objects}
    steps: list[Step] = []
    for number in range(dice.count(STEPS_AT_MOST, least=1)):
        steps += _step(dice, plan, about, there, wanted, number)
    return steps


def _step(
    dice: Dice, plan: Plan, about: Sequence[Theme], there: dict[tuple[str, str], Json], wanted: Json, number: int
) -> list[Step]:
    """One thing that happens, in as many messages as the API server would send."""
    what = dice.pick(("change", "change", "change", "delete", "delete", "add pod", "add node", "add", "own", "node"))
    if what == "add node":
        return _added(there, node(dice, plan.words, dice.pick((*NODES, f"new-{number}")), about))
    if what == "add pod":
        names = [key for kind, key in there if kind == "Node"]
        return _added(there, pod(dice, plan.words, f"new-{number}", about, on=dice.pick(names))) if names else []
    if what == "add":
        names = [key for kind, key in there if kind == "Node"]
        fresh = [raw for theme in about for raw in theme.more(dice, plan.words, names)] + list(plan.objects)
        return _added(there, dice.pick(fresh)) if fresh else []
    if what == "own":
        own = ("Pod", key_of(wanted))
        return _changed(dice, plan, about, there, there.get(own, wanted))
    targets = [raw for raw in there.values() if raw["kind"] == "Node" or what != "node"]
    targets = [raw for raw in targets if key_of(raw) != key_of(wanted)]
    if not targets:
        return []
    target = dice.pick(targets)
    return _deleted(there, target) if what == "delete" else _changed(dice, plan, about, there, target)


def _added(there: dict[tuple[str, str], Json], raw: Json) -> list[Step]:
    at = (raw["kind"], key_of(raw))
    if at in there:
        return []
    there[at] = raw
    return [Step("add", *at, raw)]


def _deleted(there: dict[tuple[str, str], Json], raw: Json) -> list[Step]:
    """An object goes; the pods of a node go before it."""
    gone = [one for one in there.values() if raw["kind"] == "Node" and _on(one) == key_of(raw)]
    steps = [Step("delete", one["kind"], key_of(one)) for one in (*gone, raw)]
    for step in steps:
        del there[step.kind, step.key]
    return steps


def _on(raw: Json) -> str:
    return str(raw.get("spec", {}).get("nodeName", "")) if raw["kind"] == "Pod" else ""


def _changed(
    dice: Dice, plan: Plan, about: Sequence[Theme], there: dict[tuple[str, str], Json], raw: Json
) -> list[Step]:
    at = (raw["kind"], key_of(raw))
    patches = [patch for theme in about if (patch := theme.change(dice, plan.words, raw))]
    patches += [one for one in plan.objects if (one["kind"], key_of(one)) == at]
    if not patches:
        return []
    patch = dice.pick(patches)
    there[at] = merged(raw, patch)
    return [Step("change", *at, patch)]
