"""QOSSort: among pods of equal priority, those who ask most firmly are tried first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from kubesched.api.objects import Pod, ResourceList, ResourceRequirements
from kubesched.api.quantity import parse_milli
from kubesched.cluster.podinfo import CPU, MEMORY
from kubesched.framework.queued import QueuedPod

QOSClass: TypeAlias = Literal["Guaranteed", "Burstable", "BestEffort"]

_RANK: dict[QOSClass, int] = {"Guaranteed": 0, "Burstable": 1, "BestEffort": 2}
_COUNTED = (CPU, MEMORY)


class QOSSort:
    """Try pods by priority, then by quality of service, then by how long they have been in the queue.

    What it does:  orders the queue by spec.priority; among equals Guaranteed before Burstable before BestEffort;
                   among those by when the pod came in or came back.
    Answers:       an order, never a no.
    Wakes on:      nothing.
    Tiers:         queue_sort only. It takes the place of PrioritySort: a configuration enables one of them.
    """

    name = "QOSSort"

    def key(self, pod: QueuedPod) -> tuple[int, int, int]:
        return -pod.priority, _RANK[qos_class(pod.info.pod)], pod.added


def qos_class(pod: Pod) -> QOSClass:
    """What Kubernetes makes of what the containers of a pod request and are limited to."""
    whole = pod.spec.resources
    if whole is not None and (whole.requests or whole.limits):
        parts: Iterable[ResourceRequirements] = (whole,)
    else:
        parts = [container.resources for container in (*pod.spec.containers, *pod.spec.init_containers)]
    asked, limited, firm = False, False, True
    for part in parts:
        requests, limits = _counted(part.requests), _counted(part.limits)
        asked, limited = asked or bool(requests), limited or bool(limits)
        same = all(limits.get(name) == amount for name, amount in requests.items())
        firm = firm and len(limits) == len(_COUNTED) and same
    if not asked and not limited:
        return "BestEffort"
    return "Guaranteed" if firm else "Burstable"


def _counted(amounts: ResourceList) -> dict[str, int]:
    milli = {name: parse_milli(amounts[name]) for name in _COUNTED if name in amounts}
    return {name: amount for name, amount in milli.items() if amount > 0}
