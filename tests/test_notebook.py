"""Rows in, a table and a picture out."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.notebook import BadFrame, place
from kubesched.testing import node


class OnlySsd:
    def filter(self, cycle: Any, pod: Any, node: Any) -> Any:
        from kubesched import SUCCESS, unschedulable

        return SUCCESS if node.labels.get("disk") == "ssd" else unschedulable("slow <disk>")

    def score(self, cycle: Any, pod: Any, node: Any) -> int:
        return int(node.name[-1])


class Frame:
    """As pandas would hand out its rows."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = rows

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return [dict(row) for row in self.rows]


NODES = Frame(
    {"name": "n1", "cpu": 4, "label.disk": "ssd"},
    {"name": "n2", "cpu": float("nan"), "label.disk": "ssd"},
    {"name": "n3", "cpu": 4, "label.disk": None},
)


def test_pods_go_where_the_plugin_says_and_the_table_says_why() -> None:
    placed = place(NODES, ["a", {"name": "b", "cpu": 1}], OnlySsd())

    assert placed.nodes == {"a": "n2", "b": "n2"}
    assert placed.table("b") == [
        {"node": "n1", "fits": True, "chosen": False, "OnlySsd": 1, "total": 1},
        {"node": "n2", "fits": True, "chosen": True, "OnlySsd": 2, "total": 2},
        {"node": "n3", "fits": False, "chosen": False, "plugin": "OnlySsd", "reason": "slow <disk>"},
    ]
    assert repr(placed) == "a → n2\nb → n2"


def test_without_plugins_it_is_kubernetes_own_profile_and_each_pod_sees_those_before() -> None:
    placed = place([node("n1", cpu=1), node("n2", cpu=1)], [{"name": name, "cpu": 1} for name in "abc"])
    assert sorted(str(one) for one in placed.nodes.values()) == ["None", "n1", "n2"]
    assert placed.why("c").message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_the_page_escapes_whatever_it_was_given() -> None:
    page = place(NODES, ["a"], OnlySsd())._repr_html_()
    assert page.startswith("<svg ")
    assert "<td>n2</td>" in page
    unhappy = place([{"name": "n9"}], ["a"], OnlySsd())._repr_html_()
    assert "slow &lt;disk&gt;" in unhappy
    assert "<disk>" not in unhappy


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"cpu": 1}, "row 0 of the nodes: expected a name"),
        (7, "row 0 of the nodes: expected a name, or columns of which one is called name, not 7"),
        ({"name": "n1", "cpu": "lots"}, "node 'n1': "),
        ({"name": "n1", "taints": 7}, "row 0 of the nodes, 'n1': "),
    ],
)
def test_a_row_that_is_no_node_is_named(row: Any, sentence: str) -> None:
    with pytest.raises(BadFrame) as refused:
        place([row], ["a"])
    assert str(refused.value).startswith(sentence)
