"""The rules of where a pod may go: tolerations, affinities, spreading, gates."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.names import check_dns1123_label, check_dns1123_subdomain, check_label_value, check_qualified_name
from kubesched.apiserver.status import (
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from kubesched.apiserver.validation import Errors, Json, each, faults, label_selector

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_SELECT_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"


def tolerations(found: list[Json], at: str) -> Errors:
    errors: Errors = []
    for index, toleration in enumerate(found):
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        where = f"{at}[{index}]"
        if key:
            errors += each(f"{where}.key", key, check_qualified_name)
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(field_invalid(f"{where}.operator", operator, why))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(field_invalid(f"{where}.effect", effect, why))
        if operator in ("", "Equal"):
            bad = faults(check_label_value(value))
            if bad:
                errors.append(field_invalid(f"{where}.operator", value, ";".join(bad)))
        elif operator == "Exists":
            if value:
                errors.append(
                    field_invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'")
                )
        elif operator in ("Lt", "Gt"):
            errors.append(field_not_supported(f"{where}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
        else:
            errors.append(field_not_supported(f"{where}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in _EFFECTS:
            errors.append(field_not_supported(f"{where}.effect", effect, _EFFECTS))
    return errors


def affinity(affinity: Json, at: str) -> Errors:
    errors: Errors = []
    if "nodeAffinity" in affinity:
        errors += _node_affinity(affinity["nodeAffinity"], f"{at}.nodeAffinity")
    for side in ("podAffinity", "podAntiAffinity"):
        if side in affinity:
            errors += _pod_affinity(affinity[side], f"{at}.{side}")
    return errors


REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def _node_affinity(affinity: Json, at: str) -> Errors:
    errors: Errors = []
    if REQUIRED in affinity:
        errors += node_selector(affinity[REQUIRED], f"{at}.{REQUIRED}")
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        where = f"{at}.{_PREFERRED}[{index}]"
        errors += _weight(preferred, where)
        # Kept from kube-apiserver: where a pod would rather be, values may be what no label can be.
        errors += _node_term(preferred.get("preference", {}), f"{where}.preference", any_value=True)
    return errors


def _weight(preferred: Json, at: str) -> Errors:
    weight = preferred.get("weight", 0)
    return [] if 1 <= weight <= 100 else [field_invalid(f"{at}.weight", weight, "must be in the range 1-100")]


def node_selector(selector: Json, at: str) -> Errors:
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [field_required(f"{at}.nodeSelectorTerms", "must have at least one node selector term")]
    return [e for index, term in enumerate(terms) for e in _node_term(term, f"{at}.nodeSelectorTerms[{index}]")]


def _node_term(term: Json, at: str, *, any_value: bool = False) -> Errors:
    errors: Errors = []
    for index, one in enumerate(term.get("matchExpressions", ())):
        where = f"{at}.matchExpressions[{index}]"
        operator, values = one.get("operator", ""), one.get("values", ())
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(field_required(f"{where}.values", _SELECT_VALUES))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(field_forbidden(f"{where}.values", why))
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                errors.append(
                    field_required(f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
                )
        else:
            errors.append(field_invalid(f"{where}.operator", operator, "not a valid selector operator"))
        key = one.get("key", "")
        errors += [field_invalid(f"{where}.key", key, fault) for fault in faults(check_qualified_name(key))]
        if operator in ("In", "NotIn") and not any_value:
            for position, value in enumerate(values):
                bad = faults(check_label_value(value))
                errors += [field_invalid(f"{where}.values[{position}]", value, fault) for fault in bad]
    for index, one in enumerate(term.get("matchFields", ())):
        errors += _match_field(one, f"{at}.matchFields[{index}]")
    return errors


def _match_field(one: Json, at: str) -> Errors:
    operator, values, key = one.get("operator", ""), one.get("values", ()), one.get("key", "")
    errors: Errors = []
    if operator in ("In", "NotIn"):
        if len(values) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            errors.append(field_required(f"{at}.values", why))
    else:
        errors.append(field_invalid(f"{at}.operator", operator, "not a valid selector operator"))
    if key != "metadata.name":
        errors.append(field_invalid(f"{at}.key", key, "not a valid field selector key"))
    else:
        for index, value in enumerate(values):
            errors += each(f"{at}.values[{index}]", value, check_dns1123_subdomain)
    return errors


def _pod_affinity(affinity: Json, at: str) -> Errors:
    errors: Errors = []
    for index, term in enumerate(affinity.get(REQUIRED, ())):
        errors += _pod_term(term, f"{at}.{REQUIRED}[{index}]")
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        where = f"{at}.{_PREFERRED}[{index}]"
        errors += _weight(preferred, where)
        errors += _pod_term(preferred.get("podAffinityTerm", {}), f"{where}.podAffinityTerm")
    return errors


def _pod_term(term: Json, at: str) -> Errors:
    errors = label_selector(term.get("labelSelector"), f"{at}.labelSelector")
    errors += label_selector(term.get("namespaceSelector"), f"{at}.namespaceSelector")
    for name in term.get("namespaces", ()):
        errors += [field_invalid(f"{at}.namespace", name, fault) for fault in faults(check_dns1123_label(name))]
    key = term.get("topologyKey", "")
    if not key:
        errors.append(field_required(f"{at}.topologyKey", "can not be empty"))
    errors += [field_invalid(f"{at}.topologyKey", key, fault) for fault in faults(check_qualified_name(key))]
    return errors + _label_keys(term, at, ("matchLabelKeys", "mismatchLabelKeys"))


def _label_keys(term: Json, at: str, fields: Sequence[str]) -> Errors:
    """Faults of keys whose values a pod's own labels give to a selector.

    In a pod they are merged into the selector by now (strategy), in a template they are not.  The selector may not have
    spoken of such a key before: two mentions of it are one too many.
    """
    errors: Errors = []
    selector, matched = term.get("labelSelector"), term.get("matchLabelKeys") or ()
    for field in fields:
        keys = term.get(field) or ()
        if keys and selector is None:
            errors.append(field_forbidden(f"{at}.{field}", "must not be specified when labelSelector is not set"))
        elif keys:
            for index, key in enumerate(keys):
                bad = faults(check_qualified_name(key))
                errors += [field_invalid(f"{at}.{field}[{index}]", key, fault) for fault in bad]
    mentioned = set((selector or {}).get("matchLabels") or ())
    for one in (selector or {}).get("matchExpressions") or ():
        key = one.get("key", "")
        if key in matched and key in mentioned:
            why = "exists in both matchLabelKeys and labelSelector"
            errors.append(field_invalid(f"{at}[{len(matched) - 1 - matched[::-1].index(key)}]", key, why))
        mentioned.add(key)
    for index, key in enumerate(matched):
        if key in (term.get("mismatchLabelKeys") or ()):
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(field_invalid(f"{at}.matchLabelKeys[{index}]", key, why))
    return errors


def spread(constraints: list[Json], at: str) -> Errors:
    errors: Errors = []
    pairs = [(one.get("topologyKey", ""), one.get("whenUnsatisfiable", "")) for one in constraints]
    for index, constraint in enumerate(constraints):
        where = f"{at}[{index}]"
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        unsatisfiable = constraint.get("whenUnsatisfiable", "")
        if skew <= 0:
            errors.append(field_invalid(f"{where}.maxSkew", skew, "must be greater than zero"))
        if not key:
            errors.append(field_required(f"{where}.topologyKey", "can not be empty"))
        if unsatisfiable not in _UNSATISFIABLE:
            errors.append(field_not_supported(f"{where}.whenUnsatisfiable", unsatisfiable, _UNSATISFIABLE))
        if (key, unsatisfiable) in pairs[index + 1 :]:
            shown = f"{{{key}, {unsatisfiable}}}"
            errors.append(field_duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", shown))
        domains = constraint.get("minDomains")
        if domains is not None:
            if domains <= 0:
                errors.append(field_invalid(f"{where}.minDomains", domains, "must be greater than zero"))
            if unsatisfiable != "DoNotSchedule":
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}"
                errors.append(field_invalid(f"{where}.minDomains", domains, why))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(policy) not in (None, "Honor", "Ignore"):
                errors.append(field_not_supported(f"{where}.{policy}", constraint[policy], ("Honor", "Ignore")))
        errors += _label_keys({**constraint, "mismatchLabelKeys": ()}, where, ("matchLabelKeys",))
        errors += label_selector(constraint.get("labelSelector"), f"{where}.labelSelector")
    return errors


def gates(gates: list[Json], at: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name, where = gate.get("name", ""), f"{at}[{index}]"
        errors += [field_invalid(where, name, fault) for fault in faults(check_qualified_name(name))]
        if name in seen:
            errors.append(field_duplicate(where, name))
        seen.add(name)
    return errors
