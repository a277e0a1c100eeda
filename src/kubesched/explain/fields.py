"""A Decision as plain JSON: the fields in which kube-scheduler's own answers were recorded.

`decision.schema.json` beside this file describes them for other programs; a test holds the two together.
"""

from __future__ import annotations

from typing import Any

from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.status import Status

Json = dict[str, Any]


def fields(decision: Decision) -> Json:
    """A Decision in the words of a recording.  Lists are sorted; what there is nothing to say about is left out."""
    told: Json = {"pod": decision.pod, "feasible": sorted(decision.feasible_nodes)}
    if decision.pre_filter is not None:
        told["preFilter"] = _status(decision.pre_filter)
    if decision.pre_filter_nodes is not None:
        told["preFilterNodes"] = sorted(decision.pre_filter_nodes)
    rejected = _rejected(decision)
    if rejected:
        told["rejected"] = rejected
    if decision.placed:
        told["chosen"] = decision.node
        told["best"] = sorted(decision.best)
        told.update(_scores(decision))
    elif decision.outcome is Outcome.ERROR:
        told["error"] = decision.error
    else:
        told["message"] = decision.message
    if decision.post_filter is not None:
        told["postFilter"] = _post_filter(decision)
    return told


def _rejected(decision: Decision) -> Json:
    """By node.  Thousands of nodes share a few answers, and share their JSON here too."""
    kept: dict[Status, Json] = {}
    rejected: Json = {}
    for row, status in decision.rejected.each():
        told = kept.get(status)
        if told is None:
            told = kept[status] = _status(status)
        rejected[decision.names[row]] = told
    return rejected


def _status(status: Status) -> Json:
    told: Json = {"code": status.code.text, "reasons": sorted(status.reasons)}
    if status.plugin:
        told["plugin"] = status.plugin
    return told


def _scores(decision: Decision) -> Json:
    if decision.totals is None:
        return {}
    names = decision.feasible_nodes
    plugins = list(decision.scores)
    by_node = zip(*(decision.scores[plugin].tolist() for plugin in plugins), strict=True)
    rows = by_node if plugins else ((),) * len(names)
    return {
        "scores": {name: dict(zip(plugins, row, strict=True)) for name, row in zip(names, rows, strict=True)},
        "totals": dict(zip(names, decision.totals.tolist(), strict=True)),
    }


def _post_filter(decision: Decision) -> Json:
    result = decision.post_filter
    assert result is not None
    told: Json = {"code": result.status.code.text}
    if result.status.message:
        told["message"] = result.status.message
    if result.node:
        told["nominatedNode"] = result.node
    if result.victims:
        told["victims"] = sorted(victim.key for victim in result.victims)
    return told
