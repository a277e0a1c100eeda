"""Who comes first: the queue_sort of the first profile, as a key to sort pods by.

All profiles share one queue, so there is one order.  Without a queue_sort plugin it is Kubernetes' own: the
higher priority first, then whoever has waited longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kubesched.framework.hooks import Plugin, name_of
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod

Order: TypeAlias = Callable[[QueuedPod], Any]
Complain: TypeAlias = Callable[[str, str, str], None]
"""Called with a plugin, its hook, and what went wrong."""

_GOOD, _BROKEN = 0, 1


def order_of(profile: Profile | None, complain: Complain) -> Order:
    """The order of a profile's queue_sort plugin.  A pod whose key cannot be worked out comes last."""
    plugin = profile.queue_sort[0] if profile is not None and profile.queue_sort else None
    if plugin is None:
        return by_priority
    if hasattr(plugin, "key"):
        return _by_key(plugin, complain)
    return lambda pod: _ByLess(plugin, pod, complain)


def by_priority(pod: QueuedPod) -> tuple[int, int]:
    """Kubernetes' own order."""
    return -pod.priority, pod.added


def _by_key(plugin: Plugin, complain: Complain) -> Order:
    def key(pod: QueuedPod) -> tuple[Any, ...]:
        try:
            return _GOOD, plugin.key(pod)
        except Exception as error:  # a plugin's mistake costs its pod's place, not the queue
            complain(name_of(plugin), "key", f"raised {error!r}")
            return (_BROKEN,)

    return key


class _ByLess:
    """A pod that compares as its queue_sort plugin says; by arrival where it does not say or cannot."""

    __slots__ = ("_complain", "_plugin", "_pod")

    def __init__(self, plugin: Plugin, pod: QueuedPod, complain: Complain) -> None:
        self._plugin = plugin
        self._pod = pod
        self._complain = complain

    def __lt__(self, other: _ByLess) -> bool:
        try:
            if self._plugin.less(self._pod, other._pod):
                return True
            if self._plugin.less(other._pod, self._pod):
                return False
        except Exception as error:  # as above
            self._complain(name_of(self._plugin), "less", f"raised {error!r}")
        return self._pod.seq < other._pod.seq
