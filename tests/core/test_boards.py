"""A board never changes an answer: the same run with boards, without, and with boards dropped now and then.

The recorded clusters are the raw material: every pod of a case is scheduled several times over, in turns, while
pods go, nodes are cordoned, tainted, relabelled and replaced, so that boards are used when they are warm, a
little out of date, and a lot.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from kubesched.api.objects import KINDS, KubeObject, Node, Pod, Taint, read
from kubesched.assemble import profiles_of
from kubesched.cluster.columns import Nodes
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.podinfo import PodInfo
from kubesched.config.load import load
from kubesched.core.board import Boards
from kubesched.core.luck import SeededLuck
from kubesched.core.schedule import schedule
from kubesched.explain.fields import fields
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision
from kubesched.framework.profile import Profile
from kubesched.testing.parity import NOON, Desk

DATA = Path(__file__).parents[1] / "parity" / "data"
FAMILIES = ("resources", "nodeaffinity", "taints", "ports_images", "topology", "interpod", "mixed")
CASES = 14  # of each family
ROUNDS = 4


def cases(family: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / f"{family}.jsonl.gz", "rt") as file:
        for i, line in enumerate(file):
            if i % (200 // CASES) == 0:
                yield json.loads(line)["case"]


class World:
    """A cluster that changes, and pods that come again and again."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.luck = Random(case["id"])
        self.mirror = Mirror()
        for raw in case["objects"]:
            self.mirror.observe(read(raw, KINDS[raw["kind"]]))
        self.profiles = profiles_of(load(case.get("config") or {}))
        for profile in self.profiles.values():
            for plugin in profile.plugins:
                plugin.tools.attach(Desk(self.mirror))
        self.templates = [read(raw, Pod) for raw in case["pods"]]
        self.placed: list[Pod] = []
        self.version = 1_000
        self.number = 0

    def next_pod(self, i: int) -> PodInfo:
        template = self.templates[i % len(self.templates)]
        self.number += 1
        name = f"{template.name}-{self.number}"
        meta = structs.replace(template.metadata, name=name, uid=f"copy-{self.number}")
        return PodInfo(structs.replace(template, metadata=meta))

    def decide(self, info: PodInfo, boards: Boards | None) -> Decision:
        mirror = self.mirror
        cycle = Cycle(
            info,
            Nodes(mirror.table, mirror.table.rows),
            mirror.objects,
            now=NOON,
            luck=SeededLuck(7, self.number),
            number=self.number,
            start=self.number % max(1, len(mirror.table)),
        )
        return schedule(cycle, self.profile_of(info), boards=boards)

    def profile_of(self, info: PodInfo) -> Profile:
        return self.profiles[info.pod.spec.scheduler_name]

    def bind(self, info: PodInfo, node: str) -> None:
        spec = structs.replace(info.pod.spec, node_name=node)
        pod = structs.replace(info.pod, spec=spec)
        self.placed.append(pod)
        self.tell(pod)

    def tell(self, obj: KubeObject, gone: bool = False) -> None:
        self.version += 1
        meta = structs.replace(obj.metadata, resource_version=str(self.version))
        self.mirror.observe(structs.replace(obj, metadata=meta), gone)

    def stir(self) -> None:
        """Something happens to the cluster, or nothing."""
        what = self.luck.randrange(10)
        node = self.some_node()
        if what == 0 and self.placed:
            self.tell(self.placed.pop(self.luck.randrange(len(self.placed))), gone=True)
        elif what == 1 and node is not None:
            self.tell(structs.replace(node, spec=structs.replace(node.spec, unschedulable=not node.spec.unschedulable)))
        elif what == 2 and node is not None:
            taints = (Taint(key="k", value="v", effect=self.luck.choice(("NoSchedule", "PreferNoSchedule"))),)
            self.tell(structs.replace(node, spec=structs.replace(node.spec, taints=taints)))
        elif what == 3 and node is not None:
            labels = {**node.labels, "topology.kubernetes.io/zone": self.luck.choice(("za", "zb", "new"))}
            self.tell(structs.replace(node, metadata=structs.replace(node.metadata, labels=labels)))
        elif what == 4 and node is not None:
            self.tell(node, gone=True)
            meta = structs.replace(node.metadata, uid=node.uid + "'")
            if self.luck.random() < 0.8:
                self.tell(structs.replace(node, metadata=meta))

    def some_node(self) -> Node | None:
        nodes = [node for node in self.mirror.table.nodes if node is not None]
        return self.luck.choice(nodes) if nodes else None


@pytest.mark.parametrize("family", FAMILIES)
def test_boards_never_change_an_answer(family: str) -> None:
    used = 0
    for case in cases(family):
        world, warm, shaky = World(case), Boards(), Boards(at_most=2)
        kept: list[tuple[Decision, Any]] = []
        for i in range(ROUNDS * max(4, len(world.templates))):
            info = world.next_pod(i)
            plain = world.decide(info, None)
            told = fields(plain)
            for boards in (warm, shaky):
                got = world.decide(info, boards)
                assert fields(got) == told, f"{case['id']}, attempt {i}"
                assert got.node == plain.node
                assert got.next_start == plain.next_start
            kept.append((world.decide(info, warm), told))
            if world.luck.random() < 0.2:
                shaky.drop()
            if plain.placed:
                world.bind(info, plain.node)
            world.stir()
        used += warm.hits
        for decision, told in kept:  # asked long after the board has moved on
            assert fields(decision) == told, case["id"]
    assert used > 0
