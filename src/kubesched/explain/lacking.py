"""Why not this node?  What every plugin that says no to it finds lacking, with the numbers behind the reason.

A reason is made to be counted over thousands of nodes: `Insufficient cpu`.  Whoever asks about one node wants to
know how much is short, which taint, which label.  The plugins do not keep that; it is looked up again here, from
the same columns, so that an explanation costs nothing until somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kubesched.api.quantity import format_units
from kubesched.api.selectors import NodeTerm, untolerated
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import CPU, EPHEMERAL_STORAGE, MEMORY, HostPort, PodInfo
from kubesched.cluster.table import NodeTable
from kubesched.cluster.types import Mask, Rows
from kubesched.framework.decision import Decision
from kubesched.framework.plain import plain
from kubesched.framework.status import Status

_FIT = "NodeResourcesFit"
_ANY_ADDRESS = "0.0.0.0"


class Objection(NamedTuple):
    """One plugin's no to one node."""

    plugin: str
    reasons: tuple[str, ...]
    detail: str = ""  # what is behind the reasons, where more is known
    brief: str = ""  # the same in two words: `short 200m cpu`

    def __str__(self) -> str:
        return f"{self.plugin}: " + (self.detail or ", ".join(self.reasons))


def objections(decision: Decision, pod: PodInfo, node: NodeInfo) -> list[Objection]:
    """Everybody who says no to a node, in the order they are asked; empty for one that fits."""
    answers = _answers(decision, node.row)
    if not answers and node.row not in decision.feasible:
        answers = [decision.rejected.status(node.row)]
    return [_objection(status, decision, pod, node) for status in answers]


def _answers(decision: Decision, row: int) -> list[Status]:
    """The filters' noes.  An exhaustive decision has asked them all, any other only the first that said no."""
    at = _position(decision, row)
    if at is None or decision.verdicts is None:
        return []
    answers = [verdict.status(at).by(plugin) for plugin, verdict in decision.verdicts.items()]
    return [status for status in answers if not status.ok]


def _position(decision: Decision, row: int) -> int | None:
    """Where among all nodes a row was when the filters were asked about every one."""
    found = np.flatnonzero(decision.asked == row)
    return int(found[0]) if len(found) else None


def _objection(status: Status, decision: Decision, pod: PodInfo, node: NodeInfo) -> Objection:
    plugin = status.plugin or "nobody in particular"
    look = _DETAILS.get(plugin)
    detail, brief = look(pod, node) if look is not None else ("", "")
    if not brief and plugin == _FIT:
        detail = f"{', '.join(status.reasons)}, once the pods are there that have been promised room"
    return Objection(plugin, status.reasons, plain(detail), plain(brief or ", ".join(status.reasons)))


# ── which nodes are closest ──────────────────────────────────────────────────────────────────────────────────


def closest(decision: Decision, pod: PodInfo, nodes: Nodes, most: int) -> list[tuple[NodeInfo, list[Objection]]]:
    """The nodes that lack least: fewest plugins say no, then resources alone, then the smallest share short."""
    if not decision.verdicts or len(decision.feasible):
        return []
    count = len(decision.asked)
    refusals: npt.NDArray[np.int64] = np.zeros(count, dtype=np.int64)
    for verdict in decision.verdicts.values():
        refusals += ~verdict.ok
    fit = decision.verdicts.get(_FIT)
    crowded: Mask = np.zeros(count, dtype=np.bool_) if fit is None else ~fit.ok
    share = _share_short(pod, nodes.table, decision.asked)
    order = np.lexsort((share, ~crowded, refusals))
    names = nodes.table.names
    fewest = [int(at) for at in order[: max(4 * most, 64)]]
    fewest.sort(key=lambda at: (refusals[at], not crowded[at], share[at], names[int(decision.asked[at])]))
    found = (NodeInfo(nodes.table, int(decision.asked[at])) for at in fewest[:most])
    return [(node, objections(decision, pod, node)) for node in found]


def _share_short(pod: PodInfo, table: NodeTable, rows: Rows) -> npt.NDArray[np.float64]:
    """How much of what the pod asks for is missing, as a share, added up over resources."""
    short: npt.NDArray[np.float64] = np.zeros(len(rows), dtype=np.float64)
    nodes = Nodes(table, rows)
    for resource, amount in pod.requests.items():
        if amount > 0:
            missing = np.maximum(amount - (nodes.capacity(resource) - nodes.taken(resource)), 0)
            short += np.minimum(missing.astype(np.float64) / float(amount), 1.0)
    short += nodes.pod_count + 1 > nodes.pods_allowed
    return short


# ── what is behind the reasons of the plugins everybody meets ────────────────────────────────────────────────


def amount(resource: str, value: int) -> str:
    """An amount as people write it: 1500m, 2Gi, 3; bytes that are no round number are rounded, 1.7Gi."""
    if resource == CPU:
        return f"{value}m"
    if resource not in (MEMORY, EPHEMERAL_STORAGE) and not resource.startswith("hugepages-"):
        return str(value)
    exact = format_units(value)
    if len(exact) <= 6:
        return exact
    size, unit = float(value), ""
    for larger in ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"):
        if size >= 1024:
            size, unit = size / 1024, larger
    return f"{size:.1f}{unit}"


def _fit(pod: PodInfo, node: NodeInfo) -> tuple[str, str]:
    details, briefs = [], []
    if node.pod_count + 1 > node.pods_allowed:
        details.append(f"{node.pod_count} of {node.pods_allowed} pods are there")
        briefs.append("short 1 pod")
    for resource, wanted in pod.requests.items():
        capacity = node.allocatable(resource)
        free = capacity - node.requested(resource)
        if 0 < wanted > free:
            told = [amount(resource, value) for value in (wanted, max(free, 0), capacity)]
            details.append(f"wants {resource} {told[0]}, free {told[1]} of {told[2]}")
            briefs.append(f"short {amount(resource, wanted - max(free, 0))} {resource}")
    return "; ".join(details), ", ".join(briefs)


def _taints(pod: PodInfo, node: NodeInfo) -> tuple[str, str]:
    taint = untolerated(node.taints, pod.pod.spec.tolerations)
    if taint is None:
        return "", ""
    written = f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
    return f"the taint {written} is not tolerated", f"taint {written}"


def _cordon(pod: PodInfo, node: NodeInfo) -> tuple[str, str]:
    return "it is cordoned", "cordoned"


def _affinity(pod: PodInfo, node: NodeInfo) -> tuple[str, str]:
    labels = node.labels
    lacking = [
        f"{key}={value}{_instead(key, labels)}"
        for key, value in (pod.pod.spec.node_selector or {}).items()
        if labels.get(key) != value
    ]
    if lacking:
        return f"nodeSelector asks for {', '.join(lacking)}", f"no {lacking[0]}"
    matcher = pod.node_matcher
    if matcher is None or matcher.matches(labels, node.name):
        return "", ""
    terms = [_unmet(term, node) for term in matcher.terms]
    return f"its node affinity asks for {' or '.join(terms) or 'nothing any node has'}", "node affinity"


def _unmet(term: NodeTerm, node: NodeInfo) -> str:
    """What a term asks for and a node does not have."""
    if term.errors:
        return f"something nobody can read ({term.error})"
    unmet = [f"{one}{_instead(one.key, node.labels)}" for one in term.requirements if not one.matches(node.labels)]
    unmet += [f"metadata.name {one.operator} {' '.join(one.values)}" for one in term.fields]
    return " and ".join(unmet) or "nothing, so no node"


def _instead(key: str, labels: Mapping[str, str]) -> str:
    return f" (it has {labels[key]!r})" if key in labels else " (it has none)"


def _ports(pod: PodInfo, node: NodeInfo) -> tuple[str, str]:
    taken = [port for port in pod.host_ports if any(_clash(port, other) for other in node.ports)]
    listed = ", ".join(f"{port.port}/{port.protocol}" for port in taken)
    holders = [info.key for info in node.pods if any(_clash(port, own) for own in info.host_ports for port in taken)]
    return f"host port {listed} is taken by {', '.join(holders[:3])}", f"host port {listed}"


def _clash(port: HostPort, other: HostPort) -> bool:
    anywhere = _ANY_ADDRESS in (port.ip, other.ip) or port.ip == other.ip
    return anywhere and port[1:] == other[1:]


_DETAILS: Mapping[str, Callable[[PodInfo, NodeInfo], tuple[str, str]]] = MappingProxyType(
    {
        _FIT: _fit,
        "TaintToleration": _taints,
        "NodeUnschedulable": _cordon,
        "NodeAffinity": _affinity,
        "NodePorts": _ports,
    }
)
"""By plugin, the numbers behind its reasons and the same in two words; a plugin not listed has only its reasons."""
