"""Timing hooks from outside: the core has no clock, so whoever wants to know wraps the hooks of its plugins.

A hook is wrapped on the plugin's instance; whoever calls it is timed, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter_ns
from types import MappingProxyType
from typing import Any

from kubesched.framework.events import ClusterEvent, QueueingHint
from kubesched.framework.hooks import HELPERS, POINTS, Plugin

HOOKS = (*(method.name for methods in POINTS.values() for method in methods), *(helper.name for helper in HELPERS))

POINT_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **{method.name: f"{point[0].upper()}{point[1:]}" for point, methods in POINTS.items() for method in methods},
        "add_pod": "PreFilterExtensionAddPod",
        "remove_pod": "PreFilterExtensionRemovePod",
        "spare": "Filter",
        "normalize_score": "ScoreExtensionNormalize",
        "unreserve": "Unreserve",
        "sign_pod": "Sign",
        "alike": "Sign",
        "context": "Sign",
        "outlook": "Sign",
        "refilter": "PreFilter",
        "rescore": "PreScore",
        "by_value": "ScoreExtensionNormalize",
    }
)
"""By hook, the extension point as metrics name it."""

Lap = Callable[[str, int, tuple[Any, ...], Any], None]
"""Told after each call: the hook, how many nanoseconds it took, its arguments, and its answer or exception."""


def wrap_hooks(plugin: Plugin, lap: Lap, hooks: Iterable[str] = HOOKS) -> None:
    """Have every call of these hooks of a plugin told to `lap`."""
    for hook in hooks:
        if callable(getattr(plugin, hook, None)):
            setattr(plugin, hook, _timed(getattr(plugin, hook), hook, lap))


def timed_hints(look: Callable[..., Any], lap: Callable[[str, str, QueueingHint | None, int], None]) -> Any:
    """How hints are asked, with every answer told to `lap`: the plugin, the event, the answer, and nanoseconds."""

    def timed(plugin: str, hint: object, pod: object, event: ClusterEvent, *objects: object) -> QueueingHint | None:
        start = perf_counter_ns()
        answer: QueueingHint | None = look(plugin, hint, pod, event, *objects)
        lap(plugin, event.label, answer, perf_counter_ns() - start)
        return answer

    return timed


def _timed(called: Callable[..., Any], hook: str, lap: Lap) -> Callable[..., Any]:
    def timed(*args: Any, **named: Any) -> Any:
        start = perf_counter_ns()
        try:
            answer = called(*args, **named)
        except BaseException as problem:
            lap(hook, perf_counter_ns() - start, args, problem)
            raise
        lap(hook, perf_counter_ns() - start, args, answer)
        return answer

    return timed
