"""What is said to an extender, and what may be made of its answer.

The bodies carry the names of Go's fields, `NodeNames` and not `nodeNames`, as extenders of kube-scheduler expect
them; answers are read in any case of letters, as Go reads them.  An answer is somebody else's: whatever has not the
agreed shape, names a node that was not asked about, or gives a score out of range is Refused, with a sentence.

Pods and nodes are sent as far as kubesched reads them; whoever carries the request out may send the whole objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kubesched.api.objects import KubeObject
from kubesched.cluster.columns import Nodes
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.errors import KubeschedError
from kubesched.framework.extender import Extender, Proposal
from kubesched.framework.steps import Answer, HttpPost

SCORE_MAX = 10  # of an extender; ten times its weight makes it one of 100


class Refused(KubeschedError):
    """An extender failed, or its answer cannot be used."""


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────


def about_nodes(extender: Extender, verb: str, pod: PodInfo, nodes: Nodes) -> HttpPost:
    """The question of filter and prioritize: this pod, and these nodes by name or whole."""
    body: dict[str, Any] = {"Pod": whole(pod.pod), "Nodes": None, "NodeNames": None}
    if extender.node_cache_capable:
        body["NodeNames"] = list(nodes.names)
    else:
        found = (nodes.table.nodes[row] for row in nodes.rows.tolist())
        body["Nodes"] = {"metadata": {}, "items": [whole(node) for node in found if node is not None]}
    return HttpPost(extender.number, verb, body)


def about_binding(extender: Extender, pod: PodInfo, node: str) -> HttpPost:
    body = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
    return HttpPost(extender.number, extender.bind_verb, body)


def about_victims(extender: Extender, pod: PodInfo, proposals: Mapping[str, Proposal]) -> HttpPost:
    victims = {
        node: {
            "Pods": [
                {"UID": victim.uid} if extender.node_cache_capable else whole(victim.pod) for victim in one.victims
            ],
            "NumPDBViolations": one.violations,
        }
        for node, one in proposals.items()
    }
    name = "NodeNameToMetaVictims" if extender.node_cache_capable else "NodeNameToVictims"
    return HttpPost(extender.number, extender.preempt_verb, {"Pod": whole(pod.pod), name: victims})


def whole(obj: KubeObject) -> dict[str, Any]:
    """An object as plain data, without its kind: both sides know what it is."""
    data: dict[str, Any] = msgspec.to_builtins(obj)
    data.pop("kind", None)
    return data


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────


class Filtered(msgspec.Struct, frozen=True):
    """What a filter left, and what it said of the others."""

    names: frozenset[str]
    failed: dict[str, str]
    unresolvable: dict[str, str]


def filtered(extender: Extender, answer: Answer, asked: Collection[str]) -> Filtered:
    """Raises Refused."""
    data = _mapping(extender, extender.filter_verb, answer)
    _refuse_error(data)
    names, nodes = field(data, "NodeNames"), field(data, "Nodes")
    if extender.node_cache_capable and names is not None:
        left = _texts(extender, extender.filter_verb, names)
    elif nodes is not None:
        left = [_node_name(extender, node) for node in _items(extender, nodes)]
    else:
        left = []
    for name in left:
        if name not in asked:
            raise Refused(
                f'extender "{extender.url_prefix}" claims a filtered node "{name}" '
                "which is not found in the input node list"
            )
    return Filtered(
        frozenset(left),
        _messages(extender, field(data, "FailedNodes")),
        _messages(extender, field(data, "FailedAndUnresolvableNodes")),
    )


def scores(extender: Extender, answer: Answer) -> dict[str, int]:
    """Node → score, from 0 to 10.  Raises Refused."""
    verb, found = extender.prioritize_verb, {}
    for one in _sequence(extender, verb, _data(extender, verb, answer)):
        host, score = (field(one, "Host"), field(one, "Score")) if isinstance(one, Mapping) else (None, None)
        score = 0 if score is None else score
        if not isinstance(host, str) or not isinstance(score, int) or isinstance(score, bool):
            raise _misshapen(extender, verb, "a list of Host and Score")
        if not 0 <= score <= SCORE_MAX:
            raise Refused(f'extender "{extender.url_prefix}" gives node "{host}" {score}; a score is 0 to {SCORE_MAX}')
        found[host] = score
    return found


def bound(extender: Extender, answer: Answer) -> None:
    """Raises Refused."""
    _refuse_error(_mapping(extender, extender.bind_verb, answer))


def agreed(extender: Extender, answer: Answer, pod: PodInfo, pods_on: Mapping[str, Sequence[PodInfo]]) -> Any:
    """Node → Proposal, of the nodes that were proposed.  Raises Refused.

    Args:
        pods_on: the pods on each node that was proposed.
    """
    verb, url = extender.preempt_verb, extender.url_prefix
    proposals: dict[str, Proposal] = {}
    found = field(_mapping(extender, verb, answer), "NodeNameToMetaVictims")
    for node, victims in _pairs(extender, verb, found):
        if node not in pods_on:
            raise Refused(f'extender: {url} claims to preempt on node "{node}", which was not proposed to it')
        by_uid = {other.uid: other for other in pods_on[node]}
        uids = [_uid(extender, one) for one in _sequence(extender, verb, field(victims or {}, "Pods") or [])]
        for uid in uids:
            victim = by_uid.get(uid)
            if victim is None:
                raise Refused(
                    f"extender: {url} claims to preempt pod (UID: {uid}) on node: {node}, "
                    "but the pod is not found on that node"
                )
            if victim.priority >= pod.priority:
                raise Refused(f"extender: {url} claims to preempt pod {victim.key}, which has no lower priority")
        violations = field(victims or {}, "NumPDBViolations")
        if violations is not None and (not isinstance(violations, int) or isinstance(violations, bool)):
            raise _misshapen(extender, verb, "NumPDBViolations as a number")
        proposals[node] = Proposal(node, tuple(by_uid[uid] for uid in uids), violations or 0)
    return proposals


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────


def field(data: Any, name: str) -> Any:
    """A field by its name, in any case of letters; None where it is not there."""
    if name in data:
        return data[name]
    low = name.lower()
    return next((value for key, value in data.items() if isinstance(key, str) and key.lower() == low), None)


def url_of(extender: Extender, verb: str) -> str:
    """Where a question goes."""
    return f"{extender.url_prefix.rstrip('/')}/{verb}"


def _data(extender: Extender, verb: str, answer: Answer) -> Any:
    failure = answer.failure
    if failure is None:
        return answer.data
    where = f"failed {verb} with extender at URL {url_of(extender, verb)}"
    raise Refused(failure.message or f"{where}, {f'code {failure.code}' if failure.code else failure.reason}")


def _mapping(extender: Extender, verb: str, answer: Answer) -> Mapping[str, Any]:
    data = _data(extender, verb, answer)
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise _misshapen(extender, verb, "an object")
    return data


def _refuse_error(data: Mapping[str, Any]) -> None:
    said = field(data, "Error")
    if said:
        raise Refused(str(said))


def _sequence(extender: Extender, verb: str, value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise _misshapen(extender, verb, "a list")
    return value


def _texts(extender: Extender, verb: str, value: Any) -> list[str]:
    texts = list(_sequence(extender, verb, value))
    if not all(isinstance(text, str) for text in texts):
        raise _misshapen(extender, verb, "a list of names")
    return texts


def _items(extender: Extender, nodes: Any) -> Sequence[Any]:
    if not isinstance(nodes, Mapping):
        raise _misshapen(extender, extender.filter_verb, "Nodes as a list object")
    return _sequence(extender, extender.filter_verb, field(nodes, "items"))


def _node_name(extender: Extender, node: Any) -> str:
    metadata = field(node, "metadata") if isinstance(node, Mapping) else None
    name = field(metadata, "name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str):
        raise _misshapen(extender, extender.filter_verb, "Nodes with names")
    return name


def _messages(extender: Extender, value: Any) -> dict[str, str]:
    messages = dict(_pairs(extender, extender.filter_verb, value))
    if not all(isinstance(message, str) for message in messages.values()):
        raise _misshapen(extender, extender.filter_verb, "messages by node")
    return messages


def _pairs(extender: Extender, verb: str, value: Any) -> Iterable[tuple[str, Any]]:
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise _misshapen(extender, verb, "an object by node")
    if verb == extender.preempt_verb and not all(one is None or isinstance(one, Mapping) for one in value.values()):
        raise _misshapen(extender, verb, "victims by node")
    return value.items()


def _uid(extender: Extender, victim: Any) -> str:
    uid = field(victim, "UID") if isinstance(victim, Mapping) else None
    if not isinstance(uid, str):
        raise _misshapen(extender, extender.preempt_verb, "Pods with their UID")
    return uid


def _misshapen(extender: Extender, verb: str, wanted: str) -> Refused:
    return Refused(f"extender at URL {url_of(extender, verb)} must answer {wanted}, and does not")
