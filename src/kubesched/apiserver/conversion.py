"""Kinds that are served in two versions and stored in one.

An Event is the same thing in core and in events.k8s.io under other names; an autoscaler of autoscaling/v1 is one of
v2 that only looks at the CPU.  Each conversion makes a new object and leaves the one it was given alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kubesched.apiserver import cleaning
from kubesched.apiserver.kinds import BUILT_IN, Conversion, Registry

Json = dict[str, Any]

# core name → name in events.k8s.io; fields with the same name are not listed
_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: core for core, new in _EVENT_NAMES.items()}


def _shaped(value: Json, shape: str) -> Json:
    """Add what Go always prints, as if the object had been read from the wire."""
    head = {"kind": value.pop("kind"), "apiVersion": value.pop("apiVersion")}
    return {**head, **cleaning.struct_cleaner(shape)(value, [])}


def event_to_core(obj: Json) -> Json:
    found = {_CORE_NAMES.get(key, key): value for key, value in obj.items()}
    return _shaped({**found, "apiVersion": "v1"}, "core.Event")


def event_from_core(obj: Json) -> Json:
    found = {_EVENT_NAMES.get(key, key): value for key, value in obj.items()}
    return _shaped({**found, "apiVersion": "events.k8s.io/v1"}, "events.Event")


_CPU_TARGET = "targetCPUUtilizationPercentage"


def _is_cpu(metric: Json) -> bool:
    resource = metric.get("resource") or {}
    target = resource.get("target") or {}
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and target.get("type") == "Utilization"


def autoscaler_to_v2(obj: Json) -> Json:
    spec = dict(obj.get("spec") or {})
    percent = spec.pop(_CPU_TARGET, None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    status = dict(obj.get("status") or {})
    percent = status.pop("currentCPUUtilizationPercentage", None)
    if percent is not None:
        current = {"name": "cpu", "current": {"averageUtilization": percent}}
        status["currentMetrics"] = [{"type": "Resource", "resource": current}]
    return {**obj, "apiVersion": "autoscaling/v2", "spec": spec, "status": status}


def autoscaler_from_v2(obj: Json) -> Json:
    spec = {k: v for k, v in (obj.get("spec") or {}).items() if k not in ("metrics", "behavior")}
    for metric in (obj.get("spec") or {}).get("metrics") or ():
        if _is_cpu(metric):
            spec[_CPU_TARGET] = metric["resource"]["target"].get("averageUtilization")
    status = {k: v for k, v in (obj.get("status") or {}).items() if k not in ("currentMetrics", "conditions")}
    status.setdefault("currentReplicas", 0)
    return {**obj, "apiVersion": "autoscaling/v1", "spec": spec, "status": status}


_CONVERSIONS = {
    ("events.k8s.io", "v1", "events"): Conversion("events", event_to_core, event_from_core),
    ("autoscaling", "v1", "horizontalpodautoscalers"): Conversion(
        "autoscaling/horizontalpodautoscalers", autoscaler_to_v2, autoscaler_from_v2
    ),
}


def built_in_registry() -> Registry:
    """All built-in rows, with the conversions of those that are not stored as they are served."""
    rows = []
    for row in BUILT_IN:
        conversion = _CONVERSIONS.get((row.group, row.version, row.plural))
        rows.append(row if conversion is None else replace(row, conversion=conversion))
    return Registry(rows)
