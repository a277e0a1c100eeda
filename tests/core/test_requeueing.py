"""A pod that fits nowhere, and something that happens: is it tried again?  By the plugins of the default profile.

Each story has objects that are there, pods that are tried and turned down, news, and the pods that are then queued
again; the others sleep on.  `+` is an object that comes or changes, `-` one that goes.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.stories import Story, play, story

from kubesched.api.objects import Pod
from kubesched.testing import namespace, node, pod

# ── labels, taints, ports, gates ─────────────────────────────────────────────────────────────────────────────

SSD, HDD = {"disk": "ssd"}, {"disk": "hdd"}
FAST, SLOW = pod("fast", node_selector=SSD), pod("slow", node_selector=HDD)
TAINT, OTHER = ["team=a:NoSchedule"], ["team=b:NoSchedule"]
FOR_A = ["team=a:NoSchedule"]

NODES = [
    story(node(), pods=[FAST], news=[("+", node(labels=SSD))], woken="fast", name="labels: a node gets the label"),
    story(
        node(),
        pods=[FAST, SLOW],
        news=[("+", node("n2", labels=HDD))],
        woken="slow",
        name="labels: a node comes that one of two wants",
    ),
    story(node(), pods=[FAST], news=[("+", node(labels=HDD))], name="labels: a node gets another label"),
    story(
        node(cpu=1),
        pods=[FAST, pod("large", cpu=4)],
        news=[("+", node(cpu=1, labels=SSD)), ("+", node(cpu=5, labels=SSD))],
        woken="fast large",
        name="labels and room: each hears its own",
    ),
    story(
        node(taints=TAINT),
        pods=[pod("p"), pod("b", tolerations=OTHER)],
        news=[("+", node(taints=OTHER))],
        woken="b",
        name="taints: the node has another taint, that one tolerates",
    ),
    story(node(taints=TAINT), pods=[pod("p")], news=[("+", node())], woken="p", name="taints: the taint goes"),
    story(
        node(taints=TAINT),
        pods=[pod("p")],
        news=[("+", node("n2", taints=OTHER))],
        name="taints: a node comes with a taint too",
    ),
    story(
        node(taints=TAINT),
        pods=[pod("p"), pod("q")],
        news=[("+", pod("p", tolerations=FOR_A))],
        woken="p",
        name="taints: one of two tolerates it by now",
    ),
    story(
        node(taints=TAINT), pods=[pod("p")], news=[("+", node(taints=TAINT, cpu=9))], name="taints: the node only grows"
    ),
    story(
        node(unschedulable=True), pods=[pod("p")], news=[("+", node())], woken="p", name="cordons: the node is opened"
    ),
    story(
        node(unschedulable=True),
        pods=[pod("p")],
        news=[("+", node("n2", unschedulable=True))],
        name="cordons: another closed node comes",
    ),
    story(
        node(unschedulable=True),
        pods=[pod("p")],
        news=[("+", pod("p", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]))],
        woken="p",
        name="cordons: the pod tolerates it by now",
    ),
    story(
        node(),
        pod("there", on="n1", ports=[80]),
        pods=[pod("p", ports=[80])],
        news=[("-", pod("there", on="n1", ports=[80]))],
        woken="p",
        name="ports: who has it goes",
    ),
    story(
        node(),
        pod("there", on="n1", ports=[80]),
        pod("other", on="n1", ports=[81]),
        pods=[pod("p", ports=[80])],
        news=[("-", pod("other", on="n1", ports=[81]))],
        name="ports: who has another goes",
    ),
    story(
        node(),
        pods=[pod("p", gates=["a"]), pod("q", gates=["a", "b"])],
        news=[("+", pod("p")), ("+", pod("q", gates=["b"]))],
        woken="p",
        name="gates: all of one are open, not all of the other",
    ),
    story(
        node(declaredFeatures=["GuaranteedQoSPodCPUResize"]),
        pods=[pod("p", hostNetwork=True, hostUsers=False)],
        news=[("+", node(declaredFeatures=["UserNamespacesHostNetworkSupport"]))],
        woken="p",
        name="features: the node declares it",
    ),
    story(
        node(),
        pods=[pod("p", hostNetwork=True, hostUsers=False)],
        news=[("+", node("n2"))],
        woken="p",
        name="features: a node comes, and what it declares is not asked",
    ),
    story(
        node(),
        pods=[pod("p", hostNetwork=True, hostUsers=False)],
        news=[("+", node("n2", declaredFeatures=["UserNamespacesHostNetworkSupport"]))],
        woken="p",
        name="features: a node comes with it",
    ),
    story(
        node(),
        pods=[pod("p", hostNetwork=True, hostUsers=False)],
        news=[("+", node(labels=SSD))],
        name="features: the node gets a label",
    ),
]


# ── room ─────────────────────────────────────────────────────────────────────────────────────────────────────

THERE = pod("there", cpu=4, on="n1")
GPU = {"example.com/gpu": 1}

ROOM = [
    story(node(cpu=4), THERE, pods=[pod("p", cpu=2)], news=[("-", THERE)], woken="p", name="a pod goes"),
    story(
        node(cpu=4),
        THERE,
        pods=[pod("p", cpu=2)],
        news=[("+", pod("there", cpu=4, on="n1", phase="Succeeded"))],
        woken="p",
        name="a pod has done its work",
    ),
    story(node(cpu=4), THERE, pods=[pod("p", cpu=2)], news=[("+", node(cpu=8))], woken="p", name="the node grows"),
    story(
        node(cpu=4), THERE, pods=[pod("p", cpu=5)], news=[("+", node(cpu=4, memory="64Gi"))], name="in something else"
    ),
    story(node(cpu=4), pods=[pod("p", cpu=5)], news=[("+", node("n2", cpu=6))], woken="p", name="a larger node comes"),
    story(node(cpu=4), pods=[pod("p", cpu=5)], news=[("+", node("n2", cpu=4))], name="a node comes that is too small"),
    story(
        node(cpu=4),
        THERE,
        pods=[pod("p", cpu=2)],
        news=[("+", pod("there", cpu=2, on="n1"))],
        woken="p",
        name="a pod there becomes smaller",
    ),
    story(
        node(cpu=4),
        pod("there", cpu=4, memory="2Gi", on="n1"),
        pods=[pod("p", cpu=2)],
        news=[("+", pod("there", cpu=4, memory="1Gi", on="n1"))],
        name="in something else",
    ),
    story(
        node(cpu=4), pods=[pod("p", cpu=6)], news=[("+", pod("p", cpu=3))], woken="p", name="the pod wants less by now"
    ),
    story(node(cpu=4), pods=[pod("p", cpu=6)], news=[("+", pod("p", cpu=6, labels=SSD))], name="or is only relabelled"),
    story(
        node(cpu=4),
        THERE,
        pods=[pod("p", cpu=2), pod("q", resources=GPU)],
        news=[("-", THERE)],
        woken="p q",
        name="a pod goes: whom it helps is not asked",
    ),
    story(
        node(cpu=4),
        pods=[pod("p", cpu=6), pod("q", resources=GPU)],
        news=[("+", node(cpu=4, resources=GPU))],
        woken="q",
        name="the node has a resource that one of two wants",
    ),
    story(
        node(pods=1),
        pod("there", on="n1"),
        pods=[pod("p")],
        news=[("-", pod("there", on="n1"))],
        woken="p",
        name="a place for a pod",
    ),
    story(
        node(cpu=4),
        THERE,
        pods=[pod("p", cpu=2)],
        news=[("+", pod("there", cpu=4, on="n1", labels=SSD))],
        name="a pod there gets a label",
    ),
    story(
        node(cpu=4), pods=[pod("p", cpu=6)], news=[("+", node(cpu=4, taints=TAINT))], woken="p", name="taints wake too"
    ),
]


# ── neighbours ───────────────────────────────────────────────────────────────────────────────────────────────

ZONE = "topology.kubernetes.io/zone"
WEB, DB = {"app": "web"}, {"app": "db"}


def near(labels: dict[str, str], kind: str = "podAffinity", **more: Any) -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}, **more}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def away(labels: dict[str, str]) -> dict[str, Any]:
    return near(labels, "podAntiAffinity")


def spread(labels: dict[str, str], **more: Any) -> list[dict[str, Any]]:
    selector = {"matchLabels": labels}
    return [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **more}
    ]


def web(name: str, on: str, **more: Any) -> Pod:
    return pod(name, labels=WEB, on=on, **more)


A, B = node("a", zone="a"), node("b", zone="b")
LIKES_WEB, AVOIDS_WEB = pod("p", affinity=near(WEB)), pod("p", affinity=away(WEB))
EVEN = pod("p", labels=WEB, topologySpreadConstraints=spread(WEB))
TWO_ZONES = pod("p", labels=WEB, topologySpreadConstraints=spread(WEB, minDomains=2))

NEIGHBOURS = [
    story(A, pods=[LIKES_WEB], news=[("+", web("w", "a"))], woken="p", name="affinity: the one it likes comes"),
    story(A, pods=[LIKES_WEB], news=[("+", pod("d", labels=DB, on="a"))], name="affinity: another comes"),
    story(
        A,
        pod("w", on="a"),
        pods=[LIKES_WEB],
        news=[("+", web("w", "a"))],
        woken="p",
        name="affinity: a pod there becomes one it likes",
    ),
    story(
        A,
        web("w", "a"),
        pods=[AVOIDS_WEB],
        news=[("-", web("w", "a"))],
        woken="p",
        name="affinity: the one it avoids goes",
    ),
    story(
        A,
        web("w", "a"),
        pods=[AVOIDS_WEB],
        news=[("+", pod("w", labels=DB, on="a"))],
        woken="p",
        name="affinity: the one it avoids becomes another",
    ),
    story(
        A,
        web("w", "a"),
        pods=[AVOIDS_WEB],
        news=[("+", B)],
        woken="p",
        name="affinity: a node comes in another zone",
    ),
    story(
        A,
        pod("w", on="a", labels=DB, affinity=away(WEB)),
        pods=[web("p", "")],
        news=[("-", pod("w", on="a", labels=DB, affinity=away(WEB)))],
        woken="p",
        name="affinity: the one that avoids it goes",
    ),
    story(
        node("a"),
        web("w", "a"),
        pods=[LIKES_WEB],
        news=[("+", A)],
        woken="p",
        name="affinity: the node of the one it likes gets its zone",
    ),
    story(
        A,
        namespace("other", labels={"team": "x"}),
        pods=[pod("p", affinity=near(WEB, namespaceSelector={"matchLabels": {"team": "x"}}))],
        news=[("+", web("w", "a", namespace="other"))],
        woken="p",
        name="affinity: it comes in a name space that is meant",
    ),
    story(
        A,
        B,
        web("w", "a"),
        web("v", "a"),
        pod("blocks", on="b", cpu=8),
        pods=[pod("p", labels=WEB, cpu=1, topologySpreadConstraints=spread(WEB))],
        news=[("-", web("v", "a"))],
        woken="p",
        name="spread: one of the many goes",
    ),
    story(
        A,
        node("b", zone="b", unschedulable=True),
        web("w", "a"),
        pods=[EVEN],
        news=[("+", pod("d", labels=DB, on="a"))],
        name="spread: one that does not count comes",
    ),
    story(
        A,
        node("b", zone="b", unschedulable=True),
        web("w", "a"),
        pods=[EVEN],
        news=[("+", web("x", "b"))],
        woken="p",
        name="spread: one comes where there were few",
    ),
    story(
        A,
        node("b", zone="b", unschedulable=True),
        web("w", "a"),
        pods=[EVEN],
        news=[("+", pod("w", labels=DB, on="a"))],
        woken="p",
        name="spread: one does not count any more",
    ),
    story(
        A,
        node("b", zone="b", unschedulable=True),
        web("w", "a"),
        pods=[EVEN],
        news=[("-", node("b", zone="b", unschedulable=True))],
        woken="p",
        name="spread: the empty zone goes",
    ),
    story(
        A,
        node("b", zone="b", unschedulable=True),
        web("w", "a"),
        pods=[EVEN],
        news=[("+", node("b2", zone="b"))],
        woken="p",
        name="spread: a node comes in the empty zone",
    ),
    story(
        node("a"),
        pods=[EVEN],
        news=[("+", A)],
        woken="p",
        name="spread: a node gets a zone",
    ),
    story(A, web("w", "a"), pods=[TWO_ZONES], news=[("+", node("n3"))], name="spread: a node comes without a zone"),
    story(A, web("w", "a"), pods=[TWO_ZONES], news=[("+", B)], woken="p", name="spread: a node comes in a second zone"),
    story(
        A,
        web("w", "a"),
        pods=[TWO_ZONES],
        news=[("+", node("a", zone="a", cpu=99))],
        name="spread: the node grows",
    ),
]


@pytest.mark.parametrize("told", [*NODES, *ROOM, *NEIGHBOURS])
def test_who_is_tried_again(told: Story) -> None:
    assert play(told) == told.woken
