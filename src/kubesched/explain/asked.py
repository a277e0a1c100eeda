"""The pod that is asked about, as the API server would store it.

A pod from kubectl is complete.  One written by hand is not: its requests follow from its limits, its priority from
its class, its matchLabelKeys from its labels.  All of that decides where it goes, so it is filled in here by the API
server's own rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from kubesched.api.objects import Pod, UnreadableObject, read
from kubesched.apiserver import codec, strategy
from kubesched.apiserver.defaulting import apply_defaults
from kubesched.apiserver.status import ApiError
from kubesched.explain.documents import Part, UnreadableFile, parts
from kubesched.explain.dump import PriorityClass, completed
from kubesched.framework.plain import plain

_SHAPE = "core.Pod"


class Asked(NamedTuple):
    """A pod to place, and what was changed so that the question makes sense."""

    pod: Pod
    notes: tuple[str, ...]


def read_pod(data: bytes, file: str, priorities: Mapping[str, PriorityClass]) -> Asked:
    """The one pod in a file.  Raises UnreadableFile."""
    found = list(parts(data, file))
    if len(found) != 1:
        raise UnreadableFile(f"{file}: holds {len(found)} objects; give the one pod to ask about")
    raw = _plain_data(found[0], file)
    kind = raw.get("kind") or found[0].kind
    if kind != "Pod":
        raise UnreadableFile(f"{file}: is a {plain(kind or 'thing without a kind', 60)}, not a Pod{_remedy(raw)}")
    notes: list[str] = []
    try:
        obj, unknown = codec.clean(raw, "v1", "Pod", _SHAPE, "Warn")
        notes += [f"{problem} in the pod" for problem in unknown]
        obj.setdefault("spec", {})
        apply_defaults(_SHAPE, obj)
        if not obj.get("metadata", {}).get("uid"):
            strategy.merge_label_keys(obj)
        notes += _give_priority(obj["spec"], priorities, file)
        pod = read(obj, Pod)
    except (ApiError, UnreadableObject) as error:
        raise UnreadableFile(f"{file}: {plain(error, 400)}") from None
    if not pod.name:
        raise UnreadableFile(f"{file}: the pod has no name; give it metadata.name")
    return _unplaced(pod, notes)


def _plain_data(part: Part, file: str) -> dict[str, Any]:
    try:
        raw = msgspec.json.decode(part.data) if isinstance(part.data, (bytes, msgspec.Raw)) else part.data
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnreadableFile(f"{file}: is not JSON: {plain(error, 200)}") from None
    if not isinstance(raw, dict):
        raise UnreadableFile(f"{file}: is no Kubernetes object")
    return raw


def _remedy(raw: Mapping[str, Any]) -> str:
    spec = raw.get("spec")
    has_template = isinstance(spec, Mapping) and ("template" in spec or "jobTemplate" in spec)
    return "; write a Pod with the metadata and the spec of its template" if has_template else ""


def _give_priority(spec: dict[str, Any], priorities: Mapping[str, PriorityClass], file: str) -> list[str]:
    """What admission makes of priorityClassName; a pod that has been admitted has a priority already."""
    if spec.get("priority") is not None:
        return []
    name = spec.get("priorityClassName")
    if name:
        if name not in priorities:
            return [f"no PriorityClass {plain(name, 60)!r} is in the cluster files; the pod counts as priority 0"]
        chosen = priorities[name]
    else:
        defaults = [one for one in priorities.values() if one.is_default]
        chosen = min(defaults, default=PriorityClass(0))
    spec["priority"] = chosen.value
    spec.setdefault("preemptionPolicy", chosen.policy)
    return []


def _unplaced(pod: Pod, notes: list[str]) -> Asked:
    """The pod as if it had not been placed yet."""
    done = completed(pod)
    node = done.spec.node_name
    if not node:
        return Asked(done, tuple(notes))
    notes.append(f"the pod is on {plain(node, 253)}; it is asked where it would go if it were not")
    freed = msgspec.structs.replace(done.spec, node_name="")
    return Asked(msgspec.structs.replace(done, spec=freed), tuple(notes))
