"""From a chosen node to bound claims: hold the volumes, tell the API server, wait until all is done.

The scheduler does not bind volumes, a controller does.  Its part is to say which: a free volume is marked as the
claim's, or a claim is told the node its volume is to be made for.  Until the API server has heard that, the
changed objects are assumed, so that the next pod does not choose the same volume.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import structs

from kubesched.api.labels import quoted
from kubesched.api.objects import KubeObject, ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.api.time import Duration
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects, version
from kubesched.framework.status import SUCCESS, Status, error
from kubesched.framework.steps import Patch, Steps, WaitFor
from kubesched.plugins.volume_reach import reachable
from kubesched.plugins.volume_search import Binding, Found, missing_node
from kubesched.plugins.volumes import BOUND_BY_CONTROLLER, SELECTED_NODE, is_fully_bound, is_meant_for

_TIMED_OUT = "context deadline exceeded"


class Held(NamedTuple):
    """A volume or a claim as it shall be, and what to write to make it so."""

    obj: PersistentVolume | PersistentVolumeClaim
    body: Mapping[str, Any]
    claim: PersistentVolumeClaim


class Claiming:
    """What is done about the claims of one pod on one node.  Kept in the pod's cycle from reserve to the end."""

    def __init__(self, found: Found, node: str, objects: Objects) -> None:
        self.node = node
        self.objects = objects
        self.volumes = [_bind(binding) for binding in found.bindings]
        self.claims = [_provision(provision.claim, node) for provision in found.provisions]
        for held in (*self.volumes, *self.claims):
            if held.obj != objects.get(type(held.obj), held.obj.key):
                objects.assume(held.obj)

    def give_up(self) -> None:
        """Forget what is still assumed for this pod; what another pod has assumed since is not ours to forget."""
        for held in (*self.volumes, *self.claims):
            if self.objects.get(type(held.obj), held.obj.key) is held.obj:
                self.objects.forget(type(held.obj), held.obj.key)

    def steps(self, nodes: Nodes, timeout: Duration) -> Steps:
        """Write everything, and wait until the claims are bound.

        What has been written stays written if something fails later: the volume is the claim's now, and the next
        attempt finds it so.
        """
        versions: dict[str, int] = {}
        for held in (*self.volumes, *self.claims):
            obj = held.obj
            answer = yield Patch(obj.kind, obj.key, held.body, obj.metadata.resource_version)
            if answer.failure is not None:
                return error(answer.failure.message or answer.failure.reason)
            versions[obj.uid] = version(answer.obj if answer.obj is not None else obj)
        look = self._lookout(lambda: nodes.named(self.node), versions)
        answer = yield WaitFor(look, timeout, "the pod's volumes to be bound")
        if answer.failure is not None:
            return error(f"binding volumes: {_TIMED_OUT}")
        assert isinstance(answer.data, Status), "a look ends with a Status"
        return answer.data

    def _lookout(
        self, node: Callable[[], NodeInfo | None], versions: Mapping[str, int]
    ) -> Callable[[Objects], Status | None]:
        def look(objects: Objects) -> Status | None:
            here = node()
            if here is None:
                return error(f"binding volumes: {missing_node(self.node)}")
            for held, check in (
                *((held, _check_volume) for held in self.volumes),
                *((held, _check_claim) for held in self.claims),
            ):
                problem = check(held, here, objects, versions[held.obj.uid])
                if problem is None:
                    return None
                if problem:
                    return error(f"binding volumes: {problem}")
            return SUCCESS

        return look


# ── what is to be written ────────────────────────────────────────────────────────────────────────────────────


def _bind(binding: Binding) -> Held:
    """Mark a volume as the claim's; one that was not its own already is marked as bound by us."""
    volume, claim = binding
    annotations = dict(volume.annotations)
    if not is_meant_for(volume, claim):
        annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
    ref = ObjectReference(namespace=claim.namespace, name=claim.name, uid=claim.uid)
    changed = structs.replace(
        volume,
        metadata=structs.replace(volume.metadata, annotations=annotations),
        spec=structs.replace(volume.spec, claim_ref=ref),
    )
    written = {
        "kind": claim.kind,
        "apiVersion": "v1",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
    body: dict[str, Any] = {"spec": {"claimRef": {key: value for key, value in written.items() if value}}}
    if annotations != volume.annotations or BOUND_BY_CONTROLLER in annotations:
        body["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: annotations[BOUND_BY_CONTROLLER]}}
    return Held(changed, body, claim)


def _provision(claim: PersistentVolumeClaim, node: str) -> Held:
    """Tell the provisioner for which node the claim's volume is to be made."""
    metadata = structs.replace(claim.metadata, annotations={**claim.annotations, SELECTED_NODE: node})
    body = {"metadata": {"annotations": {SELECTED_NODE: node}}}
    return Held(structs.replace(claim, metadata=metadata), body, claim)


# ── is it done? ──────────────────────────────────────────────────────────────────────────────────────────────
# Each answers None to wait on, "" for done, or what went wrong.


def _check_volume(held: Held, node: NodeInfo, objects: Objects, written: int) -> str | None:
    volume = objects.get(PersistentVolume, held.obj.key)
    claim = objects.get(PersistentVolumeClaim, held.claim.key)
    if volume is None or claim is None:
        missing: KubeObject = held.obj if volume is None else held.claim
        return f"failed to check binding: could not find {missing.kind} {quoted(missing.key)}"
    if version(volume) < written:
        return None  # our own change has not come back yet
    if not reachable(volume, node, objects):
        return _unreachable(volume, node)
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        return f"ClaimRef got reset for pv {quoted(volume.name)}"
    return "" if is_fully_bound(claim) else None


def _check_claim(held: Held, node: NodeInfo, objects: Objects, written: int) -> str | None:
    claim = objects.get(PersistentVolumeClaim, held.obj.key)
    if claim is None:
        return f"failed to check provisioning pvc: could not find {held.obj.kind} {quoted(held.obj.key)}"
    if version(claim) < written:
        return None
    if not claim.annotations:
        return f"selectedNode annotation reset for PVC {quoted(claim.name)}"
    if claim.annotations.get(SELECTED_NODE) != node.name:
        return f"provisioning failed for PVC {quoted(claim.name)}"
    if claim.spec.volume_name:
        volume = objects.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return None  # its message may be on its way
        if not reachable(volume, node, objects):
            return _unreachable(volume, node)
    return "" if is_fully_bound(claim) else None


def _unreachable(volume: PersistentVolume, node: NodeInfo) -> str:
    where = f"pv {quoted(volume.name)} node affinity doesn't match node {quoted(node.name)}"
    return f"{where}: no matching NodeSelectorTerms"
