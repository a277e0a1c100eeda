"""The rows of `kubectl get`: what each kind shows of itself, column for column as kube-apiserver prints it.

The server, not kubectl, decides what stands in a table.  COLUMNS holds one line a kind: `!` marks the name column,
`#` an integer, `?` a boolean, `@` a time, `+` what only `-o wide` shows.  A row function turns an object into its
cells; kinds without one show a name and an age.
"""

from __future__ import annotations

from typing import Any

from kubesched.apiserver import printers_storage as storage
from kubesched.apiserver import printers_workload as workload
from kubesched.apiserver.cells import (
    NONE,
    UNSET,
    Cells,
    Json,
    Row,
    age,
    chosen_text,
    condition_of,
    containers_text,
    human_duration,
    labels_text,
    or_none,
    since,
)


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
        or_none(spec.get("clusterIP")),
        external,
        ",".join(ports) or NONE,
        age(obj, now),
        labels_text(spec.get("selector")),
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


def _pod_group(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    policy = "Gang" if (spec.get("schedulingPolicy") or {}).get("gang") is not None else "Basic"
    workload = ((spec.get("podGroupTemplateRef") or {}).get("workload") or {}).get("workloadName")
    condition = condition_of(obj, "PodGroupScheduled")
    state = "Pending"
    if condition is not None:
        state = "Scheduled" if condition.get("status") == "True" else condition.get("reason") or "Pending"
    return [obj["metadata"]["name"], policy, or_none(workload), state, age(obj, now)]


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
        or_none(spec.get("signerName")),
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
    return [obj["metadata"]["name"], chosen_text(obj["spec"].get("podSelector")), age(obj, now)]


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
        or_none(spec.get("ingressClassName")),
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
    labels = (template.get("metadata") or {}).get("labels")
    return [obj["metadata"]["name"], *containers_text(template), labels_text(labels)]


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
        workload.pod,
    ),
    "nodes": (
        _NODE_COLUMNS,
        workload.node,
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
        storage.volume,
    ),
    "persistentvolumeclaims": (
        "!Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, +VolumeMode",
        storage.claim,
    ),
    "resourcequotas": ("!Name, Request, Limit, Age", _quota),
    "limitranges": (_DATED, _created),
    "podtemplates": ("!Name, Containers, Images, Pod Labels", _pod_template),
    "replicationcontrollers": (
        "!Name, #Desired, #Current, #Ready, Age, +Containers, +Images, +Selector",
        workload.replicas,
    ),
    "apps/replicasets": ("!Name, #Desired, #Current, #Ready, Age, +Containers, +Images, +Selector", workload.replicas),
    "apps/deployments": (
        "!Name, Ready, Up-to-date, Available, Age, +Containers, +Images, +Selector",
        workload.deployment,
    ),
    "apps/statefulsets": ("!Name, Ready, Age, +Containers, +Images", workload.stateful_set),
    "apps/daemonsets": (
        _DAEMON_SET_COLUMNS,
        workload.daemon_set,
    ),
    "apps/controllerrevisions": ("!Name, Controller, Revision, Age", _controller_revision),
    "batch/jobs": ("!Name, Status, Completions, Duration, Age, +Containers, +Images, +Selector", workload.job),
    "batch/cronjobs": (
        "!Name, Schedule, Timezone, ?Suspend, #Active, Last Schedule, Age, +Containers, +Images, +Selector",
        workload.cron_job,
    ),
    "autoscaling/horizontalpodautoscalers": (
        "!Name, Reference, Targets, MinPods, MaxPods, Replicas, Age",
        workload.autoscaler,
    ),
    "scheduling.k8s.io/priorityclasses": (
        "!Name, #Value, ?Global-Default, Age, PreemptionPolicy",
        _priority_class,
    ),
    "scheduling.k8s.io/podgroups": ("!Name, Policy, Workload, Status, Age", _pod_group),
    "scheduling.k8s.io/workloads": (_AGED, _named()),
    "storage.k8s.io/storageclasses": (
        "!Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
        storage.storage_class,
    ),
    "storage.k8s.io/csinodes": ("!Name, #Drivers, Age", storage.csi_node),
    "storage.k8s.io/csidrivers": (
        "!Name, ?AttachRequired, ?PodInfoOnMount, ?StorageCapacity, TokenRequests, ?RequiresRepublish, Modes, Age",
        storage.csi_driver,
    ),
    "storage.k8s.io/csistoragecapacities": (_DATED, _created),
    "storage.k8s.io/volumeattachments": ("!Name, !Attacher, PV, Node, ?Attached, Age", storage.attachment),
    "storage.k8s.io/volumeattributesclasses": ("!Name, DriverName, Age", _named("driverName")),
    "policy/poddisruptionbudgets": (
        "!Name, Min Available, Max Unavailable, #Allowed Disruptions, Age",
        _budget,
    ),
    "discovery.k8s.io/endpointslices": ("!Name, AddressType, Ports, Endpoints, Age", _endpoint_slice),
    "coordination.k8s.io/leases": ("!Name, Holder, Age", _lease),
    "resource.k8s.io/deviceclasses": (_AGED, _named()),
    "resource.k8s.io/resourceclaims": ("!Name, State, Age", storage.resource_claim),
    "resource.k8s.io/resourceclaimtemplates": (_AGED, _named()),
    "resource.k8s.io/resourceslices": ("!Name, Node, Driver, Pool, Age", storage.resource_slice),
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
