"""What a running scheduler answers when it is asked: made from what the core remembers, between two of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kubesched.api.time import format_micro
from kubesched.cluster.podinfo import PodInfo
from kubesched.config.document import document
from kubesched.config.schema import Configuration
from kubesched.core.core import Core
from kubesched.core.queue import PriorityQueue
from kubesched.explain.fields import fields
from kubesched.explain.text import told, why_not
from kubesched.framework.plain import plain
from kubesched.framework.queued import QueuedPod
from kubesched.framework.records import Record, State
from kubesched.telemetry.metrics import Levels, Metrics
from kubesched.telemetry.words import STATE_WORDS, sentence
from kubesched.wire.client import LEASE

Json = dict[str, Any]
Checks = Callable[[], Mapping[str, str]]
"""Further health checks: name → what is wrong, empty where nothing is."""

_LISTED_AT_MOST = 1000  # pods of the queue
_MILLI = 1000
_BYTES = ("memory", "ephemeral-storage", "storage")
_PLACES = {
    State.GATED: "gated",
    State.ACTIVE: "active",
    State.BACKOFF: "backoff",
    State.PARKED: "unschedulable",
}


def _nothing() -> Mapping[str, str]:
    return {}


class CoreAnswers:
    """The answers of one core.

    Args:
        election: what is wrong with holding the lease, for /healthz and /readyz.
        lease: its name; empty where nobody is elected.
        leads: whether this scheduler may work now.
    """

    def __init__(
        self,
        core: Core,
        metrics: Metrics,
        configuration: Configuration,
        *,
        election: Checks = _nothing,
        lease: str = "",
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._core, self._metrics, self._election, self._leads = core, metrics, election, leads
        self._lease = lease
        self.settings = configuration

    # ── health and metrics ───────────────────────────────────────────────────────────────────────────────────

    def checks(self, path: str) -> Mapping[str, str]:
        core = self._core
        if path == "/livez":
            return {"ping": ""}
        if path == "/healthz":
            return {"ping": "", **self._election()}
        waiting = ", ".join(sorted(core.unsynced - {LEASE}))  # whoever waits for the lease is ready to take it
        return {
            **self._election(),
            "shutdown": "process is shutting down" if core.draining else "",
            "sched-handler-sync": f"not everything has been seen yet: {waiting}" if waiting else "",
        }

    def levels(self) -> Levels:
        core, queue = self._core, self._core.queue
        placed = core.mirror.placed.values()
        return Levels(
            pending=queue.counts(),
            incoming=queue.incoming if isinstance(queue, PriorityQueue) else {},
            rejected=queue.rejected() if isinstance(queue, PriorityQueue) else {},
            kept=queue.in_flight.counts() if isinstance(queue, PriorityQueue) else {},
            nodes=len(core.mirror.table.row_of),
            pods=len(placed),
            assumed=sum(tracked.assumed for tracked in placed),
            position=core.position,
        )

    def metrics(self) -> bytes:
        if self._lease:
            self._metrics.leads(self._lease, self._leads())
        return self._metrics.text(self.levels())

    def resources(self) -> bytes:
        """What every unfinished pod asks for; nothing unless this scheduler leads."""
        name = "kube_pod_resource_request"
        lines = [f"# HELP {name} Resources that pods ask for, by pod.", f"# TYPE {name} gauge"]
        if self._leads():
            placed = {tracked.info.key: tracked for tracked in self._core.mirror.placed.values()}
            for key, pod in self._core.mirror.pods.items():
                tracked = placed.get(key)
                info, node = (PodInfo(pod), "") if tracked is None else (tracked.info, tracked.node)
                lines += _requests(name, info, node)
        return ("\n".join(lines) + "\n").encode()

    def configuration(self) -> Json:
        return document(self.settings, self._core.profiles)

    # ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────

    def explain(self, pod: str, node: str = "") -> Json | None:
        core = self._core
        key = pod if "/" in pod else f"default/{pod}"
        state, decision = core.state(key), core.why(key)
        if state is None and decision is None:
            return None
        account: Json = {"pod": key, "story": [_move(record) for record in core.story(key)]}
        if state is not None:
            account.update(state=state.value, says=STATE_WORDS[state])
        uid = core.life.uid_of(key)
        if uid is not None:
            account.update(self._waiting(uid))
        if decision is not None:
            account["attempt"] = {
                "number": decision.number,
                "at": format_micro(decision.at),
                "outcome": decision.outcome.value,
                "nodes": decision.node_count,
                "message": decision.message,
                "decision": fields(decision),
            }
        now = list(self._now(key, node))
        if now:
            account["now"] = now
        return account

    def _now(self, key: str, node: str) -> Iterator[str]:
        """What an attempt would find at this moment, every plugin asked about every node; why not this node."""
        core, pod = self._core, self._core.mirror.pods.get(key)
        if pod is None or pod.spec.node_name or pod.spec.scheduler_name not in core.profiles:
            return
        profile = core.profiles[pod.spec.scheduler_name]
        if profile.extenders:
            return  # they would have to be asked, and would not know that it is only a question
        decision, info = core.what_if(pod, exhaustive=True), PodInfo(pod)
        if not node:
            yield from told(decision, info, core.nodes, profile)
        elif core.nodes.named(node) is None:
            yield f"there is no node {plain(node)}"
        else:
            yield from why_not(decision, info, core.nodes, node)

    def _waiting(self, uid: str) -> Json:
        queue = self._core.queue
        found = queue.find(uid) if isinstance(queue, PriorityQueue) else None
        return {} if found is None else self._queued(found)

    def _queued(self, pod: QueuedPod) -> Json:
        state = self._core.life.state(pod.uid)
        account: Json = {
            "pod": pod.info.key,
            "place": _PLACES.get(state, "") if state is not None else "",
            "priority": pod.priority,
            "attempts": pod.attempts,
            "since": format_micro(pod.added),
            "wakes": self._core.queue.alarm(pod.uid) or "",
        }
        if pod.rejectors:
            account["rejectors"] = sorted(pod.rejectors)
        if pod.gate:
            account["gate"] = pod.gate
        return account

    def queue(self) -> Json:
        core, queue = self._core, self._core.queue
        queued = list(queue) if isinstance(queue, PriorityQueue) else []
        account: Json = {
            "counts": dict(queue.counts()),
            "pods": [self._queued(pod) for pod in queued[:_LISTED_AT_MOST]],
            "inFlight": [
                {"pod": flight.info.key, "node": flight.node, "state": state.value}
                for flight in core.flights.values()
                if (state := core.life.state(flight.info.uid)) is not None
            ],
            "nominated": {node: [info.key for info in pods] for node, pods in queue.nominated().items()},
            "unreadable": {f"{kind} {key}": found.error for (kind, key), found in core.mirror.invalid.items()},
            "leads": self._leads(),
        }
        if len(queued) > _LISTED_AT_MOST:
            account["leftOut"] = len(queued) - _LISTED_AT_MOST
        if core.unsynced:
            account["waitsFor"] = sorted(core.unsynced)
        if core.draining:
            account["draining"] = True
        return account


def _move(record: Record) -> Json:
    return {
        "at": format_micro(record.at),
        "state": record.state.value,
        "cause": record.cause,
        "says": sentence(record),
    }


def _requests(name: str, info: PodInfo, node: str) -> Iterable[str]:
    spec = info.pod.spec
    priority = "" if spec.priority is None else spec.priority
    who = f'namespace="{info.namespace}",pod="{info.name}",node="{node}",scheduler="{spec.scheduler_name}"'
    for resource, amount in info.requests.items():
        if amount:
            unit = "cores" if resource == "cpu" else "bytes" if _in_bytes(resource) else "integer"
            value = amount / _MILLI if resource == "cpu" else float(amount)
            yield f'{name}{{{who},priority="{priority}",resource="{resource}",unit="{unit}"}} {value!r}'


def _in_bytes(resource: str) -> bool:
    return resource in _BYTES or resource.startswith("hugepages-")
