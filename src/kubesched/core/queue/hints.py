"""Which event wakes which pod: what the plugins registered, asked about one pod and one event.

A pod that was turned down sleeps until an event arrives that one of its rejectors registered and whose hint
does not say that it is of no use.  A plugin that does not say what it listens to is taken to listen to
everything; one that says "nothing" gets nothing, and its pods wait for the flush.

A hint that raises, or answers something that is no answer, is taken to say QUEUE: one attempt too many is a
small loss, a pod that sleeps for ever is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias

from kubesched.api.objects import KubeObject
from kubesched.core.queue.order import Complain
from kubesched.framework.errors import PluginError
from kubesched.framework.events import (
    EVERY_RESOURCE,
    NODE,
    Action,
    ClusterEvent,
    Hint,
    QueueingHint,
    resource_name,
    said_by,
)
from kubesched.framework.hooks import Plugin, name_of, points_of, reads_of
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod

# A plugin can only turn pods down, and so only be waited for, at these points.
LISTENING_POINTS = frozenset(("preEnqueue", "preFilter", "filter", "reserve", "permit"))
EXTENDER = "Extender"  # the rejector that stands for all extenders

EVERYTHING = tuple(Hint(resource, Action.ALL) for resource in EVERY_RESOURCE)
NODE_TAINTS = Hint(NODE, Action.UPDATE_NODE_TAINT)


class Strategy(Enum):
    """What an event means for a pod."""

    SKIP = "leave it asleep"
    BACKOFF = "try it again when its backoff is over"
    NOW = "try it again at once"


Look: TypeAlias = Callable[
    [str, Hint, QueuedPod, ClusterEvent, KubeObject | None, KubeObject | None], QueueingHint | None
]
"""Asks the hint of a plugin about a pod and an event, before and after; None where it fails."""


class Listener(NamedTuple):
    """A plugin and one of the events it registered."""

    plugin: str
    hint: Hint


class HintMap:
    """The listeners of every profile.

    Args:
        profiles: by scheduler name.
        complain: called with plugin, hook and problem when a hint fails.
    """

    def __init__(self, profiles: Mapping[str, Profile], complain: Complain) -> None:
        self._complain = complain
        self._listeners = {name: tuple(_listeners(profile)) for name, profile in profiles.items()}
        self._deaf = {name: _deaf(profile, self._listeners[name]) for name, profile in profiles.items()}
        self.look: Look = self._look
        """Replaced by whoever wants to be told of every hint that is asked, and asks it in turn."""
        self._matching: dict[tuple[str, ClusterEvent], tuple[Listener, ...]] = {}
        self._plugins: dict[ClusterEvent, tuple[str, ...]] = {}
        self._alarms: dict[tuple[str, frozenset[str]], str | None] = {}
        self.asked: dict[tuple[str, str, str], int] = {}
        """(plugin, event label, answer) → how often a hint answered so; `Error` where it failed."""

    def plugins(self, event: ClusterEvent) -> tuple[str, ...]:
        """The plugins, of any profile, that registered an event.  Nobody: it can help no pod."""
        found = self._plugins.get(event)
        if found is None:
            everyone = (listener for profile in self._listeners for listener in self._matches(profile, event))
            found = self._plugins[event] = tuple(dict.fromkeys(listener.plugin for listener in everyone))
        return found

    def opens(self, gate: str, event: ClusterEvent) -> bool:
        """Whether the plugin that holds pods back wants to be asked again after this event."""
        return event.wildcard or gate in self.plugins(event)

    def ask(self, pod: QueuedPod, event: ClusterEvent, old: KubeObject | None, new: KubeObject | None) -> Strategy:
        """What this event means for a pod that was turned down."""
        if not pod.rejectors:
            return Strategy.BACKOFF
        if event.wildcard:
            return Strategy.BACKOFF if new is None or new.uid == pod.uid else Strategy.SKIP
        profile = pod.info.pod.spec.scheduler_name
        if profile not in self._listeners:
            return Strategy.BACKOFF  # nobody could ever wake it
        strategy = Strategy.SKIP
        for plugin, hint in self._matches(profile, event):
            if plugin not in pod.rejectors or self._skips(plugin, hint, pod, event, old, new):
                continue
            if plugin in pod.pending:
                return Strategy.NOW
            if not pod.pending:
                return Strategy.BACKOFF
            strategy = Strategy.BACKOFF  # unless the plugin it is pending on says more
        return strategy

    def alarm(self, pod: QueuedPod) -> str | None:
        """What may wake a sleeping pod: the events that its gate, or else its rejectors, registered.

        None for a pod that nothing wakes though nobody wanted it so; a plugin may say that no event can help.
        """
        key = pod.info.pod.spec.scheduler_name, frozenset((pod.gate,)) if pod.gate else pod.rejectors
        if key not in self._alarms:
            self._alarms[key] = self._what_wakes(*key)
        return self._alarms[key]

    def _what_wakes(self, profile: str, who: frozenset[str]) -> str | None:
        listeners = self._listeners.get(profile, ())
        labels = dict.fromkeys(label for plugin, hint in listeners if plugin in who for label in _labels(hint))
        if labels:
            return ", ".join(labels)
        if who and who <= self._deaf.get(profile, frozenset()):
            return f"only the flush: no event can help, say {', '.join(sorted(who))}"
        return None

    def _matches(self, profile: str, event: ClusterEvent) -> tuple[Listener, ...]:
        key = (profile, event)
        found = self._matching.get(key)
        if found is None:
            found = tuple(listener for listener in self._listeners[profile] if listener.hint.matches(event))
            self._matching[key] = found
        return found

    def _skips(
        self,
        plugin: str,
        hint: Hint,
        pod: QueuedPod,
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
    ) -> bool:
        answer = self.look(plugin, hint, pod, event, old, new)
        key = (plugin, event.label, said_by(answer))
        self.asked[key] = self.asked.get(key, 0) + 1
        return answer is QueueingHint.SKIP

    def _look(
        self,
        plugin: str,
        hint: Hint,
        pod: QueuedPod,
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
    ) -> QueueingHint | None:
        if hint.look is None:
            return QueueingHint.QUEUE
        try:
            return QueueingHint(hint.look(pod.info, old, new))
        except Exception as error:  # fail open: see the head of this file
            self._complain(plugin, f"hint for {event.label}", f"raised {error!r}")
            return None


def _listeners(profile: Profile) -> Iterator[Listener]:
    """What the plugins of a profile registered, in order, and what Kubernetes adds."""
    if profile.extenders:
        yield from (Listener(EXTENDER, hint) for hint in EVERYTHING)
    for plugin in profile.plugins:
        if LISTENING_POINTS.isdisjoint(points_of(plugin)):
            continue
        hints = _registered(plugin)
        yield from (Listener(name_of(plugin), hint) for hint in hints)
        # Kept from kube-scheduler: a new node arrives tainted and is untainted later.  Whoever looks at new nodes
        # must look again then, for another plugin may have stopped the first look (buildQueueingHintMap).
        about_nodes = [hint.action for hint in hints if hint.resource == NODE]
        if any(action & Action.ADD for action in about_nodes):
            if not any(action & Action.UPDATE_NODE_TAINT for action in about_nodes):
                yield Listener(name_of(plugin), NODE_TAINTS)


def _registered(plugin: Plugin) -> tuple[Hint, ...]:
    register: Callable[[], Iterable[Hint]] | None = getattr(plugin, "events_to_register", None)
    if register is None:
        own = (resource_name(kind) for kind in reads_of(plugin))
        return (*EVERYTHING, *(Hint(resource, Action.ALL) for resource in own if resource not in EVERY_RESOURCE))
    try:
        hints = tuple(register())
    except Exception as error:
        raise PluginError(name_of(plugin), "events_to_register", f"raised {error!r}") from error
    for hint in hints:
        if not isinstance(hint, Hint):
            raise PluginError(name_of(plugin), "events_to_register", f"returned {hint!r}, which is not a Hint")
    return hints


def _deaf(profile: Profile, listeners: Iterable[Listener]) -> frozenset[str]:
    """The plugins that registered nothing, on purpose."""
    said = {name_of(plugin) for plugin in profile.plugins if hasattr(plugin, "events_to_register")}
    return frozenset(said.difference(listener.plugin for listener in listeners))


def _labels(hint: Hint) -> Iterator[str]:
    """`NodeAdd`, `NodeUpdateNodeTaint` for a hint about both; `Node` for one about whatever happens to nodes."""
    if hint.action == Action.ALL:
        yield hint.resource
        return
    rest = hint.action
    for action in (Action.ADD, Action.DELETE, Action.UPDATE):
        if rest & action == action:
            yield ClusterEvent(hint.resource, action).label
            rest &= ~action
    for single in Action:
        if rest & single and single not in (Action.UPDATE, Action.ALL):
            yield ClusterEvent(hint.resource, single).label
