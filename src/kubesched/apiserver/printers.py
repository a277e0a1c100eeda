"""The rows of `kubectl get`: what each kind shows of itself, column for column as kube-apiserver prints it.

The server, not kubectl, decides what stands in a table.  COLUMNS holds one line a kind: `!` marks the name column,
`#` an integer, `?` a boolean, `@` a time, `+` what only `-o wide` shows.  A row function turns an object into its
cells; kinds without one show a name and an age.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubesched.api.time import parse_rfc3339

Json = dict[str, Any]
Cells = list[Any]
Row = Callable[[Json, int], Cells]

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def selector_text(selector: Any) -> str:
    """A selector as Scale shows it: the string form."""
    if isinstance(selector, str):
        return selector
    if not isinstance(selector, dict):
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or ():
        key, values = one.get("key", ""), ",".join(sorted(one.get("values") or ()))
        shown = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }.get(one.get("operator", ""), "")
        parts.append((key, shown))
    return ",".join(text for _, text in sorted(parts))


def human_duration(seconds: int) -> str:
    """A span of time as kubectl users know it: 85s, 3m20s, 47h, 5d3h, 2y10d."""
    if seconds < 0:
        return "0s" if seconds >= -1 else "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    minutes, hours, days = seconds // _MINUTE, seconds // _HOUR, seconds // _DAY
    if minutes < 10:
        rest = seconds % _MINUTE
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        rest = hours % 24
        return f"{days}d{rest}h" if rest else f"{days}d"
    if days < 365 * 2:
        return f"{days}d"
    years, rest = days // 365, days % 365
    if days < 365 * 8:
        return f"{years}y{rest}d" if rest else f"{years}y"
    return f"{years}y"


def since(timestamp: str | None, now: int) -> str:
    """The age of something that happened at a timestamp."""
    if not timestamp:
        return UNKNOWN
    return human_duration((now - parse_rfc3339(timestamp)) // 1_000_000_000)


def age(obj: Json, now: int) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def _or(value: Any, default: str = NONE) -> Any:
    return default if value in (None, "") else value


def _labels(found: Json | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def _selector(selector: Json | None) -> str:
    return selector_text(selector) or NONE


def _containers(template: Json | None) -> tuple[str, str]:
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    names = ",".join(c.get("name", "") for c in containers)
    return names, ",".join(c.get("image", "") for c in containers)


def _condition(obj: Json, kind: str) -> Json | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), None)


# ── pods and nodes ──────────────────────────────────────────────────────────────────────────────────────────


def _pod(obj: Json, now: int) -> Cells:
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
        _or(addresses[0].get("ip") if addresses else None),
        _or(spec.get("nodeName")),
        _or(status.get("nominatedNodeName")),
        f"{passed}/{len(gates)}" if gates else NONE,
    ]


def _is_true(obj: Json, kind: str) -> bool:
    condition = _condition(obj, kind)
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


def _node(obj: Json, now: int) -> Cells:
    meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or {}
    ready = _condition(obj, "Ready")
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if spec.get("unschedulable"):
        words.append("SchedulingDisabled")
    info = status.get("nodeInfo") or {}
    kernel = _or(info.get("kernelVersion"), UNKNOWN)
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
        _or(info.get("osImage"), UNKNOWN),
        kernel,
        _or(info.get("containerRuntimeVersion"), UNKNOWN),
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


def _replicas(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    head = [
        obj["metadata"]["name"],
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
    ]
    return [*head, *_containers(spec.get("template")), _selector(spec.get("selector"))]


def _deployment(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    head = [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
    ]
    return [*head, *_containers(spec.get("template")), _selector(spec.get("selector"))]


def _stateful_set(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [obj["metadata"]["name"], ready, age(obj, now), *_containers(spec.get("template"))]


def _daemon_set(obj: Json, now: int) -> Cells:
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
        _labels((template.get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *_containers(template),
        _selector(spec.get("selector")),
    ]


def _job(obj: Json, now: int) -> Cells:
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
        *_containers(spec.get("template")),
        _selector(spec.get("selector")),
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


def _cron_job(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    last = status.get("lastScheduleTime")
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("schedule", ""),
        _or(spec.get("timeZone")),
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        *_containers(job.get("template")),
        _selector(job.get("selector")),
    ]


def _autoscaler(obj: Json, now: int) -> Cells:
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
                f"{resource.get('name')}: {_or(now.get('averageValue'), UNKNOWN)}/{target.get('averageValue')}"
            )
    if not shown:
        return NONE
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more


# ── the rest ────────────────────────────────────────────────────────────────────────────────────────────────


def _service(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    kind = spec.get("type", "ClusterIP")
    ports = []
    for port in spec.get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    external = ",".join(spec.get("externalIPs") or ()) or NONE
    if kind == "ExternalName":
        external = spec.get("externalName", "")
    elif kind == "LoadBalancer":
        ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        given = [one.get("ip") or one.get("hostname") or "" for one in ingress]
        external = ",".join([*given, *(spec.get("externalIPs") or ())]) or "<pending>"
    return [
        obj["metadata"]["name"],
        kind,
        _or(spec.get("clusterIP")),
        external,
        ",".join(ports) or NONE,
        age(obj, now),
        _labels(spec.get("selector")),
    ]


def _event(obj: Json, now: int) -> Cells:
    """Either shape of an event."""
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    when = obj.get("eventTime")
    series = obj.get("series") or {}
    count = series.get("count") or obj.get("count") or obj.get("deprecatedCount") or 1
    first_seen = since(first or when, now)
    last_seen = since(series.get("lastObservedTime") or last or when or first, now)
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    host = source.get("host") or obj.get("reportingInstance") or ""
    name = about.get("name", "")
    return [
        last_seen,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{about.get('kind', '').lower()}/{name}" if name else about.get("kind", "").lower(),
        about.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        (obj.get("message") or obj.get("note") or "").strip(),
        first_seen,
        str(count),
        obj["metadata"]["name"],
    ]


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _access(modes: Iterable[str] | None) -> str:
    found = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def _volume(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    claim = spec.get("claimRef")
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", "")
    return [
        obj["metadata"]["name"],
        (spec.get("capacity") or {}).get("storage", ""),
        _access(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        _or(spec.get("volumeAttributesClassName"), UNSET),
        status.get("reason", ""),
        age(obj, now),
        _or(spec.get("volumeMode"), UNSET),
    ]


def _claim(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    bound = bool(spec.get("volumeName"))
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", "")
    return [
        obj["metadata"]["name"],
        phase,
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "") if bound else "",
        _access(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        _or(spec.get("volumeAttributesClassName"), UNSET),
        age(obj, now),
        _or(spec.get("volumeMode"), UNSET),
    ]


def _storage_class(obj: Json, now: int) -> Cells:
    meta = obj["metadata"]
    default = (meta.get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class") == "true"
    return [
        f"{meta['name']} (default)" if default else meta["name"],
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _csi_driver(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    audiences = [token.get("audience", "") for token in spec.get("tokenRequests") or ()]
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join(audiences) or UNSET,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now),
    ]


def _attachment(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    volume = (spec.get("source") or {}).get("persistentVolumeName", "")
    attached = (obj.get("status") or {}).get("attached", False)
    return [
        obj["metadata"]["name"],
        spec.get("attacher", ""),
        volume,
        spec.get("nodeName", ""),
        attached,
        age(obj, now),
    ]


def _budget(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        obj["metadata"]["name"],
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        status.get("disruptionsAllowed", 0),
        age(obj, now),
    ]


def _quota(obj: Json, now: int) -> Cells:
    status = obj.get("status") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name, hard in sorted((status.get("hard") or {}).items()):
        used = (status.get("used") or {}).get(name, "0")
        (limits if name.startswith("limits.") else requests).append(f"{name}: {used}/{hard}")
    return [obj["metadata"]["name"], ", ".join(requests), ", ".join(limits), age(obj, now)]


def _resource_claim(obj: Json, now: int) -> Cells:
    status = obj.get("status") or {}
    states = []
    if "deletionTimestamp" in obj["metadata"]:
        states.append("deleted")
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif "deletionTimestamp" not in obj["metadata"]:
        states.append("pending")
    return [obj["metadata"]["name"], ",".join(states), age(obj, now)]


def _resource_slice(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    node = NONE if spec.get("nodeName") is None else spec["nodeName"]
    if spec.get("allNodes"):
        node = "<all>"
    pool = (spec.get("pool") or {}).get("name", "")
    return [obj["metadata"]["name"], node, spec.get("driver", ""), pool, age(obj, now)]


def _pod_group(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    policy = "Gang" if (spec.get("schedulingPolicy") or {}).get("gang") is not None else "Basic"
    workload = ((spec.get("podGroupTemplateRef") or {}).get("workload") or {}).get("workloadName")
    condition = _condition(obj, "PodGroupScheduled")
    state = "Pending"
    if condition is not None:
        state = "Scheduled" if condition.get("status") == "True" else condition.get("reason") or "Pending"
    return [obj["metadata"]["name"], policy, _or(workload), state, age(obj, now)]


def _endpoint_slice(obj: Json, now: int) -> Cells:
    ports = [str(port.get("port", "*")) for port in obj.get("ports") or ()]
    addresses = [address for one in obj.get("endpoints") or () for address in one.get("addresses") or ()]
    return [
        obj["metadata"]["name"],
        obj.get("addressType", ""),
        _some(ports) or UNSET,
        _some(addresses) or UNSET,
        age(obj, now),
    ]


def _endpoints(obj: Json, now: int) -> Cells:
    found = []
    for subset in obj.get("subsets") or ():
        for address in subset.get("addresses") or ():
            ports = subset.get("ports") or ()
            found += [f"{address.get('ip')}:{port.get('port')}" for port in ports] if ports else [address.get("ip", "")]
    return [obj["metadata"]["name"], _some(found) or NONE, age(obj, now)]


def _some(values: list[str]) -> str:
    more = f" + {len(values) - 3} more..." if len(values) > 3 else ""
    return ",".join(values[:3]) + more


def _request(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    conditions = [c.get("type", "") for c in status.get("conditions") or ()]
    words = [word for word in ("Approved", "Denied", "Failed") if word in conditions]
    if status.get("certificate"):
        words.append("Issued")
    expires = spec.get("expirationSeconds")
    return [
        obj["metadata"]["name"],
        age(obj, now),
        _or(spec.get("signerName")),
        spec.get("username", ""),
        NONE if expires is None else human_duration(expires),
        ",".join(words) or "Pending",
    ]


def _lease(obj: Json, now: int) -> Cells:
    return [obj["metadata"]["name"], (obj.get("spec") or {}).get("holderIdentity", ""), age(obj, now)]


def _named(*paths: str) -> Row:
    """Name, some fields as they are, age."""
    steps = [path.split(".") for path in paths]

    def row(obj: Json, now: int) -> Cells:
        values: Cells = []
        for path in steps:
            value: Any = obj
            for step in path:
                value = value.get(step) if isinstance(value, dict) else None
            values.append("" if value is None else value)
        return [obj["metadata"]["name"], *values, age(obj, now)]

    return row


def _counted(field: str, *more: str) -> Row:
    def row(obj: Json, now: int) -> Cells:
        shown = [obj.get(name, "") for name in more]
        count = sum(len(obj.get(name) or ()) for name in field.split("+"))
        return [obj["metadata"]["name"], *shown, count, age(obj, now)]

    return row


def _created(obj: Json, now: int) -> Cells:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp")]


def _priority_class(obj: Json, now: int) -> Cells:
    policy = obj.get("preemptionPolicy", "")
    return [obj["metadata"]["name"], obj.get("value", 0), bool(obj.get("globalDefault")), age(obj, now), policy]


def _network_policy(obj: Json, now: int) -> Cells:
    return [obj["metadata"]["name"], _selector(obj["spec"].get("podSelector")), age(obj, now)]


def _csi_node(obj: Json, now: int) -> Cells:
    return [obj["metadata"]["name"], len(obj["spec"].get("drivers") or ()), age(obj, now)]


def _role(obj: Json, now: int) -> Cells:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp")]


def _role_binding(obj: Json, now: int) -> Cells:
    reference = obj.get("roleRef") or {}
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for one in obj.get("subjects") or ():
        name = one.get("name", "")
        if one.get("kind") == "ServiceAccount":
            name = f"{one.get('namespace', '')}/{name}"
        subjects.setdefault(one.get("kind", ""), []).append(name)
    wide = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [obj["metadata"]["name"], f"{reference.get('kind')}/{reference.get('name')}", age(obj, now), *wide]


def _ingress(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    given = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    addresses = [one.get("ip") or one.get("hostname") or "" for one in given]
    ports = "80, 443" if spec.get("tls") else "80"
    return [
        obj["metadata"]["name"],
        _or(spec.get("ingressClassName")),
        _some(hosts) or "*",
        ",".join(addresses),
        ports,
        age(obj, now),
    ]


def _ingress_class(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    parameters = spec.get("parameters")
    shown = (
        f"{parameters.get('kind')}.{parameters.get('apiGroup', '')}/{parameters.get('name')}" if parameters else NONE
    )
    return [obj["metadata"]["name"], spec.get("controller", ""), shown, age(obj, now)]


def _controller_revision(obj: Json, now: int) -> Cells:
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next((o for o in owners if o.get("controller")), None)
    shown = (
        f"{owner.get('kind', '').lower()}.{owner.get('apiVersion', '').partition('/')[0]}/{owner.get('name')}"
        if owner
        else NONE
    )
    return [obj["metadata"]["name"], shown, obj.get("revision", 0), age(obj, now)]


def _pod_template(obj: Json, now: int) -> Cells:
    template = obj.get("template") or {}
    return [obj["metadata"]["name"], *_containers(template), _labels((template.get("metadata") or {}).get("labels"))]


_NODE_COLUMNS = (
    "!Name, Status, Roles, Age, Version, +Internal-IP, +External-IP, +OS-Image, +Kernel-Version, +Container-Runtime"
)
_VOLUME_COLUMNS = (
    "!Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, "
    "Age, +VolumeMode"
)
_DAEMON_SET_COLUMNS = (
    "!Name, #Desired, #Current, #Ready, #Up-to-date, #Available, Node Selector, Age, +Containers, +Images, +Selector"
)
_AGED = "!Name, Age"
_DATED = "!Name, @Created At"

COLUMNS: dict[str, tuple[str, Row]] = {
    "pods": (
        "!Name, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates",
        _pod,
    ),
    "nodes": (
        _NODE_COLUMNS,
        _node,
    ),
    "namespaces": ("!Name, Status, Age", _named("status.phase")),
    "configmaps": ("!Name, Data, Age", _counted("data+binaryData")),
    "secrets": ("!Name, Type, Data, Age", _counted("data", "type")),
    "serviceaccounts": (_AGED, _named()),
    "services": ("!Name, Type, Cluster-IP, External-IP, Port(s), Age, +Selector", _service),
    "endpoints": ("!Name, Endpoints, Age", _endpoints),
    "events": (
        "Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +!Name",
        _event,
    ),
    "persistentvolumes": (
        _VOLUME_COLUMNS,
        _volume,
    ),
    "persistentvolumeclaims": (
        "!Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, +VolumeMode",
        _claim,
    ),
    "resourcequotas": ("!Name, Request, Limit, Age", _quota),
    "limitranges": (_DATED, _created),
    "podtemplates": ("!Name, Containers, Images, Pod Labels", _pod_template),
    "replicationcontrollers": ("!Name, #Desired, #Current, #Ready, Age, +Containers, +Images, +Selector", _replicas),
    "apps/replicasets": ("!Name, #Desired, #Current, #Ready, Age, +Containers, +Images, +Selector", _replicas),
    "apps/deployments": ("!Name, Ready, Up-to-date, Available, Age, +Containers, +Images, +Selector", _deployment),
    "apps/statefulsets": ("!Name, Ready, Age, +Containers, +Images", _stateful_set),
    "apps/daemonsets": (
        _DAEMON_SET_COLUMNS,
        _daemon_set,
    ),
    "apps/controllerrevisions": ("!Name, Controller, Revision, Age", _controller_revision),
    "batch/jobs": ("!Name, Status, Completions, Duration, Age, +Containers, +Images, +Selector", _job),
    "batch/cronjobs": (
        "!Name, Schedule, Timezone, ?Suspend, #Active, Last Schedule, Age, +Containers, +Images, +Selector",
        _cron_job,
    ),
    "autoscaling/horizontalpodautoscalers": (
        "!Name, Reference, Targets, MinPods, MaxPods, Replicas, Age",
        _autoscaler,
    ),
    "scheduling.k8s.io/priorityclasses": (
        "!Name, #Value, ?Global-Default, Age, PreemptionPolicy",
        _priority_class,
    ),
    "scheduling.k8s.io/podgroups": ("!Name, Policy, Workload, Status, Age", _pod_group),
    "scheduling.k8s.io/workloads": (_AGED, _named()),
    "storage.k8s.io/storageclasses": (
        "!Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
        _storage_class,
    ),
    "storage.k8s.io/csinodes": ("!Name, #Drivers, Age", _csi_node),
    "storage.k8s.io/csidrivers": (
        "!Name, ?AttachRequired, ?PodInfoOnMount, ?StorageCapacity, TokenRequests, ?RequiresRepublish, Modes, Age",
        _csi_driver,
    ),
    "storage.k8s.io/csistoragecapacities": (_DATED, _created),
    "storage.k8s.io/volumeattachments": ("!Name, !Attacher, PV, Node, ?Attached, Age", _attachment),
    "storage.k8s.io/volumeattributesclasses": ("!Name, DriverName, Age", _named("driverName")),
    "policy/poddisruptionbudgets": (
        "!Name, Min Available, Max Unavailable, #Allowed Disruptions, Age",
        _budget,
    ),
    "discovery.k8s.io/endpointslices": ("!Name, AddressType, Ports, Endpoints, Age", _endpoint_slice),
    "coordination.k8s.io/leases": ("!Name, Holder, Age", _lease),
    "resource.k8s.io/deviceclasses": (_AGED, _named()),
    "resource.k8s.io/resourceclaims": ("!Name, State, Age", _resource_claim),
    "resource.k8s.io/resourceclaimtemplates": (_AGED, _named()),
    "resource.k8s.io/resourceslices": ("!Name, Node, Driver, Pool, Age", _resource_slice),
    "node.k8s.io/runtimeclasses": ("!Name, Handler, Age", _named("handler")),
    "networking.k8s.io/networkpolicies": ("!Name, Pod-Selector, Age", _network_policy),
    "networking.k8s.io/ingresses": ("!Name, Class, Hosts, Address, Ports, Age", _ingress),
    "networking.k8s.io/ingressclasses": ("!Name, Controller, Parameters, Age", _ingress_class),
    "rbac.authorization.k8s.io/roles": (_DATED, _role),
    "rbac.authorization.k8s.io/clusterroles": (_DATED, _role),
    "rbac.authorization.k8s.io/rolebindings": (
        "!Name, Role, Age, +Users, +Groups, +ServiceAccounts",
        _role_binding,
    ),
    "rbac.authorization.k8s.io/clusterrolebindings": (
        "!Name, Role, Age, +Users, +Groups, +ServiceAccounts",
        _role_binding,
    ),
    "certificates.k8s.io/certificatesigningrequests": (
        "!Name, Age, SignerName, Requestor, RequestedDuration, Condition",
        _request,
    ),
}
DEFAULT: tuple[str, Row] = (_DATED, _created)
