"""The order in which nodes are tried, after nodes came, went and moved.

Rules: zones take turns in the order they were first seen, nodes inside a zone in the order they came; an empty zone
is forgotten and comes back last; a region alone makes a zone, and an old label counts before a new one.  A node whose
zone changes moves at once, which shows at the next coming or going.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kubesched.cluster.order import ZoneOrder, zone_key

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        pytest.param({}, "", id="nowhere"),
        pytest.param({"zone": "a"}, "", id="some other label"),
        pytest.param({ZONE: "a"}, ":\0:a", id="a zone"),
        pytest.param({REGION: "r"}, "r:\0:", id="a region"),
        pytest.param({REGION: "r", ZONE: "a"}, "r:\0:a", id="both"),
        pytest.param({OLD_REGION: "r", OLD_ZONE: "a"}, "r:\0:a", id="by the old labels"),
        pytest.param({OLD_REGION: "old", REGION: "new", ZONE: "a"}, "old:\0:a", id="an old region counts first"),
        pytest.param({OLD_ZONE: "", ZONE: "a"}, "", id="even if it is empty"),
        pytest.param({ZONE: "", REGION: ""}, "", id="empty labels are none"),
    ],
)
def test_where_a_node_is(labels: Mapping[str, str], key: str) -> None:
    assert zone_key(labels) == key


def after(script: str) -> list[int]:
    """Nodes are numbers and zones letters: `+1a` comes into zone a, `-1` goes, `>1b` moves; `_` is no zone.

    A dot looks at the list, which is kept from then on until a node comes or goes.
    """
    order = ZoneOrder()
    for step in script.split():
        if step == ".":
            assert order.rows is order.rows
            continue
        verb, number, zone = step[0], int(step[1:].rstrip("abcd_")), step.lstrip("+->0123456789")
        labels = {ZONE: zone} if zone not in ("", "_") else {}
        if verb == "-":
            order.remove(number)
        else:
            (order.add if verb == "+" else order.update)(number, labels)
    return order.rows.tolist()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("", [], id="nobody"),
        pytest.param("+1a", [1], id="one"),
        pytest.param("+1_ +2_ +3_", [1, 2, 3], id="without zones, as they came"),
        pytest.param("+1a +2a +3b", [1, 3, 2], id="zones take turns"),
        pytest.param("+1a +2b +3c +4a +5b +6c", [1, 2, 3, 4, 5, 6], id="evenly"),
        pytest.param("+1a +2a +3a +4b", [1, 4, 2, 3], id="until one is used up"),
        pytest.param("+1b +2a +3b +4a +5b", [1, 2, 3, 4, 5], id="in the order zones were seen, not by name"),
        pytest.param("+1_ +2a +3_ +4a", [1, 2, 3, 4], id="no zone is a zone too"),
        pytest.param("+1a +2b +3a -1", [3, 2], id="a node goes"),
        pytest.param("+1a +2b +3a -2", [1, 3], id="and its zone with it"),
        pytest.param("+1a +2b +3c -1 +4a", [2, 3, 4], id="a zone that comes back comes last"),
        pytest.param("+1a +2b -1 -2", [], id="all go"),
        pytest.param("+1a +2b -1 +1a", [2, 1], id="a node that comes back is new"),
        pytest.param("+1a +2a +3b -1 +1a", [2, 3, 1], id="and behind the others of its zone"),
        pytest.param("+1a +2a +3b >1b", [2, 3, 1], id="a node that moves is the last there"),
        pytest.param("+1a +2b >1b", [2, 1], id="the zone it leaves empty is forgotten"),
        pytest.param("+1a +2b >1b >1a", [2, 1], id="and new when it is back"),
        pytest.param("+1a +2b >1a", [1, 2], id="to move to where it is, is nothing"),
        pytest.param("+1a +2b >1_", [2, 1], id="it loses its zone"),
        pytest.param("+1a +2b . >1b", [1, 2], id="a list that was looked at stays as it is"),
        pytest.param("+1a +2a +3b . >1b +4a", [2, 3, 4, 1], id="until a node comes"),
        pytest.param("+1a +2a +3b +4c . >1b -4", [2, 3, 1], id="or goes"),
        pytest.param("+1a +2b +3a +4c -2 +5b +6d -3 +7a +8d", [1, 4, 5, 6, 7, 8], id="a long story"),
    ],
)
def test_who_is_tried_first(script: str, expected: Sequence[int]) -> None:
    assert after(script) == expected


def test_a_fork_goes_its_own_way() -> None:
    order = ZoneOrder()
    for row, zone in enumerate("aab"):
        order.add(row, {ZONE: zone})
    fork = order.fork()
    fork.remove(0)
    fork.add(3, {ZONE: "b"})
    assert (order.rows.tolist(), fork.rows.tolist()) == ([0, 2, 1], [1, 2, 3])
