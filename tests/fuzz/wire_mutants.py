"""Mutants of the client half: lists, watches, the Lease."""

from __future__ import annotations

from typing import Any

from tests.fuzz import needing
from tests.fuzz.mutant import Patch, mutant, nothing

from kubesched.api.objects import Node, Pod
from kubesched.api.time import Duration, Instant
from kubesched.wire import reflector
from kubesched.wire.barrier import Barrier
from kubesched.wire.elector import Elector
from kubesched.wire.known import Known
from kubesched.wire.reflector import Phase, Reflector
from kubesched.wire.status import Status

# ── the wire ─────────────────────────────────────────────────────────────────────────────────────────────────


@mutant(
    "BM-16",
    "the end of a node is missed, and a new list does not tell of it (#94437, #56261)",
    needing.nodes_go_unheard_by_wire,
)
def bm_16(patch: Patch) -> None:
    _list_tells_no_end_of(patch, Node)


@mutant("BM-17", "the end of a pod is missed, and a new list does not tell of it (#55587, #51313)", needing.wired)
def bm_17(patch: Patch) -> None:
    _list_tells_no_end_of(patch, Pod)


def _list_tells_no_end_of(patch: Patch, view: type) -> None:
    replace = Known.replace

    def without(self: Known, objects: Any) -> Any:
        kept = {key: old for key, old in self.objects.items() if isinstance(old, view)}
        return replace(self, {**kept, **objects})

    patch.setattr(Known, "replace", without)


@mutant("BM-41", "a new leader has not heard of the last binds of the old one (#137308)", needing.elected)
def bm_41(patch: Patch) -> None:
    patch.setattr(Barrier, "passed", property(lambda self: self.begun))


@mutant(
    "BM-42",
    "the Lease is lost, and the scheduler goes on (#81306, #23731, #44887)",
    needing.lease_out_of_reach,
    "liveness",
)
def bm_42(patch: Patch) -> None:
    patch.setattr(Elector, "_lose", nothing)
    patch.setattr(Elector, "leads_until", property(lambda self: Instant(1 << 62)))


@mutant("BM-43", "the first list is one that somebody had in his cache (#59848)", needing.alone)
def bm_43(patch: Patch) -> None:
    gather, selection = Reflector._gather, Reflector._selection

    def listing(self: Reflector, now: Instant) -> None:
        self._streams = False
        gather(self, now)

    def any_version(self: Reflector) -> Any:
        first = self.phase is Phase.GATHERING and not self.synced
        return (*selection(self), *((("resourceVersion", "0"),) if first else ()))

    patch.setattr(Reflector, "_gather", listing)
    patch.setattr(Reflector, "_selection", any_version)


@mutant(
    "BM-44",
    "a server is behind what was seen already, and is asked the same for ever (#91073)",
    needing.gaps_on_the_wire,
)
def bm_44(patch: Patch) -> None:
    patch.setattr(Status, "ahead", property(lambda self: False))
    patch.setattr(reflector, "FAILED_TIMES", 1 << 30)


@mutant("BM-45", "a connection dies without a word, and nobody notices (#87615, #48638)", needing.wired)
def bm_45(patch: Patch) -> None:
    patch.setattr(reflector, "QUIET_MAX", Duration(1 << 60))


@mutant("BM-47", "a watch ends at once, again and again, and is asked for in a busy loop (#104171)", needing.wired)
def bm_47(patch: Patch) -> None:
    def at_once(self: Reflector, stream: Any, reply: Any, now: Instant) -> None:
        (self._gather if self.phase is Phase.GATHERING else self._watch)(now)

    patch.setattr(Reflector, "_ended", at_once)


@mutant(
    "BM-53",
    "history was forgotten, and is asked for again (kr8s#476, kubernetes_asyncio#327)",
    needing.gaps_on_the_wire,
)
def bm_53(patch: Patch) -> None:
    patch.setattr(Status, "expired", property(lambda self: False))
    patch.setattr(reflector, "FAILED_TIMES", 1 << 30)
