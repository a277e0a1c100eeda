"""The rules of changed pods: what of them may still change, and through which door."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.names import check_dns1123_subdomain
from kubesched.apiserver.schema import shape
from kubesched.apiserver.status import (
    field_forbidden,
    field_invalid,
    field_required,
)
from kubesched.apiserver.strategy import qos_class
from kubesched.apiserver.validation import Errors, Json, each
from kubesched.apiserver.validation_placement import REQUIRED, tolerations
from kubesched.apiserver.validation_pod import spaced_images, spec_of_pod

_DEADLINE_MAX = 2**31 - 1
UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def pod_update(obj: Json, old: Json) -> Errors:
    """Faults of a changed pod, and of the change."""
    new, was = obj["spec"], old["spec"]
    if new == was:
        return []
    errors = spec_of_pod(new)
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(was.get(field) or ()):
            return [*errors, field_forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
        errors += _images(new.get(field) or (), f"spec.{field}")
    final, deadline = _deadline(new, was)
    errors += deadline
    if final:
        return errors
    errors += _only_added_tolerations(new.get("tolerations") or [], was.get("tolerations") or [])
    errors += _only_removed_gates(new, was)
    munged = {**new}
    for field in ("containers", "initContainers"):
        if field in new:
            munged[field] = [
                {**container, "image": before.get("image")}
                for container, before in zip(new[field], was[field], strict=True)
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _restore(munged, was, field)
    if was.get("terminationGracePeriodSeconds", 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = was["terminationGracePeriodSeconds"]
    if was.get("schedulingGates"):
        errors += _gated_changes(munged, was)
    if any(munged.get(field) != was.get(field) for field in shape("core.PodSpec").fields):
        errors.append(
            field_forbidden("spec", f"pod updates may not change fields other than {UPDATABLE}\n{diff(was, munged)}")
        )
    return errors


def _restore(munged: Json, was: Json, field: str) -> None:
    if field in was:
        munged[field] = was[field]
    else:
        munged.pop(field, None)


def diff(was: Json, munged: Json) -> str:
    """The fields that changed, one line each way."""
    lines = []
    for field in sorted({*was, *munged}):
        if was.get(field) != munged.get(field):
            lines += [f"- {field}: {was.get(field)}", f"+ {field}: {munged.get(field)}"]
    return "\n".join(lines) + "\n"


def _images(containers: Sequence[Json], at: str) -> Errors:
    """Kept from kube-apiserver: of a changed pod the images are looked at once more, and more closely."""
    missing = [index for index, container in enumerate(containers) if not container.get("image")]
    return [field_required(f"{at}[{index}].image") for index in missing] + spaced_images(containers, at)


def _deadline(new: Json, was: Json) -> tuple[bool, Errors]:
    """Faults of a changed deadline, and whether with them there is no more to say."""
    at = "spec.activeDeadlineSeconds"
    deadline, before = new.get("activeDeadlineSeconds"), was.get("activeDeadlineSeconds")
    if deadline is None:
        why = "must not update from a positive integer to nil value"
        return False, [field_invalid(at, None, why)] if before is not None else []
    if not 0 <= deadline <= _DEADLINE_MAX:
        return True, [field_invalid(at, deadline, f"must be between 0 and {_DEADLINE_MAX}, inclusive")]
    if before is not None and before < deadline:
        return True, [field_invalid(at, deadline, "must be less than or equal to previous value")]
    return False, []


def _only_added_tolerations(new: list[Json], was: list[Json]) -> Errors:
    def core(toleration: Json) -> Json:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [core(toleration) for toleration in new]
    if all(core(toleration) in kept for toleration in was):
        return tolerations(new, "spec.tolerations")  # kept from kube-apiserver: for the second time
    return [field_forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _only_removed_gates(new: Json, was: Json) -> Errors:
    had = {gate.get("name") for gate in was.get("schedulingGates", ())}
    return [
        field_forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(new.get("schedulingGates", ()))
        if gate.get("name") not in had
    ]


def _gated_changes(munged: Json, was: Json) -> Errors:
    """While it is gated a pod may be told more about where to go, never less."""
    errors: Errors = []
    new_selector, old_selector = munged.get("nodeSelector") or {}, was.get("nodeSelector") or {}
    if new_selector != old_selector:
        if any(new_selector.get(key) != value for key, value in old_selector.items()):
            why = "only additions are allowed (no mutations or deletions)"
            errors.append(field_invalid("spec.nodeSelector", new_selector, why))
        _restore(munged, was, "nodeSelector")
    new_affinity = (munged.get("affinity") or {}).get("nodeAffinity")
    old_affinity = (was.get("affinity") or {}).get("nodeAffinity")
    if new_affinity != old_affinity:
        errors += _node_affinity_change(new_affinity or {}, old_affinity or {})
        affinity = {key: value for key, value in (munged.get("affinity") or {}).items() if key != "nodeAffinity"}
        if old_affinity is not None:
            affinity["nodeAffinity"] = old_affinity
        if affinity or was.get("affinity") is not None:
            munged["affinity"] = affinity
        else:
            munged.pop("affinity", None)
    return errors


def _node_affinity_change(new: Json, was: Json) -> Errors:
    at = f"spec.affinity.nodeAffinity.{REQUIRED}"
    old_terms = (was.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    if not old_terms:
        return []
    terms = (new.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    if len(terms) != len(old_terms):
        return [
            field_invalid(
                f"{at}.nodeSelectorTerms",
                terms,
                "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
            )
        ]
    errors: Errors = []
    for index, (term, before) in enumerate(zip(terms, old_terms, strict=True)):
        for field in ("matchExpressions", "matchFields"):
            kept = (term.get(field) or [])[: len(before.get(field) or [])]
            if kept != (before.get(field) or []):
                why = "only additions are allowed (no mutations or deletions)"
                errors.append(field_invalid(f"{at}.nodeSelectorTerms[{index}]", term, why))
                break
    return errors


def pod_resize(obj: Json, old: Json) -> Errors:
    """Faults of a change through /resize: resources of containers may change, nothing else."""
    errors: Errors = []
    munged = {**obj["spec"]}
    for field in ("containers", "initContainers"):
        new, was = munged.get(field) or [], old["spec"].get(field) or []
        if len(new) != len(was):
            return [field_forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
        munged[field] = [
            {**one, "resources": before.get("resources"), "resizePolicy": before.get("resizePolicy")}
            for one, before in zip(new, was, strict=True)
        ]
        munged[field] = [{k: v for k, v in one.items() if v is not None} for one in munged[field]]
        if not munged[field] and field not in old["spec"]:
            del munged[field]
    kept = qos_class(old["spec"])
    if qos_class(obj["spec"]) != kept:
        errors.append(field_invalid("spec", kept, "Pod QOS Class may not change as a result of resizing"))
    if munged != old["spec"]:
        errors.append(
            field_forbidden("spec", f"only cpu and memory resources are mutable\n{diff(old['spec'], munged)}")
        )
    return errors or spec_of_pod(obj["spec"])


def pod_ephemeral(obj: Json, old: Json) -> Errors:
    """Faults of a change through /ephemeralcontainers: they may be added, nothing else may change."""
    new, was = obj["spec"].get("ephemeralContainers") or [], old["spec"].get("ephemeralContainers") or []
    names = [one.get("name") for one in new]
    errors: Errors = []
    for index, one in enumerate(was):
        if one.get("name") not in names:
            why = f'existing ephemeral containers "{one.get("name")}" may not be removed\n'
            errors.append(field_forbidden("spec.ephemeralContainers", why))
        elif one not in new:
            where = f"spec.ephemeralContainers[{index}]"
            errors.append(
                field_forbidden(where, f'existing ephemeral containers "{one.get("name")}" may not be changed\n')
            )
    for index, one in enumerate(new):
        where = f"spec.ephemeralContainers[{index}]"
        errors += [field_required(f"{where}.{field}") for field in ("name", "image") if not one.get(field)]
    if {**obj["spec"], "ephemeralContainers": was} != {**old["spec"], "ephemeralContainers": was}:
        errors.append(field_forbidden("spec", "only ephemeral containers may be changed here"))
    return errors


def pod_status(obj: Json, old: Json) -> Errors:
    """Faults of a changed pod status."""
    errors: Errors = []
    status, was = obj.get("status") or {}, old.get("status") or {}
    nominated = status.get("nominatedNodeName")
    if nominated:
        errors += each("status.nominatedNodeName", nominated, check_dns1123_subdomain)
        if obj["spec"].get("nodeName") and nominated != was.get("nominatedNodeName"):
            why = "may not be set on pods that are already bound to a node"
            errors.append(field_forbidden("status.nominatedNodeName", why))
    if was.get("qosClass") and status.get("qosClass") != was["qosClass"]:
        errors.append(field_invalid("status.qosClass", status.get("qosClass", ""), "field is immutable"))
    return errors
