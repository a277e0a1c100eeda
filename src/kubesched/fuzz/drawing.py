"""From a seed to a plan.  Every seed first draws which things it is about at all, and only then how much of each.

A run with a little of everything finds little: what is rare stays rare in it.  So each seed takes a random subset of
the kinds of objects, of changes and of faults, each at a rate of its own, and rare combinations come up by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kubesched.fuzz import subjects
from kubesched.fuzz.extender import configured
from kubesched.fuzz.objects import Drawn, Theme
from kubesched.fuzz.plan import (
    Alter,
    Crash,
    Custom,
    Echo,
    Gap,
    Happening,
    Hush,
    Json,
    Make,
    Outcome,
    Place,
    Plan,
    Remove,
    Say,
    Stop,
    Weather,
)
from kubesched.fuzz.tape import Tape

Mode = Literal["small", "random", "liveness"]
MODES: tuple[Mode, ...] = ("small", "random", "liveness")

FAULT_NAMES = ("requests", "news", "crashes", "people")
_OUTCOMES: tuple[Outcome, ...] = ("lost", "timeout-after-apply", "late", "refused", "failed", "slow", "twice")
_EFFECTS = ("Bind", "PatchPod", "Evict", "ReadPod", "Publish", "Call")
_WIRE = ("Watch", "List", "Lease")
_RATES = (0.02, 0.1, 0.3, 0.6)
_LAGS = (1, 1, 10, 200, 1_000, 5_000, 20_000)
_NEWS = ("Node", "Pod", "Pod", "PersistentVolumeClaim", "PersistentVolume", "PodDisruptionBudget")


def draw(seed: int, mode: Mode = "random", faults: Sequence[str] = FAULT_NAMES) -> Plan:
    """The plan of a seed."""
    if mode == "random" and not frozenset(FAULT_NAMES).difference(faults):
        plan = subjects.draw(seed)
        if plan is not None:
            return plan
    return _Artist(seed, mode, frozenset(faults)).plan()


class _Artist:
    def __init__(self, seed: int, mode: Mode, faults: frozenset[str]) -> None:
        self._seed, self._mode, self._faults = seed, mode, faults
        tape = Tape(seed)
        self._luck = luck = tape.stream(f"{mode}/plan")
        self._objects = tape.stream(f"{mode}/objects")
        self._harm = tape.stream(f"{mode}/harm")
        self._ends = tape.stream(f"{mode}/ends")
        self._theme = Theme.drawn(luck)
        self._until = luck.choice((5_000, 15_000, 30_000, 60_000)) if mode != "small" else 4_000
        self._drawn = Drawn(self._objects, self._theme, small=mode == "small")

    def plan(self) -> Plan:
        luck, small = self._luck, self._mode == "small"
        cluster = self._drawn.cluster(luck.randint(1, 2) if small else luck.randint(1, 7))
        happenings = self._workload(luck.randint(1, 3) if small else luck.randint(4, 45))
        if "people" in self._faults:
            happenings += self._changes(luck.randint(0, 3) if small else luck.randint(0, 25))
        happenings += self._harms()
        if self._mode == "liveness":
            happenings += self._damage()
        happenings.sort(key=lambda happening: happening.at)
        return Plan(
            seed=self._seed,
            scheduler=self._scheduler(),
            weather=self._weather(),
            custom=self._custom(),
            patient=120_000 if self._theme.wire else 60_000,
            cluster=tuple(cluster),
            happenings=tuple(happenings),
        )

    # ── the cluster and what happens to it ───────────────────────────────────────────────────────────────────

    def _when(self) -> int:
        return self._objects.randrange(self._until)

    def _workload(self, pods: int) -> list[Happening]:
        """Pods, one by one or many at once."""
        found: list[Happening] = []
        while len(found) < pods:
            at = 0 if self._objects.random() < 0.15 else self._when()
            herd = min(pods - len(found), self._objects.choice((1, 1, 1, 2, 3, 8)))
            found += [Make(at=at, obj=self._drawn.pod()) for _ in range(herd)]
        return found

    def _changes(self, count: int) -> list[Happening]:
        changes = (self._change() for _ in range(count))
        return [happening for group in changes for happening in group]

    def _change(self) -> list[Happening]:
        """Something a user, a node or a controller does."""
        luck, drawn = self._objects, self._drawn
        at = self._when()
        later = at + luck.choice((1, 50, 500, 3_000, 10_000))
        kind = luck.choice(self._theme.changes)
        node, pod = drawn.some_node(), drawn.some_pod()
        match kind:
            case "delete pod":
                return [Remove(at=at, kind="Pod", key=pod)]
            case "recreate pod":
                name = pod.partition("/")[2]
                return [Remove(at=at, kind="Pod", key=pod), Make(at=later, obj=drawn.pod(name))]
            case "external bind":
                return [Place(at=at, key=luck.choice(("", pod)), node=node)]
            case "label pod":
                return [Alter(at=at, kind="Pod", key=pod, body={"metadata": {"labels": drawn.labels()}})]
            case "gates off":
                return [Alter(at=at, kind="Pod", key=pod, body={"spec": {"schedulingGates": None}})]
            case "agree":
                return [Alter(at=at, kind="Pod", key=pod, body={"metadata": {"finalizers": None}})]
            case "finish pod":
                phase = luck.choice(("Succeeded", "Failed"))
                return [Alter(at=at, kind="Pod", key=pod, body={"status": {"phase": phase}})]
            case "static pod":
                return [Make(at=at, obj=drawn.static_pod(node))]
            case "operator":
                verb: Literal["activate", "allow", "reject"] = luck.choice(("activate", "allow", "reject"))
                return [Say(at=at, verb=verb, key=pod)]
            case "budget":
                return [Make(at=at, obj=drawn.budget())]
            case "volume":
                return [Make(at=at, obj=obj) for obj in drawn.volume()]
            case "delete claim":
                return [Remove(at=at, kind="PersistentVolumeClaim", key=drawn.some_claim())]
            case "poison":
                return [Make(at=at, obj=drawn.poison())]
        return self._node_change(kind, node, at, later)

    def _node_change(self, kind: str, node: str, at: int, later: int) -> list[Happening]:
        drawn = self._drawn
        match kind:
            case "cordon":
                return [
                    Alter(at=at, kind="Node", key=node, body={"spec": {"unschedulable": True}}),
                    Alter(at=later, kind="Node", key=node, body={"spec": {"unschedulable": None}}),
                ]
            case "taint":
                return [
                    Alter(at=at, kind="Node", key=node, body={"spec": {"taints": drawn.taints()}}),
                    Alter(at=later, kind="Node", key=node, body={"spec": {"taints": None}}),
                ]
            case "relabel":
                return [Alter(at=at, kind="Node", key=node, body={"metadata": {"labels": drawn.node_labels()}})]
            case "resize":
                return [Alter(at=at, kind="Node", key=node, body={"status": {"allocatable": drawn.room()}})]
            case "lose node":
                return [Remove(at=at, kind="Node", key=node)]
            case "replace node":
                return [Remove(at=at, kind="Node", key=node), Make(at=later, obj=drawn.node(node))]
        return [Make(at=at, obj=drawn.node())]

    # ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────

    def _harms(self) -> list[Happening]:
        luck, found = self._harm, []
        small = self._mode == "small"
        if "news" in self._faults and luck.random() < 0.6:
            for _ in range(luck.randint(1, 2 if small else 12)):
                found.append(self._news_harm())
        elected = self._theme.wire == "elected"
        if "news" in self._faults and elected and luck.random() < 0.5:
            lasting = luck.choice((3_000, 12_000, 40_000))
            found.append(Gap(at=luck.randrange(self._until), kind="Lease", lasting=lasting))
        if "crashes" in self._faults and (elected or luck.random() < 0.35):
            for _ in range(luck.randint(1, 1 if small else 4)):
                at, down = luck.randrange(self._until), luck.choice((1, 100, 2_000, 16_000))
                found.append(Crash(at=at, effects=luck.choice((0, 1, 2, 3, 5, 8, 13)), down=down))
        if "crashes" in self._faults and elected and self._ends.random() < 0.4:
            for _ in range(self._ends.randint(1, 2)):
                at, down = self._ends.randrange(self._until), self._ends.choice((1, 100, 2_000, 16_000))
                found.append(Stop(at=at, down=down))
        return found

    def _damage(self) -> list[Happening]:
        """What is broken when the faults stop stays broken; the rest must come to rest without it."""
        luck, end = self._harm, self._until - 1
        lost = [self._drawn.some_node() for _ in range(luck.randint(0, 2))]
        herd = [Make(at=end - luck.randrange(500), obj=self._drawn.pod()) for _ in range(luck.randint(0, 15))]
        found: list[Happening] = [Remove(at=end, kind="Node", key=name) for name in dict.fromkeys(lost)]
        if "crashes" in self._faults and luck.random() < 0.3:
            found.append(Crash(at=end, effects=luck.randrange(5), down=luck.choice((1, 5_000))))
        if self._theme.wire == "elected" and "news" in self._faults and luck.random() < 0.7:
            found.append(Gap(at=self._until // 4, kind="Lease", lasting=self._until))
        return found + herd

    def _news_harm(self) -> Happening:
        luck = self._harm
        at, kind = luck.randrange(self._until), luck.choice(_NEWS)
        lasting = luck.choice((5, 100, 1_000, 5_000, 30_000))
        match luck.randrange(3):
            case 0:
                return Hush(at=at, kind=kind, lasting=lasting)
            case 1:
                return Gap(at=at, kind=kind, lasting=lasting)
        return Echo(at=at, kind=kind, times=luck.choice((1, 3, 10)))

    def _weather(self) -> Weather:
        luck = self._harm
        lag = {"": 1}
        if "news" in self._faults and luck.random() < 0.5:
            lag |= {kind: luck.choice(_LAGS) for kind in dict.fromkeys(_NEWS) if luck.random() < 0.6}
        chances: dict[str, dict[Outcome, float]] = {}
        if "requests" in self._faults and luck.random() < 0.75:
            for effect in (*_EFFECTS, *(_WIRE if self._theme.wire else ())):
                if luck.random() < 0.6:
                    chosen = [outcome for outcome in _OUTCOMES if luck.random() < 0.4]
                    rate = luck.choice(_RATES)
                    chances[effect] = {outcome: rate / len(chosen) for outcome in chosen}
        return Weather(
            write=luck.choice((1, 2, 20, 300)),
            lag=lag,
            jitter=luck.choice((0, 0, 1, 20, 300)),
            cycle=luck.choice((0, 0, 1, 20)),
            burst=luck.choice((256, 256, 1, 3)),
            patience=luck.choice((1_000, 5_000, 30_000)),
            chances=chances,
            until=self._until,
        )

    # ── who lives there ──────────────────────────────────────────────────────────────────────────────────────

    def _custom(self) -> Custom:
        luck, theme = self._luck, self._theme
        kubelet = luck.choice((5, 200, 2_000) if theme.wire else (0, 5, 200, 2_000))
        return Custom(
            kubelet=kubelet,
            grace=bool(theme.wire) or (bool(kubelet) and luck.random() < 0.5),
            life=luck.choice((0, 0, 3_000, 20_000)) if kubelet else 0,
            recreate=luck.choice((0, 0, 1, 4)),
            recreate_after=luck.choice((1, 500, 3_000)),
            same_name=luck.random() < 0.5,
            chatter=luck.choice((0, 20, 100, 1_000)) if "people" in self._faults and self._mode != "small" else 0,
            rival=theme.rival,
            provisioner=theme.volumes,
            extender=theme.extender,
            wire=theme.wire,
        )

    def _scheduler(self) -> Json:
        theme = self._theme
        plugins = [{"name": "kubesched.fuzz.plugins:Probe"}]
        if theme.patience:
            plugins.insert(0, {"name": "kubesched.fuzz.plugins:Patience"})
        if theme.moods:
            plugins.insert(0, {"name": "kubesched.fuzz.plugins:Moody"})
        scheduler: Json = {"profiles": [{"plugins": {"multiPoint": {"enabled": plugins}}}]}
        if theme.extender:
            scheduler["extenders"] = [configured(theme.extender, self._luck)]
        return scheduler
