"""An ordered, checked, ready-to-run set of plugin instances: what makes one scheduler different from another.

A profile has a list of plugins per extension point.  Made from plugins alone, each takes part wherever it has a
hook, in the order given; made from a configuration, every list is explicit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from kubesched.api.kinds import Kind, kind_of
from kubesched.api.objects import KubeObject, Node, Pod
from kubesched.framework.errors import ConfigError
from kubesched.framework.extender import Extender
from kubesched.framework.hooks import POINTS, Plugin, check, name_of, points_of, reads_of
from kubesched.framework.tools import Tools

TieRule: TypeAlias = Literal["seeded", "name", "first"]
Points: TypeAlias = Mapping[str, Sequence[Plugin]]

MIN_SCORE, MAX_SCORE = 0, 100


class Tiers(NamedTuple):
    """A plugin at an extension point with two tiers: about one node, and about all."""

    name: str
    plugin: Plugin
    one: Callable[..., Any] | None
    all: Callable[..., Any] | None


_MAX_TOTAL = 2**63 - 1


class Profile:
    """The plugins of one scheduler name, by extension point.

    Args:
        plugins: instances; each takes part wherever it has a hook.
        name: the `schedulerName` of the pods this profile is for.
        weights: how much a score plugin counts; 1 where not named.
        percentage_of_nodes_to_score: None scores every node, 0 samples adaptively as kube-scheduler does,
            1 to 100 is that percentage.
        tie: how one of several best nodes is picked.
        points: explicit lists per extension point, instead of `plugins`.
        extenders: schedulers beside this one, asked over HTTP.
    """

    def __init__(
        self,
        *plugins: Plugin,
        name: str = "default-scheduler",
        weights: Mapping[str, int] | None = None,
        percentage_of_nodes_to_score: int | None = None,
        tie: TieRule = "seeded",
        points: Points | None = None,
        extenders: Sequence[Extender] = (),
    ) -> None:
        self.name = name
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.tie: TieRule = tie
        self.extenders = tuple(extenders)
        lists = points if points is not None else _by_point(plugins)
        self.points: dict[str, tuple[Plugin, ...]] = {point: tuple(lists.get(point, ())) for point in POINTS}
        self.plugins: tuple[Plugin, ...] = _distinct(plugins, self.points)
        for plugin in self.plugins:
            check(plugin)
        self._check_points()
        self.pre_enqueue = self.points["preEnqueue"]
        self.queue_sort = self.points["queueSort"]
        self.pre_filter = self.points["preFilter"]
        self.filter = self.points["filter"]
        self.post_filter = self.points["postFilter"]
        self.pre_score = self.points["preScore"]
        self.score = self.points["score"]
        self.reserve = self.points["reserve"]
        self.permit = self.points["permit"]
        self.pre_bind = self.points["preBind"]
        self.bind = self.points["bind"]
        self.post_bind = self.points["postBind"]
        self.filters = tuple(_tiers(plugin, "filter") for plugin in self.filter)
        self.scores = tuple(_tiers(plugin, "score") for plugin in self.score)
        self.weights = {name_of(plugin): (weights or {}).get(name_of(plugin), 0) or 1 for plugin in self.score}
        self._check_weights()
        for plugin in self.plugins:
            if getattr(plugin, "tools", None) is None:
                plugin.tools = Tools(name_of(plugin))
        self.kinds = _kinds(self.plugins)

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, {[name_of(plugin) for plugin in self.plugins]})"

    def keep_tier(self, tier: Literal["scalar", "vector"]) -> None:
        """Use one tier only, of the plugins that offer both: for whoever wants to see that they agree."""
        one = tier == "scalar"

        def kept(tiers: Tiers) -> Tiers:
            if tiers.one is None or tiers.all is None:
                return tiers
            return tiers._replace(all=None) if one else tiers._replace(one=None)

        self.filters = tuple(kept(tiers) for tiers in self.filters)
        self.scores = tuple(kept(tiers) for tiers in self.scores)

    def _check_points(self) -> None:
        for point, plugins in self.points.items():
            names = [name_of(plugin) for plugin in plugins]
            for i, name in enumerate(names):
                if name in names[:i]:
                    raise ConfigError("", f'plugin "{name}" already registered as "{go_name(point)}"')
            for plugin in plugins:
                if point not in points_of(plugin):
                    raise ConfigError("", f'plugin "{name_of(plugin)}" does not extend {go_name(point)} plugin')
        if len(self.points["queueSort"]) > 1:
            raise ConfigError(
                "",
                f'only one queue sort plugin required for profile with scheduler name "{self.name}", '
                f"but got {len(self.points['queueSort'])}",
            )

    def _check_weights(self) -> None:
        """Kept from kube-scheduler: the sum of all weighted scores must not overflow an int64."""
        total = 0
        for weight in self.weights.values():
            if weight * MAX_SCORE > _MAX_TOTAL - total or total < 0:
                raise ConfigError("", "score plugins: total score of Score plugins could overflow")
            total += weight * MAX_SCORE
        if total < 0:
            raise ConfigError("", "score plugins: total score of Score plugins could overflow")


def _kinds(plugins: Sequence[Plugin]) -> dict[str, Kind]:
    """What these plugins read, by name: pods and nodes always, and whatever they declare."""
    views: list[type[KubeObject]] = [Pod, Node, *(view for plugin in plugins for view in reads_of(plugin))]
    return {kind.name: kind for kind in map(kind_of, views)}


def _tiers(plugin: Plugin, hook: str) -> Tiers:
    return Tiers(name_of(plugin), plugin, getattr(plugin, hook, None), getattr(plugin, f"{hook}_all", None))


def go_name(point: str) -> str:
    """The type kube-scheduler's messages call an extension point by: `preFilter` → `PreFilterPlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"


def _by_point(plugins: Sequence[Plugin]) -> Points:
    lists: dict[str, list[Plugin]] = {point: [] for point in POINTS}
    for plugin in plugins:
        for point in points_of(plugin):
            lists[point].append(plugin)
    return lists


def _distinct(plugins: Sequence[Plugin], points: Mapping[str, Sequence[Plugin]]) -> tuple[Plugin, ...]:
    """Every plugin instance once, in the order first met."""
    seen: dict[int, Plugin] = {}
    for plugin in (*plugins, *(plugin for listed in points.values() for plugin in listed)):
        seen.setdefault(id(plugin), plugin)
    return tuple(seen.values())
