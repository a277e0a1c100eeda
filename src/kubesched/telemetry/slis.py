"""How often it was well: the results of health checks as kube-scheduler counts them, for /metrics/slis."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


class Slis:
    """What was found whenever somebody asked for a health page."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("name", "type")
        self._now = Gauge("kubernetes_healthcheck", "Whether a check passed, last.", labels, registry=self._registry)
        self._counts = Counter(
            "kubernetes_healthchecks_total", "Results of checks.", (*labels, "status"), registry=self._registry
        )

    def observe(self, page: str, check: str, *, well: bool) -> None:
        """A check of a page, `healthz` or another, was made."""
        self._now.labels(check, page).set(well)
        self._counts.labels(check, page, "success" if well else "error").inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)
