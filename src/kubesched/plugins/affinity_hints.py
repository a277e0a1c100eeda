"""Which changes can help a pod that pod affinity turned down.

kube-scheduler looks at the pod and at what changed, and at nothing else: it takes a pod for unhelped whose
namespaces a selector names, whose anti-affinity has several terms of which one is met, or whom the anti-affinity of
somebody else keeps away; such a pod sleeps until the flush.  Where its answer is no, the cluster itself is asked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubesched.api.objects import KubeObject, Node, Pod
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import AffinityTerm, PodInfo
from kubesched.cluster.table import NodeTable
from kubesched.framework.tools import Tools

_NO_LABELS: Mapping[str, str] = {}


def pod_helps(pod: PodInfo, old: Pod | None, new: Pod | None, tools: Tools | None) -> bool:
    """Whether another pod's coming, change or going may make room for this one."""
    if not all(_has_place(version) for version in (old, new) if version is not None):
        return False
    was_near, is_near = (_meets(pod.required_affinity, version) for version in (old, new))
    was_away, is_away = (_meets(pod.required_anti_affinity, version) for version in (old, new))
    if (is_near and not was_near) or (was_away and not is_away):
        return True
    if old is not None and new is None:
        minded = PodInfo(old).required_anti_affinity
        if matches_all(minded, pod.namespace, pod.labels):
            return True
    return tools is not None and tools.attached and _pod_helps_here(pod, old, new, tools.objects)


def _pod_helps_here(pod: PodInfo, old: Pod | None, new: Pod | None, objects: Objects) -> bool:
    """The same with the namespaces as they are, and with each term of an anti-affinity for itself."""
    near, away = pod.required_affinity, pod.required_anti_affinity
    was_near, is_near = (_all_mean(near, version, objects) for version in (old, new))
    if is_near != was_near and (is_near or _could_begin(pod, objects)):
        return True
    if any(_means(term, old, objects) and not _means(term, new, objects) for term in away):
        return True
    minded = PodInfo(old).required_anti_affinity if old is not None and new is None else ()
    return any(_means(term, pod.pod, objects) for term in minded)


def node_helps(pod: PodInfo, old: Node | None, new: Node, tools: Tools | None) -> bool:
    """Whether a node's coming, or a change of its labels, may help."""
    near = [term.topology_key for term in pod.required_affinity]
    away = [term.topology_key for term in pod.required_anti_affinity]
    if old is None:
        helps = bool(away) or any(key in new.labels for key in near)
    else:
        helps = any(key in new.labels and old.labels.get(key) != new.labels[key] for key in near) or any(
            key in old.labels and old.labels[key] != new.labels.get(key) for key in away
        )
    if helps or tools is None or not tools.attached:
        return helps
    keys = _kept_away_by(pod, tools.nodes.table, tools.objects)
    if old is None:
        return bool(keys)
    if _could_begin(pod, tools.objects):
        keys |= dict.fromkeys(near)
    return any(old.labels.get(key) != new.labels.get(key) for key in keys)


def namespace_helps(pod: PodInfo, namespace: KubeObject) -> bool:
    """Whether new labels of a namespace may change whom terms mean: its own, or others' that may mean it."""
    terms = (*pod.required_affinity, *pod.required_anti_affinity)
    selecting = any(not (term.namespace_selector.empty or term.namespace_selector.nothing) for term in terms)
    return selecting or namespace.name == pod.namespace


def matches_all(terms: Sequence[AffinityTerm], namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether every one of a pod's own terms means a pod with these labels; no terms mean nobody."""
    return bool(terms) and all(term.matches(namespace, labels, None) for term in terms)


def _meets(terms: Sequence[AffinityTerm], version: Pod | None) -> bool:
    return version is not None and matches_all(terms, version.namespace, version.labels)


def _has_place(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _means(term: AffinityTerm, other: Pod | None, objects: Objects) -> bool:
    """Whether a term may mean a pod, by the labels of its namespace or, as kube-scheduler's filter has it, by none."""
    if other is None:
        return False
    spaces = (None, objects.namespace_labels(other.namespace))
    return any(term.matches(other.namespace, other.labels, labels) for labels in spaces)


def _all_mean(terms: Sequence[AffinityTerm], other: Pod | None, objects: Objects) -> bool:
    return bool(terms) and all(_means(term, other, objects) for term in terms)


def _could_begin(pod: PodInfo, objects: Objects) -> bool:
    """Whether the pod matches its own affinity: then it may go anywhere once nobody else does."""
    return _all_mean(pod.required_affinity, pod.pod, objects)


def _kept_away_by(pod: PodInfo, table: NodeTable, objects: Objects) -> dict[str, None]:
    """The topology keys of the anti-affinity of those already there that mean this pod."""
    held: Iterable[PodInfo] = (holders.example for holders in table.neighbours.holders())
    return {
        term.topology_key: None
        for other in held
        for term in other.required_anti_affinity
        if _means(term, pod.pod, objects)
    }
