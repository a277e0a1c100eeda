"""A scenario: a cluster, what happens to it and when, and what must come of that.  As a value, however it was written.

    Scenario(
        cluster=(made(kind="Node", …), …),
        planned=(Planned(seconds(10), uncordon("n1")),),
        expect=(Expectation(pod="default/web", nodes=("n1",), at=seconds(10)),),
    )

`sim.reading` makes one from YAML, `sim.literate` from a Markdown page, `sim.play` plays it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kubesched.api.time import Duration
from kubesched.config.faults import InvalidConfiguration
from kubesched.config.registry import PluginClass
from kubesched.config.schema import Configuration
from kubesched.framework.profile import TieRule
from kubesched.sim.expectation import Expectation
from kubesched.sim.faults import Fault
from kubesched.sim.seat import Latency
from kubesched.sim.shorthand import Made
from kubesched.sim.troupe import Playing
from kubesched.sim.workload import Workload

Json = dict[str, Any]


class InvalidScenario(InvalidConfiguration):
    """A scenario that cannot be played, with every fault's file, line, path and remedy."""

    exit_status = 2


# ── what can happen ──────────────────────────────────────────────────────────────────────────────────────────


class Target(Struct, frozen=True):
    """Which object."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.kind.lower(), self.namespace, self.name)))


class Create(Struct, frozen=True):
    """Objects appear."""

    made: tuple[Made, ...]


class Delete(Struct, frozen=True):
    target: Target


class Change(Struct, frozen=True):
    """A merge patch; null takes a field away."""

    target: Target
    body: Json


class HoldNews(Struct, frozen=True):
    """The scheduler hears nothing of a kind for a while."""

    kind: str
    duration: Duration


class Command(Struct, frozen=True):
    """An operator's word to the scheduler."""

    verb: str
    pod: str = ""


Deed = Create | Delete | Change | HoldNews | Command | Fault


class Planned(Struct, frozen=True):
    """Something that will happen.  `where` is its place in the file, for when it cannot."""

    at: Duration
    deed: Deed
    where: str = ""


def cordon(node: str) -> Change:
    return Change(Target("Node", node), {"spec": {"unschedulable": True}})


def uncordon(node: str) -> Change:
    return Change(Target("Node", node), {"spec": {"unschedulable": None}})


class Scenario(Struct, frozen=True, kw_only=True):
    """Everything a run is made of.

    Args:
        seed: of the scheduler's luck and the world's; the same seed plays the same run.
        until: when it ends; where None, when nothing new has happened for ten minutes.
        scheduler: its configuration; kube-scheduler's default where None.
        plugins: classes of one's own that `scheduler` may name, by name.
        features: feature gates, by the names Kubernetes gives them.
        actors: kubelets and controllers that play; nobody where None.
        cluster: what is there when the run begins.
        planned: what happens later.
        file: where it was read from.
    """

    name: str = ""
    seed: int = 0
    until: Duration | None = None
    latency: Latency = Latency()
    scheduler: Configuration | None = None
    plugins: Mapping[str, PluginClass] = {}
    tie: TieRule = "seeded"
    features: Mapping[str, bool] = {}
    actors: Playing | None = None
    cluster: tuple[Planned, ...] = ()
    planned: tuple[Planned, ...] = ()
    workloads: tuple[Workload, ...] = ()
    expect: tuple[Expectation, ...] = ()
    file: str = ""
    plugins_from: str = ""  # what the path of a plugin's file in `scheduler` is relative to
