"""One attempt to place one pod: what it looks at, and the scratch space plugins share.

A Cycle is made for an attempt and thrown away after it.  Everything a hook may read is here — the nodes, the
other objects, the time, the luck — so that the same cycle always gets the same answer.

Scratch values are kept by their class: `cycle.put(Suffix(3))`, later `cycle.get(Suffix)`.  When a plugin asks
"what if that pod were gone", scratch values are cloned first: a value that `add_pod` or `remove_pod` changes
needs a `clone()` method, any other is shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from kubesched.api.time import Instant
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.table import NodeTable
from kubesched.cluster.trial import Trial
from kubesched.framework.errors import KubeschedError
from kubesched.framework.remarks import Remarks
from kubesched.framework.status import Status

T = TypeVar("T")


class Luck(Protocol):
    """Randomness that asking twice does not use up: the same (seed, cycle) draws the same numbers."""

    def below(self, count: int, purpose: str = "") -> int:
        """A number from 0 up to, not including, `count`."""
        ...


class NotWritten(KubeschedError):
    """A scratch value was asked for that nobody has written in this cycle."""

    def __init__(self) -> None:
        super().__init__("not found")


class Examining(Protocol):
    """Who answers for all filters at once."""

    def __call__(self, cycle: Cycle, node: NodeInfo, trial: Trial) -> Status: ...
    def spare(
        self, cycle: Cycle, node: NodeInfo, others: Sequence[PodInfo]
    ) -> Sequence[PodInfo] | Status | None: ...


class Cycle:
    """One pod's attempt.  Plugins read it, and write scratch values and notes."""

    def __init__(
        self,
        pod: PodInfo,
        nodes: Nodes,
        objects: Objects,
        *,
        now: Instant,
        luck: Luck,
        number: int = 0,
        start: int = 0,
        nominated: Mapping[str, Sequence[PodInfo]] | None = None,
    ) -> None:
        self.pod = pod
        self.nodes = nodes  # every node, in the order they are tried
        self.objects = objects
        self.now = now
        self.luck = luck
        self.number = number
        self.start = start  # where in `nodes` the search begins
        self.nominated = nominated or {}  # node name → pods that were promised room there
        self.skip_filter: set[str] = set()  # plugins whose pre_filter, or pre_score, said SKIP
        self.skip_score: set[str] = set()
        self.remarks = Remarks()
        self.scratch: dict[type, Any] = {}
        self.judge: Examining | None = None  # the core's; see fits()

    @property
    def table(self) -> NodeTable:
        return self.nodes.table

    def put(self, value: object) -> None:
        """Keep a value for the later hooks of this cycle; one per class."""
        self.scratch[type(value)] = value

    def get(self, kind: type[T]) -> T:
        """The value of a class put earlier.  Raises NotWritten."""
        value = self.scratch.get(kind)
        if value is None:
            raise NotWritten
        assert isinstance(value, kind)
        return value

    def find(self, kind: type[T]) -> T | None:
        """The value of a class put earlier, or None."""
        value = self.scratch.get(kind)
        assert value is None or isinstance(value, kind)
        return value

    def forget(self) -> None:
        """Begin again: nothing has been put, nobody has said SKIP."""
        self.scratch, self.skip_filter, self.skip_score = {}, set(), set()

    def note(self, text: str) -> None:
        """Leave a remark in the Decision."""
        self.remarks.add(text)

    def fits(self, node: NodeInfo, trial: Trial) -> Status:
        """Would the pod pass every filter on this node, with the trial's moves made?

        The trial's moves are told to the plugins' add_pod and remove_pod, on a clone of their scratch values.
        Pods nominated to the node count as being there, as in the search itself.
        """
        assert self.judge is not None, "only a cycle run by the core can judge"
        return self.judge(self, node, trial)

    def spare(self, node: NodeInfo, others: Sequence[PodInfo]) -> Sequence[PodInfo] | Status | None:
        """Who of these pods cannot stay on the node beside the cycle's pod, if they all left and came back in turn.

        A Status: it would not fit even without them.  None: that must be found out with fits(), on a trial.
        """
        assert self.judge is not None, "only a cycle run by the core can judge"
        return self.judge.spare(self, node, others)

    def cloned_scratch(self) -> dict[type, Any]:
        return {kind: value.clone() if hasattr(value, "clone") else value for kind, value in self.scratch.items()}
