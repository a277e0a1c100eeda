"""What kubectl printed, as the objects of a cluster: those a scheduler reads, and a word about those it cannot.

    kubectl get nodes,pods,pvc,pv,sc,csinodes,pdb,ns,priorityclasses -A -o json > cluster.json

Kinds nobody here asks for are counted and left out.  A broken object costs a warning and itself, never the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Struct, structs

from kubesched.api.kinds import KNOWN
from kubesched.api.objects import KINDS, Invalid, KubeObject, Object, read_or_invalid
from kubesched.explain.documents import Part, parts
from kubesched.framework.plain import plain

DEFAULT_NAMESPACE = "default"
PRIORITY_CLASS = "PriorityClass"
SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

_any_object: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Object)
_UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError)


class PriorityClass(NamedTuple):
    """As much of a PriorityClass as a pod that names it needs."""

    value: int
    policy: str = "PreemptLowerPriority"
    is_default: bool = False


class Dump:
    """The objects of some files."""

    def __init__(self) -> None:
        self.objects: list[Object] = []
        self.priorities: dict[str, PriorityClass] = {
            name: PriorityClass(value) for name, value in SYSTEM_PRIORITIES.items()
        }
        self.warnings: list[str] = []
        self.others: Counter[str] = Counter()  # kinds no scheduler reads, and how many

    def add(self, data: bytes, file: str) -> None:
        """Take in a file.  Raises UnreadableFile."""
        for part in parts(data, file):
            obj = self._object(part)
            if isinstance(obj, Invalid):
                self.warnings.append(f"{part.where}: {obj.error}; it is left out")
            elif obj is not None:
                self.objects.append(cast(Object, completed(obj)))  # one of KINDS, by how it was read

    def _object(self, part: Part) -> KubeObject | None:
        """The view of one object; an Invalid for a broken one, None for one nobody reads."""
        if isinstance(part.data, (bytes, msgspec.Raw)):
            try:
                obj: KubeObject = _any_object.decode(part.data)
            except _UNREADABLE:
                pass  # another kind, a kind that only its list tells, or a broken object
            else:
                if obj.metadata.name and _version_of(part.data).rpartition("/")[0] == KNOWN[obj.kind].group:
                    return obj
        try:
            raw = msgspec.json.decode(part.data) if isinstance(part.data, (bytes, msgspec.Raw)) else part.data
        except _UNREADABLE as error:
            return Invalid(error=f"is not JSON: {plain(error, 200)}")
        if not isinstance(raw, dict):
            return Invalid(error="is no object")
        kind = raw.get("kind") or part.kind
        if not isinstance(kind, str) or not kind:
            return Invalid(error="an object says its kind, as kubectl get -o json and -o yaml print it")
        if kind == PRIORITY_CLASS:
            return self._priority_class(raw)
        if kind not in KINDS or not _is_meant(raw, kind):
            self.others[plain(kind, 60)] += 1
            return None
        found = read_or_invalid({**raw, "kind": kind}, KINDS[kind])
        if not found.metadata.name and not isinstance(found, Invalid):
            return Invalid(error=f"a {kind} without a name")
        return found

    def _priority_class(self, raw: Mapping[str, Any]) -> Invalid | None:
        metadata = raw.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        value = raw.get("value", 0)
        if not isinstance(name, str) or not name or not isinstance(value, int):
            return Invalid(error="a PriorityClass has a name, and a value that is a number")
        policy = raw.get("preemptionPolicy") or "PreemptLowerPriority"
        self.priorities[name] = PriorityClass(value, str(policy), raw.get("globalDefault") is True)
        return None


_VERSION_FIRST = re.compile(rb'\s*\{\s*"apiVersion"\s*:\s*"([^"\\]*)"')
"""kubectl sorts fields: an object begins with its apiVersion."""


class _Versioned(Struct):
    apiVersion: str = ""


_versioned = msgspec.json.Decoder(_Versioned)


def _version_of(data: bytes | msgspec.Raw) -> str:
    """The apiVersion of an object that can be decoded."""
    found = _VERSION_FIRST.match(data)
    return found[1].decode() if found else _versioned.decode(data).apiVersion


def _is_meant(raw: Mapping[str, Any], kind: str) -> bool:
    """Whether the object is of our group: there may be other kinds of the same name, a Knative Service say."""
    version = raw.get("apiVersion")
    return not isinstance(version, str) or version.rpartition("/")[0] == KNOWN[kind].group


T = TypeVar("T", bound=KubeObject)


def completed(obj: T) -> T:
    """The object with what the API server would have added: a namespace, and something to tell namesakes apart by."""
    metadata = obj.metadata
    namespace = metadata.namespace or (DEFAULT_NAMESPACE if KNOWN[obj.kind].namespaced else "")
    if metadata.uid and namespace == metadata.namespace:
        return obj
    uid = metadata.uid or f"{obj.kind}/{namespace}/{metadata.name}"
    return structs.replace(obj, metadata=structs.replace(metadata, namespace=namespace, uid=uid))


def counted(kinds: Mapping[str, int]) -> str:
    """How many of what: `12 ConfigMap, 3 Deployment`."""
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))


def read_dump(files: Iterable[tuple[str, bytes]]) -> Dump:
    """The objects of some files, given as name and content.  Raises UnreadableFile."""
    dump = Dump()
    for name, data in files:
        dump.add(data, name)
    return dump
