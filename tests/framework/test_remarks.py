"""What is remarked in an attempt: each thing once, in order, and not without end."""

from kubesched.framework.remarks import MOST, Remarks
from kubesched.framework.tools import Note


def test_a_note_is_a_sentence_with_its_values() -> None:
    assert str(Note("Mine", "Counted", (("nodes", "3"), ("zone", "a")))) == "Mine: Counted (nodes=3, zone=a)"
    assert str(Note("Mine", "Nothing to count")) == "Mine: Nothing to count"


def test_remarks_stand_in_the_order_they_were_made_and_once() -> None:
    remarks = Remarks()
    for remark in ("b", Note("Mine", "a"), "b", Note("Mine", "a"), Note("Yours", "a")):
        remarks.add(remark)
    assert list(remarks) == ["b", "Mine: a", "Yours: a"]
    assert remarks.of_the_core() == ["b"]


def test_beyond_a_hundred_they_are_only_counted() -> None:
    remarks = Remarks()
    for i in range(5_000):
        remarks.add(Note("Mine", "Looked at a node", (("node", f"n{i}"),)))
    told = list(remarks)
    assert len(told) == MOST + 1
    assert told[0] == "Mine: Looked at a node (node=n0)"
    assert told[-1] == "and 4,900 more"
