"""Pod affinity in few words: be near, stay away, would rather."""

from collections.abc import Mapping
from typing import Any

from tests.plugins.neighbourhood import node, pod

from kubesched.api.objects import KubeObject, Pod

WEB, DB = {"app": "web"}, {"app": "db"}


def term(key: str, selector: Any = "web", **more: Any) -> dict[str, Any]:
    """An affinity term; the selector is the value of `app`, or given in full."""
    if isinstance(selector, str):
        selector = {"matchLabels": {"app": selector}}
    return {"topologyKey": key, "labelSelector": selector, **more}


def op(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def away(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def likes(*weighted: tuple[int, dict[str, Any]], kind: str = "podAffinity") -> dict[str, Any]:
    terms = [{"weight": weight, "podAffinityTerm": one} for weight, one in weighted]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def dislikes(*weighted: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    return likes(*weighted, kind="podAntiAffinity")


def wants(affinity: dict[str, Any] | None = None, labels: Mapping[str, str] = DB, **spec: Any) -> Pod:
    return pod("new", labels, affinity=affinity, **spec)


SQUARE: list[KubeObject] = [
    node("a", zone="z1", host="a"),
    node("b", zone="z1", host="b"),
    node("x", zone="z2", host="x"),
    node("y", zone="z2", host="y"),
]
WEB_ON_A = pod("w", WEB, on="a")
