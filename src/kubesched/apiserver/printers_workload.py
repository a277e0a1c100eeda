"""The rows of pods, of the nodes they run on, and of what makes them."""

from __future__ import annotations

from kubesched.api.time import parse_rfc3339
from kubesched.apiserver.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    Json,
    age,
    chosen_text,
    condition_of,
    containers_text,
    human_duration,
    labels_text,
    or_none,
    since,
)

# ── pods and nodes ──────────────────────────────────────────────────────────────────────────────────────────


def pod(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    state = _PodState(obj)
    state.read_init_containers()
    if not state.initializing or _is_true(obj, "Initialized"):
        state.read_containers()
    reason = state.reason
    if "deletionTimestamp" in obj["metadata"]:
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    restarts = str(state.restarts)
    if state.restarts and state.restarted:
        restarts = f"{state.restarts} ({since(state.restarted, now)} ago)"
    addresses = status.get("podIPs") or ()
    gates = spec.get("readinessGates") or ()
    passed = sum(_is_true(obj, gate.get("conditionType", "")) for gate in gates)
    return [
        obj["metadata"]["name"],
        f"{state.ready}/{state.total}",
        reason,
        restarts,
        age(obj, now),
        or_none(addresses[0].get("ip") if addresses else None),
        or_none(spec.get("nodeName")),
        or_none(status.get("nominatedNodeName")),
        f"{passed}/{len(gates)}" if gates else NONE,
    ]


def _is_true(obj: Json, kind: str) -> bool:
    condition = condition_of(obj, kind)
    return condition is not None and condition.get("status") == "True"


class _PodState:
    """The one word that says how a pod is doing, and the numbers beside it."""

    def __init__(self, obj: Json) -> None:
        spec, status = obj["spec"], obj.get("status") or {}
        self.obj, self.status = obj, status
        self.reason = status.get("reason") or status.get("phase") or ""
        if any(
            c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated"
            for c in status.get("conditions") or ()
        ):
            self.reason = "SchedulingGated"
        self.init = {c.get("name"): c for c in spec.get("initContainers") or ()}
        self.total = len(spec.get("containers") or ())
        self.total += sum(c.get("restartPolicy") == "Always" for c in self.init.values())
        self.ready = self.restarts = self.sidecar_restarts = 0
        self.restarted = self.sidecar_restarted = ""
        self.initializing = False

    def read_init_containers(self) -> None:
        for index, container in enumerate(self.status.get("initContainerStatuses") or ()):
            sidecar = self.init.get(container.get("name"), {}).get("restartPolicy") == "Always"
            finished = _finished(container)
            self.restarts += container.get("restartCount", 0)
            self.restarted = max(self.restarted, finished)
            if sidecar:
                self.sidecar_restarts += container.get("restartCount", 0)
                self.sidecar_restarted = max(self.sidecar_restarted, finished)
            state = container.get("state") or {}
            ended, waiting = state.get("terminated"), state.get("waiting")
            if ended is not None and not ended.get("exitCode"):
                continue
            if sidecar and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            if ended is not None:
                self.reason = f"Init:{_end_of(ended)}"
            elif waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
                self.reason = f"Init:{waiting['reason']}"
            else:
                self.reason = f"Init:{index}/{len(self.init)}"
            self.initializing = True
            return

    def read_containers(self) -> None:
        self.restarts, self.restarted = self.sidecar_restarts, self.sidecar_restarted
        running, error = False, ""
        for container in reversed(self.status.get("containerStatuses") or ()):
            self.restarts += container.get("restartCount", 0)
            self.restarted = max(self.restarted, _finished(container))
            state = container.get("state") or {}
            ended = state.get("terminated")
            if (state.get("waiting") or {}).get("reason"):
                self.reason = state["waiting"]["reason"]
            elif ended is not None:
                self.reason = _end_of(ended)
                if ended.get("exitCode"):
                    error = self.reason
            elif container.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running and _is_true(self.obj, "Ready"):
                self.reason = "Running"
            elif error:
                self.reason = error
            elif running:
                self.reason = "NotReady"


def _finished(container: Json) -> str:
    return ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""


def _end_of(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def pod_conditions(obj: Json) -> list[Json] | None:
    """Rows of finished pods carry a condition, so that kubectl can leave them out."""
    texts = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    phase = (obj.get("status") or {}).get("phase")
    if phase not in texts:
        return None
    return [{"type": "Completed", "status": "True", "reason": phase, "message": texts[phase]}]


def node(obj: Json, now: int) -> Cells:
    meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    ready = condition_of(obj, "Ready")
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if spec.get("unschedulable"):
        words.append("SchedulingDisabled")
    info = status.get("nodeInfo") or {}
    kernel = or_none(info.get("kernelVersion"), UNKNOWN)
    if info.get("architecture"):
        kernel = f"{kernel} ({info['architecture']})"
    return [
        meta["name"],
        ",".join(words),
        ",".join(_roles(meta.get("labels") or {})) or NONE,
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        or_none(info.get("osImage"), UNKNOWN),
        kernel,
        or_none(info.get("containerRuntimeVersion"), UNKNOWN),
    ]


def _roles(labels: Json) -> list[str]:
    prefix = "node-role.kubernetes.io/"
    found = {key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix}
    if labels.get("kubernetes.io/role"):
        found.add(labels["kubernetes.io/role"])
    return sorted(found)


def _address(status: Json, kind: str) -> str:
    return next((a.get("address", "") for a in status.get("addresses") or () if a.get("type") == kind), NONE)


# ── workloads ───────────────────────────────────────────────────────────────────────────────────────────────


def replicas(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    head = [
        obj["metadata"]["name"],
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
    ]
    return [*head, *containers_text(spec.get("template")), chosen_text(spec.get("selector"))]


def deployment(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    head = [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
    ]
    return [*head, *containers_text(spec.get("template")), chosen_text(spec.get("selector"))]


def stateful_set(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [obj["metadata"]["name"], ready, age(obj, now), *containers_text(spec.get("template"))]


def daemon_set(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    template = spec.get("template") or {}
    return [
        obj["metadata"]["name"],
        *(status.get(count, 0) for count in counts),
        labels_text((template.get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *containers_text(template),
        chosen_text(spec.get("selector")),
    ]


def job(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    done = status.get("succeeded", 0)
    parallel = spec.get("parallelism") or 0
    if spec.get("completions") is not None:
        completions = f"{done}/{spec['completions']}"
    else:
        completions = f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    duration = ""
    if status.get("startTime"):
        end = parse_rfc3339(status["completionTime"]) if status.get("completionTime") else now
        duration = human_duration((end - parse_rfc3339(status["startTime"])) // 1_000_000_000)
    return [
        obj["metadata"]["name"],
        _job_state(obj),
        completions,
        duration,
        age(obj, now),
        *containers_text(spec.get("template")),
        chosen_text(spec.get("selector")),
    ]


def _job_state(obj: Json) -> str:
    if _is_true(obj, "Complete"):
        return "Complete"
    if _is_true(obj, "Failed"):
        return "Failed"
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    for kind, word in (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget"), ("SuccessCriteriaMet",) * 2):
        if _is_true(obj, kind):
            return word
    return "Running"


def cron_job(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    last = status.get("lastScheduleTime")
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("schedule", ""),
        or_none(spec.get("timeZone")),
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        *containers_text(job.get("template")),
        chosen_text(job.get("selector")),
    ]


def autoscaler(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    reference = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        obj["metadata"]["name"],
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        _targets(spec, status),
        UNSET if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj, now),
    ]


def _targets(spec: Json, status: Json) -> str:
    shown = []
    for index, metric in enumerate(spec.get("metrics") or ()):
        current = (status.get("currentMetrics") or [])[index : index + 1]
        resource = metric.get("resource")
        if resource is None:
            shown.append(f"{UNKNOWN}/{UNKNOWN}")
            continue
        target = resource.get("target") or {}
        now = ((current[0].get("resource") or {}).get("current") or {}) if current else {}
        if target.get("averageUtilization") is not None:
            found = now.get("averageUtilization")
            have = UNKNOWN if found is None else f"{found}%"
            shown.append(f"{resource.get('name')}: {have}/{target['averageUtilization']}%")
        else:
            shown.append(
                f"{resource.get('name')}: {or_none(now.get('averageValue'), UNKNOWN)}/{target.get('averageValue')}"
            )
    if not shown:
        return NONE
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more
