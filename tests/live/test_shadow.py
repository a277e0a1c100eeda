"""A shadow decides everything, writes nothing, and says where the scheduler at work decided otherwise."""

from typing import Any

import pytest
from tests.core.little import Fit

from kubesched.api.time import seconds
from kubesched.core.messages import Bind, Call, Completed, Evict, PatchPod, Publish, ReadPod
from kubesched.drive import drive
from kubesched.drive.tap import Tap
from kubesched.framework.hooks import Nomination
from kubesched.framework.records import State
from kubesched.framework.status import SUCCESS, unschedulable
from kubesched.framework.steps import HttpPost, Patch
from kubesched.live.listening import LiveTap
from kubesched.live.shadow import Comparing, Comparison, ShadowWorld, compare
from kubesched.sim.rival import Rival
from kubesched.sim.seat import Seat
from kubesched.sim.world import SimWorld
from kubesched.testing import node, pod, run, scheduler


class Prefer:
    """Scores one node best, or those named; everything else alike."""

    def __init__(self, *names: str) -> None:
        self.name, self.names = "Prefer", names

    def score(self, cycle, pod, node):  # type: ignore[no-untyped-def]
        return 100 if node.name in self.names else 0


class Only:
    """Lets one node pass."""

    name = "Only"

    def __init__(self, node: str) -> None:
        self.node = node

    def filter(self, cycle, pod, node):  # type: ignore[no-untyped-def]
        return SUCCESS if node.name == self.node else unschedulable("node(s) were not the one")


class Cluster:
    """A shadow and the scheduler at work, in one cluster."""

    def __init__(self, ours: list[Any], theirs: list[Any] | None, nodes: int = 2) -> None:
        self.world = SimWorld()
        self.shadow = ShadowWorld(self.world)
        self.heard: list[Comparison] = []
        core = scheduler(plugins=ours)
        self.comparing = Comparing(core, self.heard.append)
        self.tap = LiveTap(core, before=[self.comparing])
        self.tap.core.unsynced.update(self.world.seat.kinds)
        if theirs is not None:
            seat = Seat(self.world.cluster, self.world.clock, self.world.seat.luck, self.world.latency)
            Rival(Tap(scheduler(plugins=theirs)), seat, self.world)
        for at in range(nodes):
            self.create({"kind": "Node", "metadata": {"name": f"n{at + 1}"}, "status": {"allocatable": {"cpu": "1"}}})

    def create(self, obj: dict[str, Any]) -> None:
        self.world.cluster.create(obj)

    def pod(self, name: str) -> None:
        wants = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
        self.create({"kind": "Pod", "metadata": {"name": name}, "spec": wants})

    def run(self, until: int = 5) -> list[Comparison]:
        self.world.horizon = self.world.start + seconds(until)
        drive(self.tap, self.shadow)
        return self.heard

    def status(self, name: str) -> Any:
        return self.world.cluster.get("Pod", "default", name)


@pytest.mark.parametrize(
    ("ours", "theirs", "result", "why"),
    [
        (Prefer("n1"), Prefer("n1"), "same", ""),
        (Prefer("n1", "n2"), Prefer("n2"), "tied", ""),
        (Prefer("n1"), Prefer("n2"), "different", "100 points behind: Prefer +100"),
        (Only("n1"), Only("n2"), "refused", "Only: node(s) were not the one"),
        (Only("n9"), Only("n2"), "nowhere", "0/2 nodes are available: 2 node(s) were not the one."),
    ],
)
def test_the_two_decisions_are_compared(ours: Any, theirs: Any, result: str, why: str) -> None:
    cluster = Cluster([Fit(), ours], [Fit(), theirs])
    cluster.pod("a")
    [told] = cluster.run()
    assert (told.pod, told.result, told.theirs, told.why) == (
        "default/a",
        result,
        cluster.status("a")["spec"]["nodeName"],
        why,
    )
    assert cluster.comparing.tally == {result: 1}


def test_every_binding_is_compared_once_and_capacity_follows_the_other_scheduler() -> None:
    cluster = Cluster([Fit(), Prefer("n1")], [Fit(), Prefer("n2")], nodes=6)
    for name in "abcdef":
        cluster.pod(name)
    told = cluster.run(until=30)
    assert sorted(one.pod for one in told) == [f"default/{name}" for name in "abcdef"]
    assert not cluster.tap.core.flights
    assert all(cluster.tap.core.free(f"n{at}")["cpu"] == 0 for at in range(1, 7))


def test_a_shadow_alone_writes_nothing_and_tries_again() -> None:
    cluster = Cluster([Fit()], None)
    cluster.pod("a")
    assert cluster.run(until=150) == []
    assert "nodeName" not in cluster.status("a")["spec"]
    assert "conditions" not in cluster.status("a").get("status", {})
    tries = [record.cause for record in cluster.tap.core.story("default/a")].count("popped")
    assert tries >= 2


def test_what_must_not_be_written_never_reaches_the_world() -> None:
    class Deaf:
        now = 5
        def __init__(self) -> None:
            self.performed: list[Any] = []

        def perform(self, effects):  # type: ignore[no-untyped-def]
            self.performed += effects

        def take(self) -> None:
            return None

    deaf = Deaf()
    shadow = ShadowWorld(deaf, binding_verbs=("bind",), patience=seconds(1))  # type: ignore[arg-type]
    told = {"pod": "default/a", "uid": "u", "cause": 0}
    read = ReadPod(id=1, pod="default/a", uid="u", cause=0)
    asked = Call(id=2, cause=0, step=HttpPost(0, "filter", {}))
    about = {"regarding": "default/a", "uid": "u", "type": "Normal", "reason": "R", "action": "A", "note": "n"}
    shadow.perform(
        [
            read,
            asked,
            Bind(id=3, node="n1", **told),
            Call(id=4, cause=0, step=HttpPost(0, "bind", {})),
            Call(id=5, cause=0, step=Patch("PersistentVolumeClaim", "default/c", {})),
            PatchPod(id=6, **told),
            Publish(id=7, cause=0, reporter="r", **about),
            Evict(id=8, message="m", **told),
        ]
    )
    assert deaf.performed == [read, asked]
    assert [shadow.take(), shadow.take(), shadow.take()] == [Completed(6), Completed(7), None]
    deaf.now = seconds(2)
    answered = [shadow.take() for _ in range(4)]
    assert [(one.effect, one.answer.ok) for one in answered] == [(3, False), (4, False), (5, False), (8, False)]


def test_a_node_nobody_told_us_of_is_said_to_be_unknown() -> None:
    core = scheduler(node("n1", cpu=1), pod("a", cpu=1))
    run(core)
    assert compare(core.why("default/a"), "n7").why == "the node was not known here"


def test_a_preemptor_does_not_hang_on_an_eviction_that_is_not_made() -> None:
    class Room:
        name = "Room"

        def post_filter(self, cycle, pod, rejected):  # type: ignore[no-untyped-def]
            return Nomination("n1", tuple(other for other in self.tools.pods() if other.name == "low"))

    cluster = Cluster([Fit(), Room()], [Fit()], nodes=1)
    cluster.pod("low")
    cluster.run(until=3)
    cluster.pod("high")
    cluster.run(until=20)
    assert cluster.status("low")["spec"]["nodeName"] == "n1"
    assert "deletionTimestamp" not in cluster.status("low")["metadata"]
    assert cluster.tap.core.state("default/high") is State.PARKED
    cluster.world.cluster.delete("Pod", "default", "low")
    cluster.run(until=25)
    assert cluster.status("high")["spec"]["nodeName"] == "n1"
    assert cluster.tap.core.evictions.under_way == {}
