"""The order in which nodes are tried: zone by zone in turn, so that an early stop does not favour one zone.

Zones stand in the order they were first seen and nodes, inside their zone, in the order they came.  The list
takes the first node of each zone, then the second of each, and so on.

Kept from kube-scheduler: the list a cycle uses is made anew only when a node comes or goes.  A node whose zone
label changes moves in the tree at once, but in the list only at the next coming or going.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kubesched.cluster.types import Rows

_REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def zone_key(labels: Mapping[str, str]) -> str:
    """The zone a node counts to; empty where no label tells.  A beta label wins where it is present."""
    region = next((labels[label] for label in _REGION_LABELS if label in labels), "")
    zone = next((labels[label] for label in _ZONE_LABELS if label in labels), "")
    return f"{region}:\0:{zone}" if region or zone else ""


class ZoneOrder:
    """Rows by zone, and the interleaved list of them."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[int, None]] = {}
        self._zone_of: dict[int, str] = {}
        self._rows: Rows | None = None

    def add(self, row: int, labels: Mapping[str, str]) -> None:
        self._insert(row, zone_key(labels))
        self._rows = None

    def update(self, row: int, labels: Mapping[str, str]) -> None:
        key = zone_key(labels)
        if self._zone_of[row] != key:
            self._take_out(row)
            self._insert(row, key)

    def remove(self, row: int) -> None:
        self._take_out(row)
        self._rows = None

    @property
    def rows(self) -> Rows:
        """All rows, interleaved.  The same array until a node comes or goes."""
        if self._rows is None:
            self._rows = np.array(self._interleaved(), dtype=np.int32)
            self._rows.flags.writeable = False
        return self._rows

    def fork(self) -> ZoneOrder:
        twin = ZoneOrder()
        twin._zones = {key: dict(zone) for key, zone in self._zones.items()}
        twin._zone_of = dict(self._zone_of)
        twin._rows = self._rows
        return twin

    def _interleaved(self) -> list[int]:
        zones = [list(zone) for zone in self._zones.values()]
        longest = max(map(len, zones), default=0)
        return [zone[i] for i in range(longest) for zone in zones if i < len(zone)]

    def _insert(self, row: int, key: str) -> None:
        self._zones.setdefault(key, {})[row] = None
        self._zone_of[row] = key

    def _take_out(self, row: int) -> None:
        key = self._zone_of.pop(row)
        zone = self._zones[key]
        del zone[row]
        if not zone:
            del self._zones[key]
