"""Equal parts of pods are kept once.

The pods of one workload differ in their names, where they run and when they began; their labels, containers,
tolerations and volumes are the same, and decoding makes them anew for every pod and every news of it.  Here a pod
gets the parts that an equal pod has already.  Views are frozen, so nobody can tell.

Rule: what comes out equals what came in.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import structs

from kubesched.api.objects import Pod, PodCondition, PodStatus

_PARTS_AT_MOST = 1 << 14
_encode = msgspec.msgpack.Encoder().encode

V = TypeVar("V")


class Sharing:
    """Parts of pods by what they say.  Forgets all of them when there are too many: who holds one keeps it."""

    def __init__(self, at_most: int = _PARTS_AT_MOST) -> None:
        self._at_most = at_most
        self._parts: dict[bytes, Any] = {}
        self._texts: dict[str, str] = {}

    def __len__(self) -> int:
        """How many parts and texts are kept."""
        return len(self._parts) + len(self._texts)

    def pod(self, pod: Pod) -> Pod:
        """An equal pod, most of whose parts others have, too."""
        meta, spec = pod.metadata, pod.spec
        try:
            namespace, labels, annotations, owners = self._shared(
                (meta.namespace, meta.labels, meta.annotations, meta.owner_references)
            )
            bare = self._shared(structs.replace(spec, node_name=""))
            status = self._status(pod.status)
        except (ValueError, OverflowError, msgspec.MsgspecError):
            return pod  # a text or a number that cannot be written again
        spec = structs.replace(bare, node_name=self._text(spec.node_name)) if spec.node_name else bare
        meta = structs.replace(
            meta, namespace=namespace, labels=labels, annotations=annotations, owner_references=owners
        )
        return Pod(metadata=meta, spec=spec, status=status)

    def _status(self, status: PodStatus) -> PodStatus:
        bare = self._shared(structs.replace(status, conditions=(), start_time=None))
        if status.start_time is None and not status.conditions:
            return bare
        conditions = tuple([self._condition(condition) for condition in status.conditions])
        start = None if status.start_time is None else self._text(status.start_time)
        return structs.replace(bare, conditions=conditions, start_time=start)

    def _condition(self, condition: PodCondition) -> PodCondition:
        bare = self._shared(structs.replace(condition, last_transition_time=None))
        when = condition.last_transition_time
        return bare if when is None else self._shared(structs.replace(bare, last_transition_time=self._text(when)))

    def _shared(self, part: V) -> V:
        key = _encode(part)
        known: V | None = self._parts.get(key)
        if known is not None:
            return known
        if len(self._parts) >= self._at_most:
            self._parts.clear()
        self._parts[key] = part
        return part

    def _text(self, text: str) -> str:
        if len(self._texts) >= self._at_most:
            self._texts.clear()
        return self._texts.setdefault(text, text)
