"""A Verdict loses nothing: whatever scalar answers are written into it, they come out again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.status import SUCCESS, Code, Status, pending, unresolvable, unschedulable
from kubesched.framework.vector import REASONS_AS_BITS, Verdict

reasons = st.lists(st.sampled_from([f"reason {i}" for i in range(80)]), min_size=1, max_size=4, unique=True)
answers = st.one_of(
    st.just(SUCCESS),
    st.builds(lambda make, why: make(*why), st.sampled_from((unschedulable, unresolvable, pending)), reasons),
)


def written(statuses: list[Status]) -> Verdict:
    verdict = Verdict(len(statuses))
    for row, status in enumerate(statuses):
        verdict.answer(row, status)
    return verdict


def alike(one: Status, other: Status) -> bool:
    """The order of a status's reasons is lost where they are bits, and nothing else."""
    return one.code is other.code and sorted(one.reasons) == sorted(other.reasons)


@given(statuses=st.lists(answers, max_size=60))
def test_every_answer_comes_out_as_it_went_in(statuses: list[Status]) -> None:
    verdict = written(statuses)
    assert all(alike(verdict.status(row), status) for row, status in enumerate(statuses))
    assert verdict.ok.tolist() == [status.ok for status in statuses]
    counted: dict[str, int] = {}
    for status in statuses:
        for reason in status.reasons:
            counted[reason] = counted.get(reason, 0) + 1
    assert dict(verdict.counts()) == counted
    assert verdict.fault == ""


@given(statuses=st.lists(answers, max_size=60), data=st.data())
def test_a_part_has_the_answers_of_its_rows(statuses: list[Status], data: st.DataObject) -> None:
    where = np.array([data.draw(st.booleans()) for _ in statuses], dtype=np.bool_)
    part = written(statuses).take(where)
    kept = [status for status, taken in zip(statuses, where, strict=True) if taken]
    assert all(alike(part.status(row), status) for row, status in enumerate(kept))
    assert sum(part.counts().values()) == sum(len(status.reasons) for status in kept)


def test_more_reasons_than_bits_are_kept_row_by_row() -> None:
    many = [unschedulable(f"reason {i}") for i in range(REASONS_AS_BITS + 20)]
    verdict = written(many)
    assert [verdict.status(row) for row in range(len(many))] == many


def test_a_reason_given_twice_counts_twice() -> None:
    verdict = written([unschedulable("twice", "twice")])
    assert verdict.reasons(0) == ("twice", "twice")
    assert verdict.counts() == {"twice": 2}


def test_a_row_turned_down_again_has_both_reasons_and_the_harder_no() -> None:
    verdict = Verdict(3)
    verdict.reject(np.array([True, True, False]), "first", unresolvable=np.array([True, False, False]))
    verdict.reject(np.array([True, False, True]), "second")
    assert [verdict.status(row) for row in range(3)] == [
        unresolvable("first", "second"),
        unschedulable("first"),
        unschedulable("second"),
    ]


def test_an_answer_no_filter_may_give_is_a_fault() -> None:
    verdict = Verdict(2)
    verdict.answer(1, Status(Code.ERROR, ("lost my notes",)))
    assert verdict.fault == "lost my notes"
    verdict.codes[:] = [0, 77]
    verdict.bits[:] = 0
    assert verdict.fault == "a filter does not answer with code 77"
