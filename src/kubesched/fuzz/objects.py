"""The objects of drawn clusters: nodes a little too small for the pods that want them, and pods with many wishes."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec import Struct

from kubesched.fuzz.extender import MANNERS
from kubesched.fuzz.plan import Json

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_APPS, _TEAMS, _ZONES = ("web", "db", "job"), ("red", "blue"), ("a", "b", "c")
_ALWAYS = ("delete pod", "delete pod", "recreate pod", "cordon", "new node", "label pod")
_SOMETIMES = (
    *("external bind", "finish pod", "static pod", "operator", "taint", "relabel", "resize"),
    *("lose node", "replace node", "replace node"),
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Theme(Struct, frozen=True, kw_only=True):
    """What a seed is about."""

    priorities: bool
    never: bool
    apart: bool
    near: bool
    spread: bool
    ports: bool
    taints: bool
    selectors: bool
    gates: bool
    budgets: bool
    volumes: bool
    poison: bool
    patience: bool
    moods: bool
    holds: bool  # pods that may not go before somebody agrees
    rival: bool
    extender: str
    wire: str
    big: bool  # pods so big that few fit
    changes: tuple[str, ...]

    @classmethod
    def drawn(cls, luck: Random) -> Theme:
        rare = ("extender", "changes", "rival", "moods", "wire")
        names = [name for name in cls.__struct_fields__ if name not in rare]
        on = {name: luck.random() < 0.35 for name in names}
        changes = [*_ALWAYS, *(kind for kind in _SOMETIMES if luck.random() < 0.5)]
        for flag, kind in (("gates", "gates off"), ("budgets", "budget"), ("poison", "poison"), ("holds", "agree")):
            changes += [kind] if on[flag] else []
        changes += ["volume", "delete claim"] if on["volumes"] else []
        extender = luck.choice(MANNERS) if luck.random() < 0.12 else ""
        rival, moods = luck.random() < 0.1, luck.random() < 0.1
        wire = luck.choice(("alone", "elected", "elected")) if luck.random() < 0.2 else ""
        if wire:
            rival, extender = False, ""
        return cls(**on, rival=rival, moods=moods, extender=extender, wire=wire, changes=tuple(changes))

    @classmethod
    def bare(cls) -> Theme:
        """Of nothing in particular."""
        texts = ("extender", "wire", "changes")
        off = dict.fromkeys((name for name in cls.__struct_fields__ if name not in texts), False)
        return cls(**off, extender="", wire="", changes=())


class Drawn:
    """Draws objects, and remembers which there may be by now."""

    def __init__(self, luck: Random, theme: Theme, small: bool = False) -> None:
        self._luck, self._theme, self._small = luck, theme, small
        self._nodes: list[str] = []
        self._pods: list[str] = []
        self._claims: list[str] = []
        self._volumes = 0

    def cluster(self, nodes: int) -> list[Json]:
        """What is there from the beginning."""
        found = [self.node() for _ in range(nodes)]
        if self._theme.volumes:
            for _ in range(self._luck.randint(1, 4)):
                found += self.volume()
        if self._theme.budgets:
            found.append(self.budget())
        for _ in range(self._luck.randint(0, 2 if self._small else 6)):
            found.append(self.static_pod(self.some_node()))
        return found

    # ── which there are ──────────────────────────────────────────────────────────────────────────────────────

    def some_node(self) -> str:
        return self._luck.choice(self._nodes)

    def some_pod(self) -> str:
        return self._luck.choice(self._pods) if self._pods else "default/none"

    def some_claim(self) -> str:
        return self._luck.choice(self._claims) if self._claims else "default/none"

    # ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────

    def node(self, name: str = "") -> Json:
        if not name:
            name = f"n{len(self._nodes)}"
            self._nodes.append(name)
        labels = {HOSTNAME: name, **self.node_labels()}
        spec: Json = {}
        if self._theme.taints and self._luck.random() < 0.3:
            spec["taints"] = self.taints()
        return {
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"allocatable": self.room()},
        }

    def room(self) -> Json:
        luck = self._luck
        cpu, memory = luck.choice(("1", "2", "2", "4", "1500m")), luck.choice(("1Gi", "4Gi", "8Gi"))
        return {"cpu": cpu, "memory": memory, "pods": luck.choice(("2", "5", "110", "110"))}

    def node_labels(self) -> Json:
        labels: Json = {"disk": self._luck.choice(("ssd", "hdd"))}
        if self._luck.random() < 0.9:
            labels[ZONE] = self._luck.choice(_ZONES)
        return labels

    def taints(self) -> list[Json]:
        luck = self._luck
        effect = luck.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        return [{"key": luck.choice(("gpu", "maintenance")), "value": luck.choice(("", "yes")), "effect": effect}]

    # ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────

    def labels(self) -> Json:
        return {"app": self._luck.choice(_APPS), "team": self._luck.choice(_TEAMS)}

    def pod(self, name: str = "") -> Json:
        if not name:
            name = f"p{len(self._pods)}"
            self._pods.append(f"default/{name}")
        labels = {**self.labels(), "origin": name}
        theme, luck = self._theme, self._luck
        spec: Json = {"containers": [self._container()]}
        if theme.priorities:
            spec["priority"] = luck.choice((0, 0, 10, 100, 1000))
            if theme.never and luck.random() < 0.3:
                spec["preemptionPolicy"] = "Never"
        if theme.moods and luck.random() < 0.3:
            labels["mood"] = luck.choice(("raises", "nonsense", "refuses", "reserve", "unreserve"))
        self._wishes(spec)
        meta: Json = {"name": name, "namespace": "default", "labels": labels}
        if theme.holds and luck.random() < 0.3:
            meta["finalizers"] = ["example.com/agree"]
        return {"kind": "Pod", "metadata": meta, "spec": spec}

    def static_pod(self, node: str) -> Json:
        """A pod that was never anybody's to place."""
        name = f"s{len(self._pods)}"
        self._pods.append(f"default/{name}")
        spec = {"containers": [self._container()], "nodeName": node, "priority": self._luck.choice((0, 2000))}
        meta = {"name": name, "namespace": "default", "labels": self.labels()}
        return {"kind": "Pod", "metadata": meta, "spec": spec}

    def _container(self) -> Json:
        luck, theme = self._luck, self._theme
        requests: Json = {}
        if luck.random() < 0.9:
            requests["cpu"] = luck.choice(("1", "2", "1500m") if theme.big else ("100m", "250m", "500m", "1"))
        if luck.random() < 0.4:
            requests["memory"] = luck.choice(("128Mi", "512Mi", "2Gi"))
        container: Json = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
        if theme.ports and luck.random() < 0.4:
            container["ports"] = [{"containerPort": 80, "hostPort": luck.choice((80, 443))}]
        return container

    def _wishes(self, spec: Json) -> None:
        """What a pod asks of its node and of its neighbours."""
        luck, theme = self._luck, self._theme
        affinity: Json = {}
        if theme.taints and luck.random() < 0.4:
            spec["tolerations"] = [{"key": luck.choice(("gpu", "maintenance")), "operator": "Exists"}]
        if theme.selectors and luck.random() < 0.3:
            spec["nodeSelector"] = {"disk": luck.choice(("ssd", "hdd"))}
        elif theme.selectors and luck.random() < 0.3:
            zones = luck.sample(_ZONES, 2)
            expression = {"key": ZONE, "operator": luck.choice(("In", "NotIn")), "values": zones}
            affinity["nodeAffinity"] = {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        if theme.apart and luck.random() < 0.4:
            affinity["podAntiAffinity"] = {_REQUIRED: [self._term()]}
        if theme.near and luck.random() < 0.3:
            affinity["podAffinity"] = {_REQUIRED: [self._term()]}
        if affinity:
            spec["affinity"] = affinity
        if theme.spread and luck.random() < 0.5:
            spec["topologySpreadConstraints"] = [self._constraint()]
        if theme.gates and luck.random() < 0.3:
            spec["schedulingGates"] = [{"name": "example.com/wait"}]
        if theme.volumes and self._claims and luck.random() < 0.4:
            claim = self.some_claim().partition("/")[2]
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        if luck.random() < 0.5:
            spec["terminationGracePeriodSeconds"] = luck.choice((0, 1, 30))

    def _selector(self) -> Json:
        key, values = self._luck.choice((("app", _APPS), ("team", _TEAMS)))
        return {"matchLabels": {key: self._luck.choice(values)}}

    def _term(self) -> Json:
        return {"topologyKey": self._luck.choice((HOSTNAME, ZONE)), "labelSelector": self._selector()}

    def _constraint(self) -> Json:
        return {
            "maxSkew": self._luck.choice((1, 1, 2)),
            "topologyKey": self._luck.choice((HOSTNAME, ZONE)),
            "whenUnsatisfiable": self._luck.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": self._selector(),
        }

    # ── everything else ──────────────────────────────────────────────────────────────────────────────────────

    def budget(self) -> Json:
        name = f"b{self._luck.randrange(1000)}"
        return {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": self._selector()},
            "status": {"disruptionsAllowed": self._luck.choice((0, 1))},
        }

    def volume(self) -> list[Json]:
        """A volume that is reachable from one zone or from everywhere, and its claim."""
        luck = self._luck
        name = f"v{self._volumes}"
        self._volumes += 1
        self._claims.append(f"default/{name}")
        modes = [luck.choice(("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))]
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}
        capacity = {"storage": "1Gi"}
        spec: Json = {"capacity": capacity, "accessModes": modes, "claimRef": reference, "storageClassName": ""}
        if luck.random() < 0.5:
            expression = {"key": ZONE, "operator": "In", "values": [luck.choice(_ZONES)]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        volume = {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec, "status": {"phase": "Bound"}}
        claim = {
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": "default",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "accessModes": modes,
                "volumeName": name,
                "storageClassName": "",
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Bound"},
        }
        return [volume, claim]

    def poison(self) -> Json:
        """A pod or a node that nobody can use, and that must not harm anybody."""
        luck = self._luck
        name = f"x{luck.randrange(10_000)}"
        worst: tuple[Any, ...] = ("1e999", "-5", "lots", "0x10", "", "9" * 40, True, ["1"], {"a": 1})
        container = {"name": "main", "resources": {"requests": {"cpu": luck.choice(worst)}}}
        bad_term = {"topologyKey": "", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Hm"}]}}
        spec: Json = luck.choice(
            (
                {"containers": [container]},
                {"containers": "none"},
                {"containers": [{"name": "m"}], "affinity": {"podAntiAffinity": {_REQUIRED: [bad_term]}}},
                {"containers": [{"name": "m"}], "tolerations": [{"operator": "Sometimes"}]},
                {"containers": [{"name": "m"}], "priority": "high"},
                {"containers": [{"name": "m"}], "nodeSelector": {"a": 7}},
                {"containers": [{"name": "m"}], "schedulingGates": ["gate"]},
            )
        )
        labels = {"app": "x\u202ey\u001b[31m", "mood": "\n"}
        return {"kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}
