"""What has happened as numbers: decisions, moves and laps folded into kube-scheduler's metrics.

Nothing counts for itself: every figure comes from a Record, a Decision, or a plugin's lap, so metrics cannot say
anything else than logs and explanations do.  What is there to be looked at rather than counted - queues, caches - is
asked for when somebody scrapes.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from kubesched.api.time import Instant
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.events import QueueingHint, said_by
from kubesched.framework.features import Features
from kubesched.framework.hooks import Plugin, name_of
from kubesched.framework.records import IN_FLIGHT, Record, State
from kubesched.framework.status import Status
from kubesched.telemetry.laps import POINT_NAMES, timed_hints, wrap_hooks
from kubesched.telemetry.series import ASKED, BY_NAME, HINTS, Instruments

_SECOND = 1e9
_ATTEMPTS_NAMED = 15  # an SLI's label says how many attempts, up to here
_COUNTED = frozenset({"pre_filter", "filter", "filter_all", "pre_score", "score", "score_all"})
_PER_NODE = frozenset({"filter_all", "score_all"})
_STATUS_POINTS = frozenset({"PreEnqueue", "PreFilter", "PostFilter", "Reserve", "Permit"})
_UNTIMED = frozenset({"QueueSort", "Sign", "PreBind", "Bind"})  # kept sorted, kept cheap, or measured by their records
_HOOKS_TIMED = tuple(hook for hook, point in POINT_NAMES.items() if point not in _UNTIMED)
_without_created: Callable[[], None] = disable_created_metrics
_COUNTERS = frozenset({"scheduler_queue_incoming_pods_total"})
_HINT_BOUNDS = tuple(bound * _SECOND for bound in BY_NAME[HINTS].buckets)
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Go calls them
KUBERNETES = "v1.36.4"
"""The kube-scheduler whose behaviour and metrics these are."""


class Happening(Protocol):
    """One event and what came of it."""

    @property
    def at(self) -> Instant: ...
    @property
    def records(self) -> Sequence[Record]: ...
    @property
    def decisions(self) -> Sequence[Decision]: ...


class Levels(NamedTuple):
    """What there is right now, as the scheduler itself counts it."""

    pending: Mapping[str, int] = {}
    incoming: Mapping[tuple[str, str], int] = {}
    rejected: Mapping[tuple[str, str], int] = {}
    kept: Mapping[str, int] = {}
    nodes: int = 0
    pods: int = 0
    assumed: int = 0
    position: int = 0


class _Attempts:
    """A pod's way so far."""

    __slots__ = ("asked_at", "attempts", "decision", "first", "flushed", "moved_at", "popped")

    def __init__(self) -> None:
        self.first: Instant | None = None  # when it could first have been tried
        self.popped: Instant | None = None
        self.moved_at: Instant | None = None
        self.asked_at: Instant | None = None  # when permit began to hold it
        self.attempts = 0
        self.flushed = False
        self.decision: Decision | None = None


class _Tally:
    """A histogram as cheap as can be: how many in each bucket, and nanoseconds in all."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(_HINT_BOUNDS) + 1)
        self.sum = 0


class Metrics:
    """The metrics of one scheduler.

    Args:
        disabled: names of metrics to leave out.
        version: of kubesched, for kubernetes_build_info.
    """

    def __init__(self, *, features: Features | None = None, disabled: Iterable[str] = (), version: str = "") -> None:
        _without_created()  # kube-scheduler has none of those series
        self.registry = CollectorRegistry()
        self._disabled = frozenset(disabled)
        self._on = Instruments(self.registry, self._disabled)
        self._pods: dict[str, _Attempts] = {}  # by uid, those that wait or are under way
        self._laps: dict[tuple[str, str, str], int] = {}  # (profile, plugin, point) → ns, of this event
        self._answers: dict[tuple[str, str, str], str] = {}
        self._hints: dict[tuple[str, str, str], _Tally] = {}  # by (plugin, event, answer)
        self._build_info(version)
        for name, on in _gates(features or Features()):
            self._on.gauge("kubernetes_feature_enabled", name, "").set(on)
        ProcessCollector(registry=self.registry)

    def _build_info(self, version: str) -> None:
        major, minor, _ = KUBERNETES.removeprefix("v").split(".")
        words = (major, minor, f"{KUBERNETES}+kubesched{version}", "", "", "", "", platform.python_implementation())
        machine = platform.machine().lower()
        where = f"{platform.system().lower()}/{_MACHINES.get(machine, machine)}"
        self._on.gauge("kubernetes_build_info", *words, where).set(1)

    # ── as it happens ────────────────────────────────────────────────────────────────────────────────────────

    def tell(self, moment: Happening, took: int = 0, news: str = "") -> None:
        """Fold one event in.

        Args:
            took: nanoseconds of real time spent on it.
            news: what was observed, as `NodeAdd`; empty for any other event.
        """
        if news:
            self._on.histogram("scheduler_event_handling_duration_seconds", news).observe(took / _SECOND)
        for decision in moment.decisions:
            self._decided(decision, took)
        for record in moment.records:
            self._moved(record, took)
        if self._laps:
            self._points()

    def _decided(self, decision: Decision, took: int) -> None:
        pod = self._pods.get(decision.uid)
        if pod is not None:
            pod.decision = decision
        self._on.histogram("scheduler_scheduling_algorithm_duration_seconds").observe(took / _SECOND)
        if decision.post_filter is not None:
            self._on.counter("scheduler_preemption_attempts_total").inc()
            if decision.post_filter.victims:
                self._on.histogram("scheduler_preemption_victims").observe(len(decision.post_filter.victims))

    def _moved(self, record: Record, took: int) -> None:
        pod = self._pods.get(record.uid)
        if pod is None:
            pod = self._pods[record.uid] = _Attempts()
        if record.state is State.ACTIVE and pod.first is None:
            pod.first = record.at
        if record.cause == "popped":
            pod.popped = record.at
            pod.attempts += 1
        elif record.cause in ("flushed", "flushed_ready"):
            pod.flushed = True
        elif record.cause == "wait":
            pod.asked_at = record.at
        elif record.cause == "unanswered":
            self._on.counter("kubesched_binds_unanswered_total").inc()
        self._phase(pod, record)
        if record.was in IN_FLIGHT and record.state not in IN_FLIGHT:
            self._landed(pod, record, took)
        if record.state in (State.BOUND, State.GONE):
            del self._pods[record.uid]
        pod.moved_at = record.at

    def _phase(self, pod: _Attempts, record: Record) -> None:
        """Waiting on permit, preparing and binding last from one record to the next."""
        since, result = pod.moved_at, _result(record)
        if record.was is State.WAITING and pod.asked_at is not None:
            waited = (record.at - pod.asked_at) / _SECOND
            self._on.histogram("scheduler_permit_wait_duration_seconds", result).observe(waited)
        point = {State.PREBINDING: "PreBind", State.BINDING: "Bind"}.get(record.was)
        if point is not None and since is not None and pod.decision is not None:
            name = "scheduler_framework_extension_point_duration_seconds"
            labels = (point, "Success" if result == "Success" else "Error", pod.decision.profile)
            self._on.histogram(name, *labels).observe((record.at - since) / _SECOND)

    def _landed(self, pod: _Attempts, record: Record, took: int) -> None:
        """An attempt is over."""
        decision, popped = pod.decision, pod.popped
        if decision is None or popped is None or record.cause in ("gone", "bound_elsewhere", "unreadable"):
            return  # somebody else ended it
        result = _outcome(record, decision)
        seconds = (record.at - popped + took) / _SECOND
        self._on.counter("scheduler_schedule_attempts_total", result, decision.profile).inc()
        self._on.histogram("scheduler_scheduling_attempt_duration_seconds", result, decision.profile).observe(seconds)
        if record.state is State.BOUND:
            self._bound(pod, record, took)

    def _bound(self, pod: _Attempts, record: Record, took: int) -> None:
        attempts = str(pod.attempts) if pod.attempts < _ATTEMPTS_NAMED else f"{_ATTEMPTS_NAMED}+"
        since = record.at if pod.first is None else pod.first
        seconds = (record.at - since + took) / _SECOND
        self._on.histogram("scheduler_pod_scheduling_sli_duration_seconds", attempts).observe(seconds)
        self._on.histogram("scheduler_pod_scheduling_attempts").observe(pod.attempts)
        if pod.flushed:
            self._on.counter("scheduler_pod_scheduled_after_flush_total").inc()

    # ── plugins ──────────────────────────────────────────────────────────────────────────────────────────────

    def time(self, profile: str, plugins: Iterable[Plugin]) -> None:
        """Take the time of every hook of a profile's plugins, from now on."""
        for plugin in plugins:
            wrap_hooks(plugin, self._lap(profile, name_of(plugin)), _HOOKS_TIMED)

    def _lap(self, profile: str, plugin: str) -> Callable[[str, int, tuple[Any, ...], Any], None]:
        laps, answers = self._laps, self._answers
        keys = {hook: (profile, plugin, point) for hook, point in POINT_NAMES.items()}
        def lap(hook: str, took: int, args: tuple[Any, ...], answer: Any) -> None:
            key = keys[hook]
            laps[key] = laps.get(key, 0) + took
            if hook in _COUNTED:
                asked = self._on.counter("scheduler_plugin_evaluation_total", plugin, key[2], profile)
                asked.inc(len(args[2]) if hook in _PER_NODE else 1)
            if isinstance(answer, BaseException):
                answers[key] = "Error"
            elif isinstance(answer, Status) and not answer.ok and key[2] in _STATUS_POINTS:
                answers[key] = answer.code.text

        return lap

    def time_hints(self, look: Callable[..., Any]) -> Any:
        """What asks a hint, with the time it takes taken; to be put in its place."""
        tallies = self._hints

        def lap(plugin: str, event: str, answer: QueueingHint | None, took: int) -> None:
            key = (plugin, event, said_by(answer))
            tally = tallies.get(key)
            if tally is None:
                tally = tallies[key] = _Tally()
            tally.counts[bisect_left(_HINT_BOUNDS, took)] += 1
            tally.sum += took

        return timed_hints(look, lap)

    def _points(self) -> None:
        """One observation per plugin, and one per extension point, for everything within one event."""
        whole: dict[tuple[str, str], int] = {}
        worst: dict[tuple[str, str], str] = {}
        for (profile, plugin, point), took in self._laps.items():
            status = self._answers.get((profile, plugin, point), "Success")
            labels = (plugin, point, status)
            self._on.histogram("scheduler_plugin_execution_duration_seconds", *labels).observe(took / _SECOND)
            whole[point, profile] = whole.get((point, profile), 0) + took
            if status not in ("Success", "Skip"):
                worst[point, profile] = status
        name = "scheduler_framework_extension_point_duration_seconds"
        for (point, profile), took in whole.items():
            status = worst.get((point, profile), "Success")
            self._on.histogram(name, point, status, profile).observe(took / _SECOND)
        self._laps.clear()
        self._answers.clear()

    # ── the world outside ────────────────────────────────────────────────────────────────────────────────────

    def throttled(self, method: str, host: str, seconds: float) -> None:
        """A request waited so long before it was sent."""
        self._on.histogram("rest_client_rate_limiter_duration_seconds", method, host).observe(seconds)

    def requested(self, method: str, host: str, code: str, seconds: float, sizes: tuple[int, int] = (0, 0)) -> None:
        """A request to the API server was answered with this code, or failed with `<error>`.

        Args:
            sizes: bytes there, and bytes back.
        """
        self._on.counter("rest_client_requests_total", code, method, host).inc()
        self._on.histogram("rest_client_request_duration_seconds", method, host).observe(seconds)
        there, back = sizes
        self._on.histogram("rest_client_request_size_bytes", method, host).observe(there)
        self._on.histogram("rest_client_response_size_bytes", method, host).observe(back)

    def remarked(self, about: str, what: str) -> None:
        """Something worth a word happened between us and the API server."""
        self._on.counter("kubesched_api_remarks_total", about, what).inc()

    def leads(self, lease: str, leading: bool) -> None:
        self._on.gauge("leader_election_master_status", lease).set(leading)

    def insecure(self, insecure: bool) -> None:
        self._on.gauge("kubesched_insecure_tls").set(insecure)

    def compared(self, result: str) -> None:
        """With --shadow: our decision was `same` as another scheduler's, `different`, or one of us had none."""
        self._on.counter("kubesched_shadow_decisions_total", result).inc()

    # ── when somebody looks ──────────────────────────────────────────────────────────────────────────────────

    def text(self, levels: Levels) -> bytes:
        """All metrics in Prometheus' text format."""
        asked = CollectorRegistry(auto_describe=False)
        asked.register(_Asked(levels, self._hints, self._disabled))
        return generate_latest(self.registry) + generate_latest(asked)


class _Asked(Collector):
    """What is asked for rather than counted."""

    def __init__(
        self, levels: Levels, hints: Mapping[tuple[str, str, str], _Tally], disabled: frozenset[str]
    ) -> None:
        self._levels, self._hints, self._disabled = levels, hints, disabled

    def collect(self) -> Iterator[Metric]:
        levels = self._levels
        sizes = {("nodes",): levels.nodes, ("pods",): levels.pods, ("assumed_pods",): levels.assumed}
        values: dict[str, Mapping[Any, int]] = {
            "scheduler_queue_incoming_pods_total": levels.incoming,
            "scheduler_pending_pods": {(queue,): count for queue, count in levels.pending.items()},
            "scheduler_unschedulable_pods": levels.rejected,
            "scheduler_inflight_events": {(event,): count for event, count in levels.kept.items()},
            "scheduler_cache_size": sizes,
            "kubesched_journal_position": {(): levels.position},
        }
        for name in ASKED:
            if name in self._disabled:
                continue
            if name == HINTS:
                yield self._timed(name)
            else:
                series = BY_NAME[name]
                family = CounterMetricFamily if name in _COUNTERS else GaugeMetricFamily
                metric = family(name, series.help, labels=series.labels)
                for labels, value in values[name].items():
                    metric.add_metric(labels, value)
                yield metric

    def _timed(self, name: str) -> Metric:
        series = BY_NAME[name]
        metric = HistogramMetricFamily(name, series.help, labels=series.labels)
        bounds = (*map(floatToGoString, series.buckets), "+Inf")
        for labels, tally in self._hints.items():
            buckets = list(zip(bounds, accumulate(tally.counts), strict=True))
            metric.add_metric(labels, buckets, tally.sum / _SECOND)
        return metric


def _result(record: Record) -> str:
    if record.cause in ("allowed", "permitted", "ready", "bound"):
        return "Success"
    return "Error" if record.cause in ("broke", "unanswered") else "Unschedulable"


def _outcome(record: Record, decision: Decision) -> str:
    if record.state is State.BOUND:
        return "scheduled"
    if decision.after is not None:
        return "unschedulable" if decision.after.rejected else "error"
    return "error" if decision.outcome is Outcome.ERROR else "unschedulable"


def _gates(features: Features) -> Iterator[tuple[str, bool]]:
    """Every gate with the name Kubernetes gives it."""
    initials = {"dra": "DRA", "q": "Q"}
    for field in features.__struct_fields__:
        words = field.split("_")
        yield "".join(initials.get(word, word.capitalize()) for word in words), bool(getattr(features, field))
