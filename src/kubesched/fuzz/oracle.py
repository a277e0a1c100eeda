"""A second opinion: may this pod go to this node?  Slow, plain, from raw JSON, and written without the plugins.

It knows what the drawn clusters contain and no more; about anything else it says that it does not know, rather than
guess.  The judge asks it of every placement, and of every pod that is still waiting when all is quiet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kubesched.fuzz.plan import Json

Amounts = dict[str, int]
HOSTNAME = "kubernetes.io/hostname"
_SUFFIX = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def amount(resource: str, written: Any) -> int:
    """`500m`, `2`, `256Mi` as an integer; milli for cpu.  The drawn clusters write no others."""
    text = str(written)
    if resource == "cpu":
        return int(text[:-1]) if text.endswith("m") else int(text) * 1000
    return int(text[:-2]) * _SUFFIX[text[-2:]] if text[-2:] in _SUFFIX else int(text)


def is_poison(key: str) -> bool:
    """Whether a pod was drawn to be one that nobody can use."""
    return key.rpartition("/")[2].startswith("x")


class PodFacts(NamedTuple):
    """What matters of a pod."""

    obj: Json
    uid: str
    key: str
    version: int
    namespace: str
    node: str
    labels: Mapping[str, str]
    priority: int
    requests: Amounts
    ports: tuple[int, ...]
    claims: tuple[str, ...]
    near: tuple[Json, ...]  # required affinity to pods
    apart: tuple[Json, ...]  # required anti-affinity
    terminating: bool
    finished: bool
    gated: bool
    readable: bool

    @property
    def spec(self) -> Json:
        spec: Json = self.obj.get("spec") or {}
        return spec

    @property
    def poisoned(self) -> bool:
        """Whether it was drawn to be one that nobody can use."""
        return not self.readable or is_poison(self.key)

    @property
    def promised(self) -> str:
        return str((self.obj.get("status") or {}).get("nominatedNodeName") or "")


class NodeFacts(NamedTuple):
    """What matters of a node."""

    obj: Json
    uid: str
    name: str
    version: int
    labels: Mapping[str, str]
    room: Amounts
    taints: tuple[Json, ...]


def pod_facts(obj: Json) -> PodFacts:
    """Read a pod; one that nobody can read asks for nothing."""
    meta, spec = obj["metadata"], obj.get("spec") or {}
    try:
        requests, readable = _requests(spec), True
    except (ValueError, KeyError, TypeError, AttributeError):
        requests, readable = {}, False
    given: Any = spec.get("containers")
    containers = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    affinity = spec.get("affinity") or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    volumes = spec.get("volumes") or ()
    return PodFacts(
        obj,
        meta["uid"],
        f"{meta['namespace']}/{meta['name']}",
        int(meta["resourceVersion"]),
        meta["namespace"],
        spec.get("nodeName") or "",
        meta.get("labels") or {},
        spec.get("priority") or 0,
        requests,
        tuple(p["hostPort"] for c in containers for p in c.get("ports") or () if p.get("hostPort")),
        tuple(v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v),
        tuple((affinity.get("podAffinity") or {}).get(required) or ()),
        tuple((affinity.get("podAntiAffinity") or {}).get(required) or ()),
        bool(meta.get("deletionTimestamp")),
        (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"),
        bool(spec.get("schedulingGates")),
        readable,
    )


def _requests(spec: Json) -> Amounts:
    """The sum of the containers, or the largest init container where that is more."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        for name, written in _asked(container):
            total[name] = total.get(name, 0) + amount(name, written)
    for container in spec.get("initContainers") or ():
        for name, written in _asked(container):
            total[name] = max(total.get(name, 0), amount(name, written))
    return total


def _asked(container: Json) -> Iterable[tuple[str, Any]]:
    requests: Json = (container.get("resources") or {}).get("requests") or {}
    return requests.items()


def node_facts(obj: Json) -> NodeFacts:
    meta, spec = obj["metadata"], obj.get("spec") or {}
    taints = tuple(spec.get("taints") or ())
    if spec.get("unschedulable"):
        taints = (*taints, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    try:
        room = {name: amount(name, q) for name, q in ((obj.get("status") or {}).get("allocatable") or {}).items()}
    except (ValueError, TypeError, AttributeError):
        room = {}
    version, labels = int(meta["resourceVersion"]), meta.get("labels") or {}
    return NodeFacts(obj, meta["uid"], meta["name"], version, labels, room, taints)


class View:
    """A cluster as somebody sees it: the nodes, the pods, and whatever else a pod may ask for."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeFacts] = {}
        self.pods: dict[str, PodFacts] = {}  # by key, unfinished ones
        self.others: dict[str, dict[str, Json]] = {}  # kind → key → object
        self.strange: dict[str, str] = {}  # key → node, of pods it cannot read
        self.heard = 0  # news that were told
        self.latest = ""  # uid of what the last of them was about

    def on(self, node: str, but: Iterable[str] = ()) -> list[PodFacts]:
        """The pods on a node, without these (by uid)."""
        left_out = frozenset(but)
        return [pod for pod in self.pods.values() if pod.node == node and pod.uid not in left_out]

    def used(self, node: str, but: Iterable[str] = ()) -> Amounts:
        total: Amounts = {"pods": 0}
        for pod in self.on(node, but):
            total["pods"] += 1
            for name, wanted in pod.requests.items():
                total[name] = total.get(name, 0) + wanted
        return total


# ── the predicates ───────────────────────────────────────────────────────────────────────────────────────────


def objections(view: View, pod: PodFacts, node: NodeFacts, but: Iterable[str] = ()) -> list[str]:
    """Why the pod may not go there, in words; empty if it may.  Pods in `but` are thought away, by uid."""
    away = frozenset((*but, pod.uid))
    return [
        *lacking(view, pod, node, away),
        *_taints(pod, node),
        *([] if _selected(pod, node) else ["its labels are not those asked for"]),
        *_ports(view, pod, node, away),
        *_apart(view, pod, node, away),
        *_near(view, pod, node, away),
        *_spread(view, pod, node, away),
        *_volumes(view, pod, node, away),
    ]


def lacking(view: View, pod: PodFacts, node: NodeFacts, away: frozenset[str]) -> list[str]:
    used = view.used(node.name, away)
    short = [f"too many pods: {used['pods']}"] if used["pods"] + 1 > node.room.get("pods", 0) else []
    for name, wanted in pod.requests.items():
        free = node.room.get(name, 0) - used.get(name, 0)
        if wanted > 0 and wanted > free:
            short.append(f"wants {wanted} {name}, free {free}")
    return short


def _taints(pod: PodFacts, node: NodeFacts) -> list[str]:
    tolerations = pod.spec.get("tolerations") or ()
    return [
        f"taint {taint['key']}"
        for taint in node.taints
        if taint["effect"] in ("NoSchedule", "NoExecute") and not any(_tolerates(t, taint) for t in tolerations)
    ]


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def _selected(pod: PodFacts, node: NodeFacts) -> bool:
    for key, value in (pod.spec.get("nodeSelector") or {}).items():
        if node.labels.get(key) != value:
            return False
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_term(node, term) for term in required["nodeSelectorTerms"])


def _term(node: NodeFacts, term: Json) -> bool:
    return all(_expression(node.labels, expression) for expression in term.get("matchExpressions") or ())


def _expression(labels: Mapping[str, str], expression: Json) -> bool:
    has, value = expression["key"] in labels, labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return has and value in expression["values"]
        case "NotIn":
            return not has or value not in expression["values"]
        case "Exists":
            return has
    return not has


def _ports(view: View, pod: PodFacts, node: NodeFacts, away: frozenset[str]) -> list[str]:
    taken = {port for other in view.on(node.name, away) for port in other.ports}
    return [f"port {port} is taken" for port in pod.ports if port in taken]


def matches(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """A label selector; none selects nothing."""
    if selector is None:
        return False
    wanted = (selector.get("matchLabels") or {}).items()
    expressions = selector.get("matchExpressions") or ()
    return all(labels.get(k) == v for k, v in wanted) and all(_expression(labels, one) for one in expressions)


def _meant(term: Json, of: PodFacts, other: PodFacts) -> bool:
    return of.namespace == other.namespace and matches(term.get("labelSelector"), other.labels)


def _apart(view: View, pod: PodFacts, node: NodeFacts, away: frozenset[str]) -> list[str]:
    """Anti-affinity holds both ways."""
    found = []
    for other in _placed(view, away):
        home = view.nodes[other.node]
        for term, meant in (
            *((term, _meant(term, pod, other)) for term in pod.apart),
            *((term, _meant(term, other, pod)) for term in other.apart),
        ):
            key = term["topologyKey"]
            if meant and key in node.labels and home.labels.get(key) == node.labels[key]:
                found.append(f"{other.key} must be apart from it by {key}")
    return found


def _near(view: View, pod: PodFacts, node: NodeFacts, away: frozenset[str]) -> list[str]:
    if not pod.near:
        return []
    company = [other for other in _placed(view, away) if all(_meant(term, pod, other) for term in pod.near)]
    anywhere = any(term["topologyKey"] in view.nodes[other.node].labels for other in company for term in pod.near)
    found = []
    for term in pod.near:
        key = term["topologyKey"]
        if key not in node.labels:
            found.append(f"the node has no {key}")
        elif anywhere and not any(view.nodes[o.node].labels.get(key) == node.labels[key] for o in company):
            found.append(f"nobody it wants is near by {key}")
        elif not anywhere and not all(_meant(term, pod, pod) for term in pod.near):
            found.append("nobody it wants is anywhere")
    return found


def _placed(view: View, away: frozenset[str] = frozenset()) -> list[PodFacts]:
    return [pod for pod in view.pods.values() if pod.node in view.nodes and pod.uid not in away]


def _spread(view: View, pod: PodFacts, node: NodeFacts, away: frozenset[str]) -> list[str]:
    constraints = [
        one for one in pod.spec.get("topologySpreadConstraints") or () if one["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    keys = [one["topologyKey"] for one in constraints]
    eligible = [n for n in view.nodes.values() if all(key in n.labels for key in keys) and _selected(pod, n)]
    found = []
    for one in constraints:
        key, selector = one["topologyKey"], one.get("labelSelector")
        if key not in node.labels:
            found.append(f"the node has no {key}")
            continue
        counts = {n.labels[key]: 0 for n in eligible}
        homes = {n.name: n.labels[key] for n in eligible}
        for other in view.pods.values():
            if other.node in homes and other.namespace == pod.namespace and matches(selector, other.labels):
                # Kept from kube-scheduler: one that is going is not counted, and counted off all the same as a victim.
                if other.uid in away:
                    counts[homes[other.node]] -= other.terminating and other.uid != pod.uid
                else:
                    counts[homes[other.node]] += not other.terminating
        itself = 1 if matches(selector, pod.labels) else 0
        skew = counts.get(node.labels[key], 0) + itself - min(counts.values(), default=0)
        if skew > one["maxSkew"]:
            found.append(f"skew {skew} over {key}")
    return found


def _volumes(view: View, pod: PodFacts, node: NodeFacts, away: frozenset[str]) -> list[str]:
    claims, volumes = view.others.get("PersistentVolumeClaim", {}), view.others.get("PersistentVolume", {})
    found = []
    for name in pod.claims:
        claim = claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            found.append(f"claim {name} does not exist")
            continue
        if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
            users = [other for other in _placed(view) if name in other.claims and other.namespace == pod.namespace]
            staying = [other for other in users if other.uid not in away]
            if staying and len(users) in (1, len(staying)):  # of several, whom somebody else put there, one may go
                found.append(f"claim {name} is taken")
        volume = volumes.get(claim["spec"].get("volumeName") or "")
        done = "pv.kubernetes.io/bind-completed" in (claim["metadata"].get("annotations") or {})
        if volume is None or not done:  # a claim that names a volume is not bound to it before somebody says so
            found.append(f"claim {name} has no volume")
            continue
        required = ((volume["spec"].get("nodeAffinity") or {}).get("required")) or None
        if required is not None and not any(_term(node, term) for term in required["nodeSelectorTerms"]):
            found.append(f"volume {volume['metadata']['name']} cannot be reached from there")
    return found
