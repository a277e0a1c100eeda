"""SchedulingGates: a pod waits outside the queue until somebody opens its gates."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.objects import KubeObject
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.events import POD, Action, Hint, QueueingHint
from kubesched.framework.status import SUCCESS, Status, unresolvable


class SchedulingGates:
    """Hold a pod back while spec.schedulingGates names any gate.

    What it does:  keeps the pod out of the queue; nothing is tried, and no attempt is counted.
    Answers:       UnschedulableAndUnresolvable, with the names of the gates in the order listed.
    Wakes on:      the pod's last gate is taken away.
    Tiers:         pre_enqueue only; no node is looked at.
    Same as:       kube-scheduler SchedulingGates, v1.36.
    """

    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, self._after_gates_opened),)

    def _after_gates_opened(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        return QueueingHint.QUEUE if new is not None and new.uid == pod.uid else QueueingHint.SKIP
