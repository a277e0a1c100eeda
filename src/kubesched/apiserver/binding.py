"""Bind a pod to a node: the one write a scheduler exists for.

A binding is fenced: the uid and resourceVersion it carries must be those of the stored pod, so a scheduler that
decided for a pod that has since been replaced or changed is told so and nothing happens.  A pod is bound once; a
pod that is going, or still gated, is not bound at all.  The node need not exist, as in a real cluster.
"""

from __future__ import annotations

from typing import Any

from kubesched.api.time import Instant, format_rfc3339
from kubesched.apiserver import admission
from kubesched.apiserver.admission import topology_labels
from kubesched.apiserver.objects import Objects
from kubesched.apiserver.status import ApiError, bad_request, conflict, field_not_supported, field_required
from kubesched.apiserver.store import Preconditions

Json = dict[str, Any]

_SUBJECT = "pods/binding"


def bind(objects: Objects, namespace: str, name: str, binding: Json, *, dry_run: bool = False) -> Json:
    """Perform a Binding on a pod and return the Status that says so."""
    meta = binding.get("metadata") or {}
    if meta.get("namespace", namespace) != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    admission.namespace_exists(objects.store, "pods", namespace, name)
    if meta.get("name", "") != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    _check(target)
    node = target["name"]
    fence = Preconditions(meta.get("uid") or None, meta.get("resourceVersion") or None)
    at = format_rfc3339(Instant(objects.now()))
    inherited = topology_labels(objects.store, node)

    def assign(pod: Json) -> Json:
        _refuse(pod, name)
        return _assigned(pod, node, meta, inherited, at)

    objects.store.guaranteed_update("pods", namespace, name, assign, preconditions=fence, dry_run=dry_run)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _check(target: Json) -> None:
    """Kept from kube-apiserver: what is wrong with a target is said with a 500, without a reason."""
    if target.get("kind", "") not in ("", "Node"):
        error = field_not_supported("target.kind", target["kind"], ["Node", "<empty>"])
        raise ApiError(500, "", f"target.kind: {error.body}")
    if not target.get("name"):
        raise ApiError(500, "", f"target.name: {field_required('target.name').body}")


def _refuse(pod: Json, name: str) -> None:
    spec = pod["spec"]
    why = ""
    if "deletionTimestamp" in pod["metadata"]:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise _conflict(name, why)


def _conflict(name: str, why: str) -> ApiError:
    error = conflict("pods", name, why)
    error.message = f'Operation cannot be fulfilled on {_SUBJECT} "{name}": {why}'
    error.details = {"name": name, "kind": _SUBJECT}
    return error


def _assigned(pod: Json, node: str, binding: Json, inherited: Json, at: str) -> Json:
    """The pod as it is once it has a node."""
    meta = dict(pod["metadata"])
    for field, more in (("annotations", binding.get("annotations")), ("labels", binding.get("labels"))):
        if more:
            meta[field] = {**(meta.get(field) or {}), **more}
    if inherited:
        meta["labels"] = {**(meta.get("labels") or {}), **inherited}
    status = {key: value for key, value in (pod.get("status") or {}).items() if key != "nominatedNodeName"}
    others = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
    bound = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": at}
    status["conditions"] = [*others, bound]
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": node}, "status": status}
