"""All boards, by profile and by what the plugins read of a pod; the least recently used are given up first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence

from kubesched.core.board.board import Board, asked_of, calm_of
from kubesched.core.board.history import REMEMBERED
from kubesched.framework.cycle import Cycle
from kubesched.framework.hooks import Plugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import Status

BOARDS_AT_MOST = 256
CELLS_AT_MOST = 64_000_000  # rows times columns over all boards: about half a gigabyte

_NOTHING = object()


class Boards:
    """Boards by profile and signature.

    Args:
        at_most: how many there are at once.
        cells: how many rows times columns all of them have together, at most.
        remembered: versions of each that decisions may still ask for.
    """

    def __init__(
        self, at_most: int = BOARDS_AT_MOST, *, cells: int = CELLS_AT_MOST, remembered: int = REMEMBERED
    ) -> None:
        self._at_most = at_most
        self._cells = cells
        self._remembered = remembered
        self._boards: OrderedDict[tuple[str, Hashable], Board] = OrderedDict()
        self._signatures: OrderedDict[tuple[str, bytes, Hashable], Hashable] = OrderedDict()
        self._met: OrderedDict[tuple[str, Hashable], None] = OrderedDict()  # kinds of pods met at least once
        self._able: dict[str, bool] = {}
        self._asked: dict[str, tuple[Plugin, ...]] = {}
        self._calm: Hashable = None
        self._contexts: dict[str, Hashable] = {}  # by profile, as long as it is calm
        self.hits = 0

    def __len__(self) -> int:
        return len(self._boards)

    @property
    def cells(self) -> int:
        """How many rows times columns are kept."""
        return sum(board.cells for board in self._boards.values())

    def find(self, cycle: Cycle, profile: Profile) -> Board | None:
        """The board for the cycle's pod; None where there cannot be one."""
        if not self._possible(cycle, profile):
            return None
        signature = self._signature(cycle, profile)
        if signature is None:
            return None
        key = (profile.name, signature)
        board = self._boards.get(key)
        if board is not None and board.serves(cycle.table):
            self._boards.move_to_end(key)
            return board
        if board is None and key not in self._met:
            self._meet(key)
            return None  # a pod that stays the only one of its kind is cheaper the long way
        board = Board(profile, cycle.table, self._remembered)
        if board.cells > self._cells:
            return None
        self._boards[key] = board
        self._boards.move_to_end(key)
        self._make_room()
        return board

    def drop(self) -> None:
        """Give all of them up."""
        self._boards.clear()

    def _meet(self, key: tuple[str, Hashable]) -> None:
        self._met[key] = None
        if len(self._met) > 16 * self._at_most:
            self._met.popitem(last=False)

    def _make_room(self) -> None:
        kept = self.cells
        while len(self._boards) > self._at_most or kept > self._cells:
            kept -= self._boards.popitem(last=False)[1].cells

    # ── which pods are alike ─────────────────────────────────────────────────────────────────────────────────

    def _possible(self, cycle: Cycle, profile: Profile) -> bool:
        able = self._able.get(profile.name)
        if able is None:
            asked = self._asked[profile.name] = asked_of(profile)
            able = all(getattr(plugin, "board", None) in ("node", "row") for plugin in asked)
            able = self._able[profile.name] = able and not profile.extenders
        undisturbed = not cycle.nominated and not cycle.table.trials
        return able and undisturbed and not cycle.pod.pod.status.nominated_node_name

    def _signature(self, cycle: Cycle, profile: Profile) -> Hashable | None:
        """What the profile's plugins read of a pod; worked out once per distinct pod spec."""
        calm = calm_of(cycle)
        if calm != self._calm:
            self._calm = calm
            self._contexts.clear()
        context = self._contexts.get(profile.name)
        if context is None:
            asked = (plugin for plugin in self._asked[profile.name] if hasattr(plugin, "context"))
            context = self._contexts[profile.name] = tuple(plugin.context(cycle) for plugin in asked)
        key = (profile.name, cycle.pod.fingerprint, context)
        known = self._signatures.get(key, _NOTHING)
        if known is _NOTHING:
            known = self._signatures[key] = _signature(cycle, self._asked[profile.name])
            if len(self._signatures) > 16 * self._at_most:
                self._signatures.popitem(last=False)
        return known


def _signature(cycle: Cycle, plugins: Sequence[Plugin]) -> Hashable | None:
    parts: list[Hashable] = []
    for plugin in plugins:
        alike = plugin.alike(cycle, cycle.pod) if hasattr(plugin, "alike") else plugin.sign_pod(cycle.pod)
        if alike is None or isinstance(alike, Status):
            return None
        parts.append(alike)
    return tuple(parts)
