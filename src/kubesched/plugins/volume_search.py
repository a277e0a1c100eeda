"""Which nodes a pod's claims can be met on: bound volumes, volumes waiting to be claimed, volumes to be made.

A bound claim needs a node from which its volume can be reached.  A claim that waits for its pod needs, on the
node the pod goes to, the smallest free volume that serves it, or else a provisioner that can make one there.
A Search knows everything about a pod's claims that does not depend on the node; `at()` asks about one node,
`everywhere()` about all, and both give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kubesched.api.labels import IN, quoted
from kubesched.api.objects import (
    CSIDriver,
    CSIStorageCapacity,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)
from kubesched.api.quantity import parse_units
from kubesched.api.selectors import (
    EVERYTHING,
    Selector,
    SelectorError,
    compile_label_selector,
)
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.types import Mask
from kubesched.framework.vector import Verdict
from kubesched.plugins.volume_reach import Reach, matches, reachable, required_by
from kubesched.plugins.volumes import (
    SELECTED_NODE,
    VolumeProblem,
    class_of,
    is_meant_for,
    not_found,
    requested_storage,
    storage_of,
)

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class Room(NamedTuple):
    """Where a provisioner can make a volume: nodes a selector means, and how many bytes at once."""

    where: Selector
    bytes: int


class Binding(NamedTuple):
    """A volume for a claim."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim


class Provision(NamedTuple):
    """A volume to be made for a claim, and where there is room for it if that is known."""

    claim: PersistentVolumeClaim
    room: Room | None


class Found(NamedTuple):
    """What one node offers: the reasons against it, or what would be done for each claim there."""

    reasons: tuple[str, ...]
    bindings: tuple[Binding, ...] = ()
    provisions: tuple[Provision, ...] = ()


# ── volumes that are there ───────────────────────────────────────────────────────────────────────────────────


class Candidate(NamedTuple):
    """A volume that could serve a claim on the nodes it can be reached from."""

    volume: PersistentVolume
    meant: bool  # it says it belongs to this claim, so no other will do
    required: NodeSelector | None


def candidates(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> list[Candidate]:
    """The volumes that could serve a claim, best first: those meant for it, then the smallest."""
    meant: list[Candidate] = []
    sized: list[tuple[int, Candidate]] = []
    wanted = requested_storage(claim) or 0
    try:
        selector = EVERYTHING if claim.spec.selector is None else compile_label_selector(claim.spec.selector)
    except SelectorError as problem:
        text = f"error creating internal label selector for claim: {claim.key}: {problem}"
        raise VolumeProblem(text) from None
    for volume in volumes:
        if volume.spec.claim_ref is not None and not is_meant_for(volume, claim):
            continue
        size = storage_of(volume)
        if size < wanted or not _same_shape(volume, claim) or volume.metadata.deletion_timestamp is not None:
            continue
        if volume.spec.claim_ref is not None:
            meant.append(Candidate(volume, True, required_by(volume)))
        elif _is_free_for(volume, claim, selector):
            sized.append((size, Candidate(volume, False, required_by(volume))))
    sized.sort(key=lambda one: one[0])
    return meant + [candidate for _, candidate in sized]


def _same_shape(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    mode, wanted_mode = volume.spec.volume_mode or "Filesystem", claim.spec.volume_mode or "Filesystem"
    attributes = volume.spec.volume_attributes_class_name or ""
    return mode == wanted_mode and attributes == (claim.spec.volume_attributes_class_name or "")


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector) -> bool:
    return (
        volume.status.phase == "Available"
        and selector.matches(volume.labels)
        and all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)
    )


# ── volumes to be made ───────────────────────────────────────────────────────────────────────────────────────


class Source(NamedTuple):
    """How a claim's class makes volumes: where, and with how much room; None for anywhere, and for any amount."""

    places: tuple[Selector, ...] | None
    rooms: tuple[Room, ...] | None

    def serves(self, node: NodeInfo) -> bool:
        return self.places is None or any(place.matches(node.labels) for place in self.places)

    def room_at(self, node: NodeInfo) -> Room | None:
        return next((room for room in self.rooms or () if room.where.matches(node.labels)), None)


NOWHERE = Source((), None)


def source_of(claim: PersistentVolumeClaim, objects: Objects) -> Source:
    """How volumes for a claim can be made.  Raises VolumeProblem."""
    name = class_of(claim)
    if not name:
        raise VolumeProblem(f"no class for claim {quoted(claim.key)}")
    found = objects.get(StorageClass, name)
    if found is None:
        raise VolumeProblem(f"failed to find storage class {quoted(name)}")
    if found.provisioner in ("", NO_PROVISIONER):
        return NOWHERE
    places = None if not found.allowed_topologies else tuple(_places(found.allowed_topologies))
    return Source(places, _rooms(claim, found, objects))


def _places(terms: Sequence[TopologySelectorTerm]) -> Iterator[Selector]:
    """Terms that say nothing, or nonsense, allow nothing."""
    for term in terms:
        if term.match_label_expressions:
            requirements = tuple(
                LabelSelectorRequirement(key=one.key, operator=IN, values=one.values)
                for one in term.match_label_expressions
            )
            try:
                yield compile_label_selector(LabelSelector(match_expressions=requirements))
            except SelectorError:
                continue


def _rooms(claim: PersistentVolumeClaim, found: StorageClass, objects: Objects) -> tuple[Room, ...] | None:
    """Where there is enough room; None where the driver does not tell how much it has."""
    wanted = requested_storage(claim)
    driver = objects.get(CSIDriver, found.provisioner)
    if wanted is None or driver is None or not driver.spec.storage_capacity:
        return None
    rooms = []
    for capacity in objects.all(CSIStorageCapacity):
        limit = volume_limit(capacity)
        if capacity.storage_class_name == found.name and limit is not None and limit >= wanted:
            try:
                rooms.append(Room(compile_label_selector(capacity.node_topology), _bytes(capacity)))
            except SelectorError:
                continue
    return tuple(rooms)


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can be made, as far as that is known."""
    written = capacity.maximum_volume_size
    if written is None:
        written = capacity.capacity
    try:
        return None if written is None else parse_units(written)
    except ValueError:
        return None


def _bytes(capacity: CSIStorageCapacity) -> int:
    try:
        return 0 if capacity.capacity is None else parse_units(capacity.capacity)
    except ValueError:
        return 0


# ── all claims of a pod ──────────────────────────────────────────────────────────────────────────────────────


class _Open(NamedTuple):
    """A claim to be met: with one of these volumes or, if none of them can be reached, by its source."""

    claim: PersistentVolumeClaim
    candidates: list[Candidate]
    source: Source


class Search:
    """A pod's claims and all that could meet them.  Worked out once for a cycle.

    Args:
        bound: claims that have their volumes.
        delayed: claims that are bound when their pod is placed.
    """

    def __init__(
        self,
        bound: Sequence[PersistentVolumeClaim],
        delayed: Sequence[PersistentVolumeClaim],
        objects: Objects,
    ) -> None:
        self.objects = objects
        self.is_done = not delayed
        self._bound = [objects.get(PersistentVolume, claim.spec.volume_name) for claim in bound]
        promised = [claim for claim in delayed if SELECTED_NODE in claim.annotations]
        others = [claim for claim in delayed if SELECTED_NODE not in claim.annotations]
        self._promised = [_Open(claim, [], source_of(claim, objects)) for claim in promised]
        by_class: dict[str, list[PersistentVolume]] = {class_of(claim): [] for claim in others}
        for volume in objects.all(PersistentVolume) if others else ():
            volumes = by_class.get(class_of(volume))
            if volumes is not None:
                volumes.append(volume)
        # The smallest claim chooses first, so that it does not take what only a larger volume could give another.
        others.sort(key=lambda claim: requested_storage(claim) or 0)
        self._free = [
            _Open(claim, candidates(claim, by_class[class_of(claim)]), source_of(claim, objects)) for claim in others
        ]

    # ── one node ─────────────────────────────────────────────────────────────────────────────────────────────

    def at(self, node: NodeInfo) -> Found:
        """What one node offers the pod's claims."""
        wrong = set()
        for volume in self._bound:
            if volume is None:
                wrong.add(VOLUME_MISSING)
                break
            if not reachable(volume, node, self.objects):
                wrong.add(NODE_CONFLICT)
                break
        bindings: list[Binding] = []
        provisions: list[Provision] = []
        problem = self._meet(node, bindings, provisions)
        if problem:
            wrong.add(problem)
        reasons = (NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_MISSING)
        return Found(tuple(reason for reason in reasons if reason in wrong), tuple(bindings), tuple(provisions))

    def _meet(self, node: NodeInfo, bindings: list[Binding], provisions: list[Provision]) -> str:
        """Find something for every claim that waits; returns why there is none for one of them."""
        if any(one.claim.annotations[SELECTED_NODE] != node.name for one in self._promised):
            return BIND_CONFLICT
        unmet = list(self._promised)
        taken: set[str] = set()
        for one in self._free:
            volume = _choose(one.candidates, node, taken)
            if volume is None:
                unmet.append(one)
            else:
                taken.add(volume.name)
                bindings.append(Binding(volume, one.claim))
        for one in unmet:
            room = one.source.room_at(node)
            if not one.source.serves(node):
                return BIND_CONFLICT
            if one.source.rooms is not None and room is None:
                return NOT_ENOUGH_SPACE
            provisions.append(Provision(one.claim, room))
        return ""

    # ── all nodes ────────────────────────────────────────────────────────────────────────────────────────────

    def everywhere(self, nodes: Nodes) -> Verdict:
        """What is wrong with each node; `at()` about all of them."""
        reach = Reach(nodes, self.objects)
        conflict, missing = self._bound_everywhere(reach)
        unmet, too_small = self._meet_everywhere(reach)
        verdict = Verdict(len(nodes))
        verdict.reject(conflict, NODE_CONFLICT, unresolvable=True)
        verdict.reject(unmet, BIND_CONFLICT, unresolvable=True)
        verdict.reject(too_small, NOT_ENOUGH_SPACE, unresolvable=True)
        verdict.reject(missing, VOLUME_MISSING, unresolvable=True)
        return verdict

    def _bound_everywhere(self, reach: Reach) -> tuple[Mask, Mask]:
        fine: Mask = np.ones(len(reach.nodes), dtype=np.bool_)
        for volume in self._bound:
            if volume is None:
                return ~fine, fine
            fine &= reach.to(volume)
        return ~fine, np.zeros(len(reach.nodes), dtype=np.bool_)

    def _meet_everywhere(self, reach: Reach) -> tuple[Mask, Mask]:
        """Where no volume can be had for some claim, and where there is too little room to make one."""
        nodes = reach.nodes
        open_: Mask = np.ones(len(nodes), dtype=np.bool_)  # nothing wrong so far
        for one in self._promised:
            open_ &= nodes.rows == nodes.table.row_of.get(one.claim.annotations[SELECTED_NODE], -1)
        unmet, too_small = ~open_, np.zeros(len(nodes), dtype=np.bool_)
        for one, needs in [*((one, open_) for one in self._promised), *self._unmatched(reach)]:
            needs = needs & open_
            if not needs.any():
                continue
            refused = needs & ~reach.anywhere(one.source.places)
            unmet |= refused
            if one.source.rooms is not None:
                short = needs & ~refused & ~reach.anywhere(room.where for room in one.source.rooms)
                too_small |= short
                refused |= short
            open_ = open_ & ~refused
        return unmet, too_small

    def _unmatched(self, reach: Reach) -> Iterator[tuple[_Open, Mask]]:
        """For each claim, the nodes on which no volume is there for it."""
        before: list[_Chosen] = []
        for one in self._free:
            choice = _choose_everywhere(one.candidates, reach, before)
            numbers = {candidate.volume.name: k for k, candidate in enumerate(one.candidates)}
            before.append(_Chosen(numbers, choice))
            yield one, choice < 0


class _Chosen(NamedTuple):
    """What a claim would get on each node: the numbers of its candidates by name, and one of them, or -1, per node."""

    numbers: dict[str, int]
    choice: npt.NDArray[np.int64]

    def took(self, volume: str) -> Mask | None:
        """Where the claim would get this volume; None for nowhere."""
        number = self.numbers.get(volume)
        return None if number is None else self.choice == number


def _choose(among: Sequence[Candidate], node: NodeInfo, taken: set[str]) -> PersistentVolume | None:
    labels = node.labels
    for volume, meant, required in among:
        if volume.name in taken:
            continue
        if matches(required, labels):
            return volume
        if meant:
            return None
    return None


def _choose_everywhere(among: Sequence[Candidate], reach: Reach, before: Sequence[_Chosen]) -> npt.NDArray[np.int64]:
    """Which candidate each node would get, beside what the claims before get there; -1 for none."""
    count = len(reach.nodes)
    choice = np.full(count, -1, dtype=np.int64)
    waiting: Mask = np.ones(count, dtype=np.bool_)
    for k, (volume, meant, required) in enumerate(among):
        at = reach.of(required)
        taken = [mask for mask in (chosen.took(volume.name) for chosen in before) if mask is not None]
        free = waiting[at]
        for mask in taken:
            free &= ~mask[at]
        choice[at[free]] = k
        waiting[at[free]] = False
        count -= int(np.count_nonzero(free))
        if meant:  # where it is still to be had but out of reach, no other will do
            waiting &= np.logical_or.reduce(taken) if taken else False
        if not count or (meant and not waiting.any()):
            break
    return choice


def missing_node(name: str) -> str:
    return f"failed to get node {quoted(name)}: {not_found('node', name)}"
