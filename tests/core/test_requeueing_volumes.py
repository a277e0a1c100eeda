"""A pod whose volumes fit nowhere, and something that happens: is it tried again?

As in test_requeueing.py, with claims, volumes, classes and what drivers tell of themselves.
"""

from __future__ import annotations

import pytest
from tests.core.stories import Story, play, story
from tests.plugins.storage import (
    DRIVER,
    attachment,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    volume,
)

from kubesched.testing import changed, node, pod

ZONE = "topology.kubernetes.io/zone"
A, B = node("a", zone="a"), node("b", zone="b")
WANTS = pod("p", claims=["data"])
OTHERS = pod("q", claims=["else"])
WAIT = storage_class("wait")
STATIC = storage_class("wait", provisioner="kubernetes.io/no-provisioner")
ZONAL = storage_class("wait", allowed=[{ZONE: ["b"]}])
HERE, THERE_B = volume("vol", zone="a"), volume("vol", zone="b")

VOLUMES = [
    story(A, WAIT, pods=[WANTS], news=[("+", claim())], woken="p", name="binding: the claim is made"),
    story(A, WAIT, pods=[WANTS, OTHERS], news=[("+", claim())], woken="p", name="binding: that of one of two"),
    story(A, claim(), pods=[WANTS], news=[("+", WAIT)], woken="p", name="binding: the class is made"),
    story(
        A,
        storage_class("now", mode="Immediate"),
        claim(storage_class="now"),
        pods=[WANTS],
        news=[("+", claim("data", "vol", storage_class="now"))],
        woken="p",
        name="binding: the claim is bound",
    ),
    story(A, ZONAL, claim(), pods=[WANTS], news=[("+", WAIT)], woken="p", name="binding: the class allows more"),
    story(
        A,
        ZONAL,
        claim(),
        pods=[WANTS],
        news=[("+", changed(ZONAL, provisioner="x.example.com"))],
        name="binding: the class changes otherwise",
    ),
    story(A, STATIC, claim(), pods=[WANTS], news=[("+", volume())], woken="p", name="binding: a volume comes"),
    story(
        A,
        STATIC,
        claim(size="4Gi"),
        volume(size="1Gi"),
        pods=[WANTS],
        news=[("+", volume(size="8Gi"))],
        woken="p",
        name="binding: a volume changes",
    ),
    story(A, WAIT, claim("data", "vol"), pods=[WANTS], news=[("+", volume())], woken="p", name="binding: its volume"),
    story(
        A,
        WAIT,
        claim("data", "vol"),
        THERE_B,
        pods=[WANTS],
        news=[("+", B)],
        woken="p",
        name="binding: a node comes that reaches the volume",
    ),
    story(
        A,
        WAIT,
        claim("data", "vol"),
        THERE_B,
        pods=[WANTS],
        news=[("+", node("a", zone="b"))],
        woken="p",
        name="binding: the node gets another zone",
    ),
    story(
        A, WAIT, claim("data", "vol"), THERE_B, pods=[WANTS], news=[("+", node("a", zone="a", cpu=99))], name="or grows"
    ),
    story(
        A,
        WAIT,
        claim(size="4Gi"),
        csi_driver(DRIVER, capacity=True),
        capacity("room", size="1Gi"),
        pods=[WANTS],
        news=[("+", capacity("room", size="8Gi"))],
        woken="p",
        name="binding: there is more room for volumes",
    ),
    story(
        A,
        WAIT,
        claim(size="4Gi"),
        csi_driver(DRIVER, capacity=True),
        capacity("room", size="2Gi"),
        pods=[WANTS],
        news=[("+", capacity("room", size="1Gi"))],
        name="binding: there is less",
    ),
    story(
        A,
        WAIT,
        claim(size="4Gi"),
        csi_driver(DRIVER, capacity=True),
        pods=[WANTS],
        news=[("+", capacity("room", size="8Gi"))],
        woken="p",
        name="binding: there is any",
    ),
    story(
        A,
        WAIT,
        claim(size="4Gi"),
        csi_driver(DRIVER, capacity=True),
        pods=[WANTS],
        news=[("+", csi_driver(DRIVER, capacity=False))],
        woken="p",
        name="binding: the driver does not count any more",
    ),
    story(
        A,
        pod("there", claims=["data"], on="a"),
        WAIT,
        volume(),
        claim("data", "vol", modes=["ReadWriteOncePod"]),
        pods=[WANTS],
        news=[("-", pod("there", claims=["data"], on="a"))],
        woken="p",
        name="restrictions: the user of the claim goes",
    ),
    story(
        A,
        pod("there", claims=["data"], on="a"),
        pod("other", claims=["other"], on="a"),
        WAIT,
        volume(),
        claim("data", "vol", modes=["ReadWriteOncePod"]),
        pods=[WANTS],
        news=[("-", pod("other", claims=["other"], on="a"))],
        name="restrictions: the user of another goes",
    ),
    story(
        A,
        WAIT,
        volume("vol", labels={ZONE: "b"}),
        claim("data", "vol"),
        pods=[WANTS],
        news=[("+", B)],
        woken="p",
        name="zones: a node comes in the volume's zone",
    ),
    story(
        A,
        WAIT,
        volume("vol", labels={ZONE: "b"}),
        claim("data", "vol"),
        pods=[WANTS],
        news=[("+", volume("vol", labels={ZONE: "a"}))],
        woken="p",
        name="zones: the volume is in another",
    ),
    story(
        A,
        WAIT,
        csi_node("a", csi_example_com=1),
        volume("vol", handle="h"),
        volume("vol2", handle="h2"),
        claim("data", "vol"),
        claim("taken", "vol2"),
        pod("there", claims=["taken"], on="a"),
        pods=[WANTS],
        news=[("+", csi_node("a", csi_example_com=2))],
        woken="p",
        name="limits: the node may attach more",
    ),
    story(
        A,
        WAIT,
        csi_node("a", csi_example_com=1),
        volume("vol", handle="h"),
        volume("vol2", handle="h2"),
        claim("data", "vol"),
        claim("taken", "vol2"),
        pod("there", claims=["taken"], on="a"),
        pods=[WANTS],
        news=[("-", pod("there", claims=["taken"], on="a"))],
        woken="p",
        name="limits: a pod with a volume goes",
    ),
    story(
        A,
        WAIT,
        csi_node("a", csi_example_com=1),
        volume("vol", handle="h"),
        volume("vol2", handle="h2"),
        claim("data", "vol"),
        attachment("held", "vol2", "a"),
        pods=[WANTS],
        news=[("-", attachment("held", "vol2", "a"))],
        woken="p",
        name="limits: a volume is detached",
    ),
    story(
        A,
        WAIT,
        csi_node("a", csi_example_com=0),
        volume("vol", handle="h"),
        claim("data", "vol"),
        pod("there", on="a"),
        pods=[WANTS],
        news=[("-", pod("there", on="a"))],
        name="limits: a pod without one goes",
    ),
]


@pytest.mark.parametrize("told", VOLUMES)
def test_who_is_tried_again(told: Story) -> None:
    assert play(told) == told.woken
