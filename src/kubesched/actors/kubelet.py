"""The kubelets of nodes that exist only here: pods start, run, end, and die when told to.

    bound            Running and Ready after `Stages.start`
    kubesched/run-for: 30s       Succeeded after that long (pods of a Job: after `Stages.job`)
    kubesched/exit-code: "1"     Failed instead
    deleted          gone after `Stages.stop` or kubesched/stop-after, at the latest when its grace is over

A node with the annotation kubesched/kubelet: stopped has a kubelet that does nothing any more: its pods stay as they
are, and so do those that are being deleted, as on a machine that lost power.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from msgspec import Struct

from kubesched.actors.conditions import condition, with_conditions
from kubesched.actors.controller import Controller
from kubesched.actors.messages import Effect, Seen, change, delete
from kubesched.actors.pods import phase_of
from kubesched.actors.view import Key, View, controller_of, key_of
from kubesched.api.time import Duration, Instant, format_rfc3339, milliseconds, parse_duration, parse_rfc3339, seconds

Json = dict[str, Any]

RUN_FOR, EXIT_CODE, STOP_AFTER = "kubesched/run-for", "kubesched/exit-code", "kubesched/stop-after"
KUBELET = "kubesched/kubelet"
STOPPED = "stopped"
POD_NETWORK = 10 << 24 | 244 << 16


class Stages(Struct, frozen=True, kw_only=True):
    """How long things take on a node.

    Args:
        start: from bound to running.
        stop: from the request to end to the end.
        job: how long a pod of a Job runs that does not say.
    """

    start: Duration = milliseconds(100)
    stop: Duration = milliseconds(100)
    job: Duration = seconds(1)


class Kubelets(Controller):
    """Every node's kubelet, as far as pods are concerned."""

    watches: ClassVar[tuple[str, ...]] = ("nodes", "pods")

    def __init__(self, view: View | None = None, stages: Stages | None = None) -> None:
        super().__init__(view)
        self.stages = stages or Stages()
        self._bound: dict[str, Instant] = {}  # uid → when its kubelet first saw it
        self._running: dict[str, Instant] = {}
        self._asked: dict[str, Instant] = {}  # uid → when it was first told to end
        self._addresses = 1

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource == "nodes":
            before = seen.old is None or is_stopped(seen.old)
            if seen.new is None or before == is_stopped(seen.new):
                return []
            return [key_of("pods", pod) for pod in self.view.pods_on(seen.new["metadata"]["name"])]
        if seen.new is None:
            for memory in (self._bound, self._running, self._asked):
                memory.pop(seen.last["metadata"]["uid"], None)
            return []
        return [key_of("pods", seen.new)] if (seen.new.get("spec") or {}).get("nodeName") else []

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        pod = self.view.at(key)
        node = None if pod is None else self.view.get("nodes", "", pod["spec"].get("nodeName") or "")
        if pod is None or node is None or is_stopped(node):
            return
        if "deletionTimestamp" in pod["metadata"]:
            yield from self._end(key, pod, now)
        elif phase_of(pod) == "Pending":
            yield from self._start(key, pod, node, now)
        elif phase_of(pod) == "Running":
            yield from self._run(key, pod, now)

    def _end(self, key: Key, pod: Json, now: Instant) -> Iterator[Effect]:
        meta = pod["metadata"]
        if phase_of(pod) == "Running":
            asked = self._asked.setdefault(meta["uid"], now)
            needs = _duration_of(pod, STOP_AFTER, self.stages.stop)
            due = min(Instant(asked + needs), parse_rfc3339(meta["deletionTimestamp"]))
            if now < due:
                self.wake(key, due)
                return
        yield delete("pods", pod, grace=0)

    def _start(self, key: Key, pod: Json, node: Json, now: Instant) -> Iterator[Effect]:
        due = Instant(self._bound.setdefault(pod["metadata"]["uid"], now) + self.stages.start)
        if now < due:
            self.wake(key, due)
            return
        self._running[pod["metadata"]["uid"]] = now
        yield change("pods", pod, {"status": self._started(pod, node, now)}, subresource="status")

    def _started(self, pod: Json, node: Json, now: Instant) -> Json:
        stamp = format_rfc3339(now)
        spec = pod["spec"]
        names = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
        status: Json = {
            "phase": "Running",
            "startTime": stamp,
            "conditions": with_conditions(pod, (condition(n, "True", now, lastProbeTime=None) for n in names)),
            "containerStatuses": [_running(c, stamp) for c in spec.get("containers") or ()],
        }
        if spec.get("initContainers"):
            status["initContainerStatuses"] = [_ended(_running(c, stamp), 0, stamp) for c in spec["initContainers"]]
        host = next((a["address"] for a in (node.get("status") or {}).get("addresses") or ()), "")
        if host:
            status |= {"hostIP": host, "hostIPs": [{"ip": host}]}
        address = host if spec.get("hostNetwork") and host else self._address()
        return status | {"podIP": address, "podIPs": [{"ip": address}]}

    def _address(self) -> str:
        self._addresses += 1
        return dotted(POD_NETWORK + self._addresses)

    def _run(self, key: Key, pod: Json, now: Instant) -> Iterator[Effect]:
        life = self._lifetime(pod)
        if life is None:
            return
        started = (pod.get("status") or {}).get("startTime")
        since = self._running.get(pod["metadata"]["uid"]) or (parse_rfc3339(started) if started else now)
        due = Instant(since + life)
        if now < due:
            self.wake(key, due)
            return
        code = _exit_code(pod)
        stamp = format_rfc3339(now)
        reason = "PodCompleted" if code == 0 else "PodFailed"
        gone = (condition(n, "False", now, reason, lastProbeTime=None) for n in ("Ready", "ContainersReady"))
        status: Json = {
            "phase": "Succeeded" if code == 0 else "Failed",
            "conditions": with_conditions(pod, gone),
            "containerStatuses": [_ended(c, code, stamp) for c in pod["status"].get("containerStatuses") or ()],
        }
        yield change("pods", pod, {"status": status}, subresource="status")

    def _lifetime(self, pod: Json) -> Duration | None:
        owner = controller_of(pod)
        usual = self.stages.job if owner is not None and owner.get("kind") == "Job" else None
        return _duration_of(pod, RUN_FOR, usual)


def is_stopped(node: Json) -> bool:
    return (node["metadata"].get("annotations") or {}).get(KUBELET) == STOPPED


def dotted(address: int) -> str:
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))


D = TypeVar("D", Duration, Duration | None)


def _duration_of(pod: Json, annotation: str, otherwise: D) -> Duration | D:
    """A duration from an annotation; what cannot be read counts as not given."""
    text = (pod["metadata"].get("annotations") or {}).get(annotation)
    try:
        return max(parse_duration(text), Duration(0)) if isinstance(text, str) else otherwise
    except ValueError:
        return otherwise


def _exit_code(pod: Json) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(EXIT_CODE, "0"))
    except ValueError:
        return 0


def _running(container: Json, stamp: str) -> Json:
    image = container.get("image") or ""
    return {
        "name": container.get("name") or "",
        "state": {"running": {"startedAt": stamp}},
        "lastState": {},
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": image,
        "imageID": f"played/{image}",
        "containerID": "",
    }


def _ended(status: Json, code: int, stamp: str) -> Json:
    began = ((status.get("state") or {}).get("running") or {}).get("startedAt", stamp)
    reason = "Completed" if code == 0 else "Error"
    state = {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": stamp}
    return {**status, "state": {"terminated": state}, "ready": False, "started": False}
