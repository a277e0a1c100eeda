"""Topology spread constraints, and pods under them, in few words."""

from collections.abc import Mapping
from typing import Any

from tests.plugins.neighbourhood import node, pod

from kubesched.api.objects import KubeObject, Pod
from kubesched.plugins.pod_topology_spread import DefaultConstraint
from kubesched.plugins.spread_constraints import HARD, SOFT

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
FOO = {"foo": ""}


def hard(key: str, skew: int = 1, selector: Any = "foo", **more: Any) -> dict[str, Any]:
    """A constraint with DoNotSchedule; the selector is a label that must be there, or given in full."""
    if isinstance(selector, str):
        selector = {"matchExpressions": [{"key": selector, "operator": "Exists"}]}
    constraint = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": HARD, "labelSelector": selector}
    return constraint | more


def soft(key: str, skew: int = 1, selector: Any = "foo", **more: Any) -> dict[str, Any]:
    return hard(key, skew, selector, **more) | {"whenUnsatisfiable": SOFT}


def wants(*constraints: dict[str, Any], labels: Mapping[str, str] = FOO, **spec: Any) -> Pod:
    return pod("new", labels, topologySpreadConstraints=list(constraints), **spec)


def pods(**counts: int) -> list[Pod]:
    """`pods(a=2)` are two pods labelled foo on node a."""
    return [pod(f"p-{on}{i}", FOO, on=on) for on, count in counts.items() for i in range(count)]


# Two zones of two nodes each; the hosts are a, b and x, y.
SQUARE: list[KubeObject] = [
    node("a", zone="zone1", node="a"),
    node("b", zone="zone1", node="b"),
    node("x", zone="zone2", node="x"),
    node("y", zone="zone2", node="y"),
]


def default(key: str = "node", skew: int = 1, when: str = SOFT, **more: Any) -> DefaultConstraint:
    return DefaultConstraint(topology_key=key, max_skew=skew, when_unsatisfiable=when, **more)
