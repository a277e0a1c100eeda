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
from kubesched.testing.kit import storage
from kubesched.testing.kit import themes as vary
from kubesched.testing.kit.dice import Dice
from kubesched.testing.kit.situation import Json, Situation, Step, key_of, merged
from kubesched.testing.kit.themes import Words

NODES = ("n1", "n2", "n3", "n4")
STEPS_AT_MOST = 4
TWISTS = 6
HAPPENINGS = (
    "change",
    "change",
    "change",
    "node",
    "node",
    "delete",
    "delete",
    "own",
    "own",
    "add pod",
    "add node",
    "add",
)


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
    "labels": Theme(vary.labelled_node, vary.choosy_pod, change=vary.relabelled),
    "words": Theme(vary.worded, vary.worded, change=vary.reworded),
    "taints": Theme(vary.tainted_node, vary.tolerant_pod, change=vary.retainted),
    "resources": Theme(vary.sized_node, vary.sized_pod, vary.device_classes, vary.resized),
    "ports": Theme(pod=vary.listening_pod),
    "images": Theme(vary.stocked_node, vary.imaged_pod, change=vary.restocked),
    "spread": Theme(vary.zoned_node, vary.spreading_pod, vary.services, vary.moved),
    "affinity": Theme(vary.zoned_node, vary.sociable_pod, vary.namespaces, vary.moved),
    "storage": Theme(storage.node, storage.pod, storage.more, storage.change),
    "gates": Theme(pod=vary.gated_pod, change=vary.ungated),
    "features": Theme(vary.able_node, vary.demanding_pod, change=vary.enabled),
    "priority": Theme(vary.small_node, vary.ranked_pod, vary.budgets),
    "names": Theme(pod=vary.named_pod),
    "conditions": Theme(vary.unwell_node, change=vary.recovered),
    "owners": Theme(vary.aged_node, vary.owned_pod),
    "going": Theme(pod=vary.going_pod, change=vary.gone),
    "claims": Theme(pod=vary.claiming_pod, more=vary.device_classes),
}


def themes(about: Sequence[str], words: Words) -> list[str]:
    """The themes chosen, or all there is something to say about.  Raises ValueError for one that does not exist."""
    unknown = [name for name in about if name not in THEMES]
    if unknown:
        raise ValueError(f"there is no theme {unknown[0]!r}; there are {', '.join(THEMES)}")
    return list(about) or [name for name in THEMES if name != "words" or words.labels]


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
    there = {(raw["kind"], key_of(raw)): raw for raw in objects}
    twists = [_step(dice, plan, chosen, dict(there), wanted, number) for number in range(TWISTS)]
    drawn = Situation(
        tuple(there.values()),
        wanted,
        tuple(others),
        tuple(_steps(dice, plan, chosen, dict(there), wanted)),
        tuple(tuple(twist) for twist in twists if twist),
        dice.count(1000),
    )
    return drawn, about


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
        raw["metadata"].pop("deletionTimestamp", None)
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


There = dict[tuple[str, str], Json]


def _steps(dice: Dice, plan: Plan, about: Sequence[Theme], there: There, wanted: Json) -> list[Step]:
    steps: list[Step] = []
    for number in range(dice.count(STEPS_AT_MOST, least=1)):
        steps += _step(dice, plan, about, there, wanted, number)
    return steps


def _step(dice: Dice, plan: Plan, about: Sequence[Theme], there: There, wanted: Json, number: int) -> list[Step]:
    """One thing that happens, in as many messages as the API server would send; nothing, if a few draws find none."""
    for _ in range(3):
        steps = _happening(dice, plan, about, there, wanted, number)
        if steps:
            return steps
    return []


def _happening(dice: Dice, plan: Plan, about: Sequence[Theme], there: There, wanted: Json, number: int) -> list[Step]:
    names = [key for kind, key in there if kind == "Node"]
    what = dice.pick((*HAPPENINGS, *(("object",) * len(HAPPENINGS) if plan.objects else ())))
    if what == "object":
        raw = dice.pick(plan.objects)
        return _changed_to(there, raw) if (raw["kind"], key_of(raw)) in there else _added(there, raw)
    if what == "add node":
        return _added(there, node(dice, plan.words, dice.pick((*NODES, f"new-{number}")), about))
    if what == "add pod":
        return _added(there, pod(dice, plan.words, f"new-{number}", about, on=dice.pick(names))) if names else []
    if what == "add":
        fresh = [raw for theme in about for raw in theme.more(dice, plan.words, names)]
        return _added(there, dice.pick(fresh)) if fresh else []
    if what == "own":
        return _changed(dice, plan, about, there, there.get(("Pod", key_of(wanted)), wanted))
    targets = [raw for raw in there.values() if raw["kind"] == "Node" or what != "node"]
    targets = [raw for raw in targets if key_of(raw) != key_of(wanted)]
    if not targets:
        return []
    target = dice.pick(targets)
    if what != "delete":
        return _changed(dice, plan, about, there, target)
    return [] if storage.in_use(target, there.values()) else _deleted(there, target)


def _added(there: There, raw: Json) -> list[Step]:
    at = (raw["kind"], key_of(raw))
    if at in there:
        return []
    there[at] = raw
    return [Step("add", *at, raw)]


def _deleted(there: There, raw: Json) -> list[Step]:
    """An object goes; the pods of a node go before it."""
    gone = [one for one in there.values() if raw["kind"] == "Node" and _on(one) == key_of(raw)]
    steps = [Step("delete", one["kind"], key_of(one)) for one in (*gone, raw)]
    for step in steps:
        del there[step.kind, step.key]
    return steps


def _on(raw: Json) -> str:
    return str(raw.get("spec", {}).get("nodeName", "")) if raw["kind"] == "Pod" else ""


def _changed(dice: Dice, plan: Plan, about: Sequence[Theme], there: There, raw: Json) -> list[Step]:
    at = (raw["kind"], key_of(raw))
    patches = [patch for theme in about if (patch := theme.change(dice, plan.words, raw))]
    if not patches:
        return []
    patch = dice.pick(patches)
    there[at] = merged(raw, patch)
    return [Step("change", *at, patch)]


def _changed_to(there: There, raw: Json) -> list[Step]:
    """An object becomes another version of itself; where it is that already, it goes."""
    at = (raw["kind"], key_of(raw))
    if there[at] == raw:
        return _deleted(there, raw)
    patch = {**dict.fromkeys(name for name in there[at] if name not in raw), **_instead(there[at], raw)}
    there[at] = raw
    return [Step("change", *at, patch)]


def _instead(before: Json, after: Json) -> Json:
    """A merge patch that makes one document of another: fields no longer there are nulls."""
    patch: Json = {}
    for name, value in after.items():
        was = before.get(name)
        if isinstance(value, dict) and isinstance(was, dict):
            patch[name] = {**dict.fromkeys(field for field in was if field not in value), **_instead(was, value)}
        else:
            patch[name] = value
    return patch
