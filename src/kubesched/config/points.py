"""From plugin sets to a list per extension point: multiPoint is spread over every point a plugin has a hook for.

The order at a point: first the plugins that are in multiPoint and listed at the point as well, as listed there;
then the others of multiPoint; then the rest of the point's own list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from kubesched.config.defaults import EVERY
from kubesched.config.schema import Plugins, PluginSet
from kubesched.framework.errors import ConfigError
from kubesched.framework.profile import go_name

MULTI_POINT = "multiPoint"
_SPREAD = (
    *("preFilter", "filter", "postFilter", "reserve", "preScore", "score", "preBind", "bind", "postBind", "permit"),
    *("preEnqueue", "queueSort", "placementGenerate", "placementScore"),
)
"""The points in the order multiPoint is spread over them, which decides what is complained of first."""
HooksOf: TypeAlias = Callable[[str], Collection[str]]


def mentioned(plugins: Plugins) -> dict[str, str]:
    """Every enabled plugin by name, with the path of its first mention; the points' own lists before multiPoint."""
    paths: dict[str, str] = {}
    for point, listed in _multi_point_last(plugins):
        for at, ref in enumerate(listed.enabled):
            paths.setdefault(ref.name, f"{point}.enabled[{at}]")
    return paths


def _multi_point_last(plugins: Plugins) -> Iterator[tuple[str, PluginSet]]:
    yield from ((point, listed) for point, listed in plugins.each() if point != MULTI_POINT)
    yield MULTI_POINT, plugins.multi_point


def spread(plugins: Plugins, hooks_of: HooksOf) -> dict[str, tuple[str, ...]]:
    """The names of the plugins at each extension point, in the order they are asked.

    Args:
        hooks_of: the extension points a plugin of a name has hooks for.

    Raises ConfigError, with a path below `plugins`.
    """
    for point, listed in plugins.each():
        if point != MULTI_POINT:
            _check_own(point, listed, hooks_of)
    return {point: _at_point(point, plugins, hooks_of) for point in _SPREAD}


def _check_own(point: str, listed: PluginSet, hooks_of: HooksOf) -> None:
    for at, ref in enumerate(listed.enabled):
        path = f"{point}.enabled[{at}].name"
        if point not in hooks_of(ref.name):
            problem = f'plugin "{ref.name}" does not extend {go_name(point)} plugin'
            raise ConfigError(path, problem, f"it has hooks for {', '.join(hooks_of(ref.name)) or 'nothing'}")
        if ref.name in (other.name for other in listed.enabled[:at]):
            raise ConfigError(path, f'plugin "{ref.name}" already registered as "{go_name(point)}"', "name it once")


def _at_point(point: str, plugins: Plugins, hooks_of: HooksOf) -> tuple[str, ...]:
    listed = plugins.at(point)
    own = [ref.name for ref in listed.enabled]
    refused = {ref.name for ref in listed.disabled}
    common: list[str] = []
    for at, ref in enumerate(plugins.multi_point.enabled if EVERY not in refused else ()):
        if point not in hooks_of(ref.name) or ref.name in refused:
            continue
        if ref.name in common:
            problem = f'plugin "{ref.name}" already registered as "{go_name(point)}"'
            raise ConfigError(f"{MULTI_POINT}.enabled[{at}].name", problem, "name it once")
        common.append(ref.name)
    first = [name for name in own if name in common]
    return (*first, *(name for name in common if name not in own), *(name for name in own if name not in common))


def weights_of(plugins: Plugins) -> Mapping[str, int]:
    """How much each plugin's scores count: the weight at score, else the one in multiPoint; 1 where none is given."""
    weights: dict[str, int] = {}
    for ref in (*plugins.score.enabled, *plugins.multi_point.enabled):
        weights.setdefault(ref.name, ref.weight or 1)
    return weights
