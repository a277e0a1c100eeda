"""The pre_enqueue plugins: whether a pod may be tried at all.

A gated pod is asked about first by the plugin that holds it back, which most likely still does.  A plugin that
raises holds the pod back as well, with the error for a reason: it could not say that the pod may pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kubesched.cluster.podinfo import PodInfo
from kubesched.core.queue.order import Complain
from kubesched.framework.hooks import name_of
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod
from kubesched.framework.status import Status


class Gate(NamedTuple):
    plugin: str
    ask: Callable[[PodInfo], Status]


class Gates:
    """The pre_enqueue plugins of every profile.

    Args:
        profiles: by scheduler name.
        complain: called with plugin, hook and problem when one fails.
    """

    def __init__(self, profiles: Mapping[str, Profile], complain: Complain) -> None:
        self._complain = complain
        self._gates = {
            name: tuple(Gate(name_of(plugin), plugin.pre_enqueue) for plugin in profile.pre_enqueue)
            for name, profile in profiles.items()
        }

    def hold(self, pod: QueuedPod) -> str:
        """Why a pod must stay out, or "" when it may come in.  Marks the pod with the plugin that holds it."""
        gates = self._gates.get(pod.info.pod.spec.scheduler_name, ())
        if pod.gate and len(gates) > 1:
            gates = tuple(sorted(gates, key=lambda gate: gate.plugin != pod.gate))
        for gate in gates:
            reason = self._ask(gate, pod.info)
            if reason:
                pod.gate = gate.plugin
                pod.rejectors |= {gate.plugin}
                return f"{gate.plugin}: {reason}"
        pod.gate = ""
        return ""

    def _ask(self, gate: Gate, info: PodInfo) -> str:
        try:
            status = gate.ask(info)
            return "" if status.ok else status.message or status.code.text
        except Exception as error:  # a plugin's mistake costs this pod, not the queue
            problem = f"raised {error!r}"
            self._complain(gate.plugin, "pre_enqueue", problem)
            return problem
