"""What a difference in the cluster means: for the queue, for flights, for pods that wait for room.

The table, as in kube-scheduler's event handlers: a pod on a node changes what others may use; a pod without one
is ours to place, if its schedulerName says so; a pod in flight may come back as its own echo, bound by someone
else, or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from kubesched.api.objects import Invalid, KubeObject, Node, Pod
from kubesched.cluster.mirror import Delta
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE,
    Action,
    ClusterEvent,
    node_changes,
    pod_changes,
    resource_name,
)
from kubesched.framework.records import QUEUED, State

if TYPE_CHECKING:
    from kubesched.core.core import Core
    from kubesched.core.flight import Flight

_PAST_RECALL = (State.BINDING, State.AMBIGUOUS)  # a bind is out, and its answer has to be waited for


def observe(core: Core, obj: KubeObject, gone: bool) -> None:
    """Fold in what the API server told."""
    about_pod = isinstance(obj, Pod) or (isinstance(obj, Invalid) and obj.of == "Pod")
    unread = core.mirror.invalid.get(("Pod", obj.key)) if about_pod else None
    deltas = core.mirror.observe(obj, gone)
    if unread is not None and not _is_there(core, unread):
        _unread_is_gone(core, unread)
    for delta in deltas:
        if isinstance(delta.old or delta.new, Pod):
            _pod(core, delta)
        elif isinstance(delta.old or delta.new, Node):
            _node(core, delta)
        else:
            _other(core, delta)
    problem = core.mirror.invalid.get(("Pod", obj.key)) if about_pod else None
    if problem is not None and not _told(problem, unread):
        _unreadable(core, problem)


def knows(core: Core, obj: KubeObject) -> bool:
    """Whether this very object is in view, and stays there.

    An answer about any other has been overtaken: the watch was faster with its end, and will tell of a namesake.  And
    the end of a pod is for the watch to tell: what it says from before would bring the pod back.
    """
    if isinstance(obj, Pod):
        pod = core.mirror.pods.get(obj.key)
        return pod is not None and pod.uid == obj.uid and not obj.finished
    seen = core.mirror.objects.get(type(obj), obj.key)
    return seen is not None and seen.uid == obj.uid


# ── nodes and everything else ────────────────────────────────────────────────────────────────────────────────


def _node(core: Core, delta: Delta) -> None:
    old, new, _ = delta
    if isinstance(old, Node) and isinstance(new, Node):
        for event in node_changes(old, new):
            core.queue.notify(event, old, new, core.now)
    else:
        core.queue.notify(ClusterEvent(NODE, _action(delta)), old, new, core.now)
    if isinstance(old, Node) and new is None:
        core.evictions.node_gone(old.name)


def _other(core: Core, delta: Delta) -> None:
    obj = delta.new or delta.old
    assert obj is not None
    core.queue.notify(ClusterEvent(resource_name(type(obj)), _action(delta)), delta.old, delta.new, core.now)


def _action(delta: Delta) -> Action:
    return Action.ADD if delta.old is None else Action.DELETE if delta.new is None else Action.UPDATE


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _pod(core: Core, delta: Delta) -> None:
    old, new, info = delta
    assert old is None or isinstance(old, Pod)
    assert new is None or isinstance(new, Pod)
    if new is None:
        assert old is not None
        _pod_gone(core, old)
    elif new.spec.node_name:
        assert info is not None
        if old is None or not old.spec.node_name:
            _pod_assigned(core, new, info)
        else:
            for event in pod_changes(old, new):
                core.queue.notify(event, old, new, core.now)
    elif new.spec.scheduler_name in core.profiles:
        assert info is not None
        _pod_waiting(core, old, new, info)


def _pod_assigned(core: Core, pod: Pod, info: PodInfo) -> None:
    """A pod is on a node: our own echo, somebody else's work, or news of old."""
    flight = core.flights.get(pod.uid)
    state = core.life.state(pod.uid)
    if flight is not None:
        _flight_assigned(core, flight, pod, state)
    elif state in QUEUED or state in (State.INVALID, State.TRYING):
        promised = core.queue.promised(pod.uid)
        core.queue.delete(pod.uid, core.now)
        core.queue.done(pod.uid)
        core.life.move(info, "bound_elsewhere", pod.spec.node_name)
        if promised and promised != pod.spec.node_name:
            tell_of_released_promise(core, pod, promised)
        core.evictions.needless(pod.uid)
    core.failing.forget(pod.uid)
    core.queue.notify(ASSIGNED_POD_ADD, None, pod, core.now)


def _flight_assigned(core: Core, flight: Flight, pod: Pod, state: State | None) -> None:
    if pod.spec.node_name == flight.node and state in (State.BINDING, State.AMBIGUOUS):
        core.flying.confirmed(flight)
        return
    assumed = flight.node
    core.flying.abort(flight)
    core.queue.done(pod.uid)
    core.life.move(flight.info, "bound_elsewhere", pod.spec.node_name)
    if assumed != pod.spec.node_name:
        core.queue.notify(ASSIGNED_POD_DELETE, flight.assumed, None, core.now)


def _pod_waiting(core: Core, old: Pod | None, pod: Pod, info: PodInfo) -> None:
    """A pod of ours without a node."""
    flight = core.flights.get(pod.uid)
    state = core.life.state(pod.uid)
    if flight is not None:
        begins_to_go = pod.terminating and (old is None or not old.terminating)
        if begins_to_go and state not in _PAST_RECALL:
            _call_back(core, flight, "it is being deleted")
        else:  # should it come back, then as it is by now
            core.queue.update(pod if old is None else old, info, (), core.now)
        return
    if state is None or state in (State.INVALID, State.NEW):
        if state is State.INVALID:
            core.life.move(info, "readable")
        core.queue.add(info, core.now)
    elif old is not None and state not in (State.GONE, State.BOUND):  # news from before its bind are no news
        core.queue.update(old, info, tuple(pod_changes(old, pod)), core.now)
        promising = core.failing.promising(pod.uid)
        if promising is not None:
            core.queue.nominate(info, promising)
        promised = old.status.nominated_node_name
        if promised and promised != pod.status.nominated_node_name:
            tell_of_released_promise(core, old, promised)


def end_promised(core: Core, uid: str) -> None:
    """The API server has agreed to end a pod, and the watch has not told yet."""
    flight = core.flights.get(uid)
    if flight is not None and core.life.state(uid) not in _PAST_RECALL:
        _call_back(core, flight, "it is being deleted")


def _pod_gone(core: Core, pod: Pod) -> None:
    flight = core.flights.get(pod.uid)
    state = core.life.state(pod.uid)
    if flight is not None:
        _call_back(core, flight, "it was deleted")
    elif state is not None and state not in (State.BOUND, State.GONE):
        promised = core.queue.promised(pod.uid) or pod.status.nominated_node_name
        core.queue.delete(pod.uid, core.now)
        core.queue.done(pod.uid)
        core.life.move(PodInfo(pod), "gone")
        if promised:
            tell_of_released_promise(core, pod, promised)
    held = core.mirror.placed.get(pod.uid)  # bound, and gone before we could see it on its node
    if held is not None and core.mirror.forget(pod.uid):
        pod = structs.replace(pod, spec=structs.replace(pod.spec, node_name=held.node))
    if pod.spec.node_name:
        core.queue.notify(ASSIGNED_POD_DELETE, pod, None, core.now)
    core.evictions.gone(pod.uid)
    _forget(core, pod)


def _call_back(core: Core, flight: Flight, why: str) -> None:
    """A pod goes away in flight: take everything back and tell those who wait for room."""
    core.flying.abort(flight)
    core.queue.done(flight.info.uid)
    core.life.move(flight.info, "gone", why)
    core.queue.notify(ASSIGNED_POD_DELETE, flight.assumed, None, core.now)


def tell_of_released_promise(core: Core, pod: Pod, node: str) -> None:
    """Room that was promised to a pod may serve others of the same or lower priority.

    Not kept from kube-scheduler: it tells nobody when the pod is placed, or bound by somebody else, on another node.
    """
    if pod.spec.node_name or pod.status.nominated_node_name != node:
        promised = structs.replace(pod.status, nominated_node_name=node)
        pod = structs.replace(pod, spec=structs.replace(pod.spec, node_name=""), status=promised)
    core.queue.notify(
        ASSIGNED_POD_DELETE, pod, None, core.now, lambda other: other.priority <= pod.priority and other.uid != pod.uid
    )


def _forget(core: Core, pod: Pod) -> None:
    core.failing.forget(pod.uid)
    core.decisions.drop(pod.key)
    core.life.drop(pod.uid, pod.key)


# ── pods nobody can read ─────────────────────────────────────────────────────────────────────────────────────


def _is_there(core: Core, obj: Invalid) -> bool:
    """Whether a pod that could not be read is still there, readable or not."""
    now, seen = core.mirror.invalid.get(("Pod", obj.key)), core.mirror.pods.get(obj.key)
    return obj.uid in (other.uid for other in (now, seen) if other is not None)


def _told(obj: Invalid, before: Invalid | None) -> bool:
    """Whether all there is to say of a pod has been said: that was this one, and what is wrong is what was."""
    return before is not None and (obj.uid, obj.error, obj.scheduler) == (before.uid, before.error, before.scheduler)


def _unreadable(core: Core, obj: Invalid) -> None:
    """A pod that became unreadable is not tried; that it exists, and why it waits, stays visible."""
    shell = PodInfo(Pod(metadata=obj.metadata))
    state = core.life.state(shell.uid)
    if state in (State.BOUND, State.GONE):
        return
    flight = core.flights.get(shell.uid)
    if flight is not None:
        core.flying.abort(flight)
        core.queue.notify(ASSIGNED_POD_DELETE, flight.assumed, None, core.now)
    core.queue.delete(shell.uid, core.now)
    core.queue.done(shell.uid)
    core.life.move(shell, "unreadable", obj.error)
    if obj.scheduler in core.profiles:
        core.failing.unreadable(shell, core.profiles[obj.scheduler], obj.error)


def _unread_is_gone(core: Core, obj: Invalid) -> None:
    shell = PodInfo(Pod(metadata=obj.metadata))
    if core.life.state(shell.uid) is State.INVALID:
        core.life.move(shell, "gone")
        core.evictions.gone(shell.uid)
        _forget(core, shell.pod)
