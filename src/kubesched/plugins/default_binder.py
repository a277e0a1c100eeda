"""DefaultBinder: tell the API server where the pod goes."""

from __future__ import annotations

from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.status import SUCCESS, error
from kubesched.framework.steps import BindPod, Steps


class DefaultBinder:
    """Bind a pod to its node through the pod's binding subresource.

    What it does:  asks the core to bind; the core fences the request with the pod's identity and version.
    Answers:       Error, in the API server's words, when it says no.
    Wakes on:      nothing; a pod whose binding failed is tried again after a while.
    Tiers:         bind only.
    Same as:       kube-scheduler DefaultBinder, v1.36.
    """

    name = "DefaultBinder"

    def bind(self, cycle: Cycle, pod: PodInfo, node: str) -> Steps:
        answer = yield BindPod(node)
        if answer.failure is None:
            return SUCCESS
        return error(answer.failure.message or answer.failure.reason)
