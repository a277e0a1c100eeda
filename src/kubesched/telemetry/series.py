"""Every metric, with kube-scheduler's names, labels and buckets: one table, and what is made of it.

Dashboards and alerts written for kube-scheduler find here what they look for.  No label ever holds a name that a user
of the cluster chose: labels come from the configuration, from Kubernetes' own lists, or from the address of the API
server, so the number of series has a bound that does not grow with the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Series(NamedTuple):
    """One metric: its full name, what it is, what is counted, and by which labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds that grow by a factor, as Go's ExponentialBuckets multiplies them."""
    bounds = [first]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


_ATTEMPT = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)
_SIZE = (64.0, 256.0, 512.0, *(1024.0 * 4**power for power in range(8)))
_REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

TABLE: tuple[Series, ...] = (
    Series(
        "scheduler_schedule_attempts_total",
        "counter",
        "Attempts to schedule a pod, by result; `error` is a problem of the scheduler, not of the pod.",
        ("result", "profile"),
    ),
    Series(
        "scheduler_scheduling_attempt_duration_seconds",
        "histogram",
        "How long an attempt took, from taking the pod to its binding or its refusal.",
        ("result", "profile"),
        _ATTEMPT,
    ),
    Series(
        "scheduler_scheduling_algorithm_duration_seconds",
        "histogram",
        "How long it took to choose a node.",
        (),
        _ATTEMPT,
    ),
    Series(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "histogram",
        "How long a pod took from the queue to its binding, over all its attempts.",
        ("attempts",),
        exponential(0.01, 2, 20),
    ),
    Series(
        "scheduler_pod_scheduling_attempts",
        "histogram",
        "How many attempts a pod needed until it was bound.",
        (),
        exponential(1, 2, 5),
    ),
    Series(
        "scheduler_framework_extension_point_duration_seconds",
        "histogram",
        "How long all plugins of an extension point took in one attempt.",
        ("extension_point", "status", "profile"),
        _POINT,
    ),
    Series(
        "scheduler_plugin_execution_duration_seconds",
        "histogram",
        "How long one plugin took at an extension point in one attempt.",
        ("plugin", "extension_point", "status"),
        _PLUGIN,
    ),
    Series(
        "scheduler_plugin_evaluation_total",
        "counter",
        "How often a plugin was asked; at Filter and Score once per node.",
        ("plugin", "extension_point", "profile"),
    ),
    Series(
        "scheduler_queueing_hint_execution_duration_seconds",
        "histogram",
        "How long a plugin took to say whether an event may help a waiting pod, and what it said.",
        ("plugin", "event", "hint"),
        _PLUGIN,
    ),
    Series(
        "scheduler_queue_incoming_pods_total",
        "counter",
        "Pods that came into a queue, by what brought them.",
        ("queue", "event"),
    ),
    Series("scheduler_pending_pods", "gauge", "Pods that wait, by the queue they are in.", ("queue",)),
    Series(
        "scheduler_unschedulable_pods",
        "gauge",
        "Waiting pods, by each plugin that turned them down at their last attempt.",
        ("plugin", "profile"),
    ),
    Series(
        "scheduler_inflight_events",
        "gauge",
        "Events remembered for pods that are being tried; `PodPopped` counts those pods.",
        ("event",),
    ),
    Series(
        "scheduler_event_handling_duration_seconds",
        "histogram",
        "How long it took to take in one piece of news.",
        ("event",),
        _POINT,
    ),
    Series(
        "scheduler_permit_wait_duration_seconds",
        "histogram",
        "How long pods waited on permit, by how that ended.",
        ("result",),
        _ATTEMPT,
    ),
    Series("scheduler_preemption_attempts_total", "counter", "Attempts to make room for a pod by evicting others."),
    Series(
        "scheduler_preemption_victims",
        "histogram",
        "Pods evicted for one pod.",
        (),
        exponential(1, 2, 7),
    ),
    Series("scheduler_cache_size", "gauge", "Nodes, pods and assumed pods that are known.", ("type",)),
    Series(
        "scheduler_pod_scheduled_after_flush_total",
        "counter",
        "Pods bound after the flush alone had woken them: each slept through what should have woken it.",
    ),
    Series(
        "rest_client_requests_total",
        "counter",
        "Requests to the API server, by status code, method and host.",
        ("code", "method", "host"),
    ),
    Series(
        "rest_client_request_duration_seconds",
        "histogram",
        "How long a request to the API server took, by verb and host.",
        ("verb", "host"),
        _REQUEST,
    ),
    Series(
        "rest_client_rate_limiter_duration_seconds",
        "histogram",
        "How long a write waited until it was its turn, by verb and host: for the rate, and for a place.",
        ("verb", "host"),
        _REQUEST,
    ),
    Series(
        "rest_client_request_size_bytes",
        "histogram",
        "How large requests to the API server were, by verb and host.",
        ("verb", "host"),
        _SIZE,
    ),
    Series(
        "rest_client_response_size_bytes",
        "histogram",
        "How large its answers were, by verb and host; a watch counts as its beginning.",
        ("verb", "host"),
        _SIZE,
    ),
    Series(
        "leader_election_master_status",
        "gauge",
        "Whether this process leads, by the name of the lease: 1 the leader, 0 not.",
        ("name",),
    ),
    Series(
        "kubernetes_build_info",
        "gauge",
        "What runs here; always 1.",
        (
            *("major", "minor", "git_version", "git_commit", "git_tree_state", "build_date"),
            *("go_version", "compiler", "platform"),
        ),
    ),
    Series("kubernetes_feature_enabled", "gauge", "Whether a feature gate is on.", ("name", "stage")),
    Series(
        "kubesched_binds_unanswered_total",
        "counter",
        "Bindings whose outcome was unknown; their room was kept until it was known.",
    ),
    Series(
        "kubesched_journal_position",
        "gauge",
        "How many events the scheduler has been told.",
    ),
    Series(
        "kubesched_api_remarks_total",
        "counter",
        "What happened on the way to and from the API server: relists, retries, duplicates.",
        ("about", "what"),
    ),
    Series("kubesched_insecure_tls", "gauge", "1 while the API server's certificate is not checked."),
    Series(
        "kubesched_shadow_decisions_total",
        "counter",
        "With --shadow: decisions compared with the binding another scheduler made.",
        ("result",),
    ),
)
"""Names without the prefix `scheduler_`, `rest_client_`, `leader_election_` or `kubernetes_` are our own."""

_BOARDS = "pods alike share their answers always, not as an opportunity: nothing is hinted or stored"
_WRITES = "every write is made beside the scheduling; rest_client_requests_total counts them all"
_GROUPS = "gates that kubesched does not have"

NOT_HERE: Mapping[str, str] = MappingProxyType(
    {
        "scheduler_async_api_call_execution_duration_seconds": _WRITES,
        "scheduler_async_api_call_execution_total": _WRITES,
        "scheduler_pending_async_api_calls": _WRITES,
        "scheduler_batch_attempts_total": _BOARDS,
        "scheduler_batch_cache_flushed_total": _BOARDS,
        "scheduler_get_node_hint_duration_seconds": _BOARDS,
        "scheduler_store_schedule_results_duration_seconds": _BOARDS,
        "scheduler_dra_bindingconditions_allocations_total": _GROUPS,
        "scheduler_dra_bindingconditions_wait_duration_seconds": _GROUPS,
        "scheduler_podgroup_schedule_attempts_total": _GROUPS,
        "scheduler_podgroup_scheduling_algorithm_duration_seconds": _GROUPS,
        "scheduler_podgroup_scheduling_attempt_duration_seconds": _GROUPS,
        "scheduler_resourceclaim_creates_total": _GROUPS,
        "scheduler_goroutines": "there are none",
        "scheduler_preemption_goroutines_duration_seconds": "there are none",
        "scheduler_preemption_goroutines_execution_total": "there are none",
        "rest_client_exec_plugin_certificate_rotation_age": "credentials of programs are tokens here",
        "rest_client_exec_plugin_ttl_seconds": "credentials of programs are tokens here",
        "rest_client_transport_cache_entries": "there is one connection pool, and no cache of them",
        "rest_client_transport_cert_rotation_gc_calls_total": "there is one connection pool, and no cache of them",
        "rest_client_transport_create_calls_total": "there is one connection pool, and no cache of them",
    }
)
"""What kube-scheduler v1.36 counts of scheduling and of its requests and we do not, and why nothing is lost."""

BY_NAME: Mapping[str, Series] = MappingProxyType({series.name: series for series in TABLE})

# What is asked of the scheduler when somebody looks, rather than counted as it happens.
HINTS = "scheduler_queueing_hint_execution_duration_seconds"  # counted by hand: there may be thousands in one event
ASKED = (
    HINTS,
    *("scheduler_queue_incoming_pods_total", "scheduler_pending_pods", "scheduler_unschedulable_pods"),
    *("scheduler_inflight_events", "scheduler_cache_size", "kubesched_journal_position"),
)

_MAKERS = MappingProxyType({"counter": Counter, "gauge": Gauge, "histogram": Histogram})


class Instruments:
    """The metrics of one scheduler, in a registry of its own; `of(name, *labels)` is one series."""

    def __init__(self, registry: CollectorRegistry, leave_out: Iterable[str] = ()) -> None:
        skipped = {*ASKED, *leave_out}
        self._made = {series.name: _make(series, registry) for series in TABLE if series.name not in skipped}
        self._bound: dict[tuple[str, ...], Any] = {}

    def counter(self, name: str, *labels: str) -> Counter:
        return cast(Counter, self._of(name, labels))

    def gauge(self, name: str, *labels: str) -> Gauge:
        return cast(Gauge, self._of(name, labels))

    def histogram(self, name: str, *labels: str) -> Histogram:
        return cast(Histogram, self._of(name, labels))

    def _of(self, name: str, labels: tuple[str, ...]) -> Any:
        """One series; bound children are kept, since looking them up costs as much as counting."""
        key = (name, *labels)
        found = self._bound.get(key)
        if found is None:
            made = self._made.get(name) or _make(BY_NAME[name], None)  # one that was disabled counts for nobody
            found = self._bound[key] = made.labels(*labels) if labels else made
        return found


def _make(series: Series, registry: CollectorRegistry | None) -> Any:
    extra: dict[str, Any] = {"buckets": series.buckets} if series.buckets else {}
    return _MAKERS[series.kind](series.name, series.help, series.labels, registry=registry, **extra)
