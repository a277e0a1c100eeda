"""One table of moves: from every state there is a way out, nobody returns from the end, and memory is bounded."""

import pytest

from kubesched.api.time import Instant
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.decisions import Decisions
from kubesched.core.lifecycle import MOVES, TERMINAL, Lifecycle
from kubesched.core.luck import SeededLuck, mixed
from kubesched.core.messages import Publish
from kubesched.core.outbox import Outbox
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.errors import IllegalMove
from kubesched.framework.records import IN_FLIGHT, QUEUED, State
from kubesched.framework.steps import Answer
from kubesched.testing import pod

A, B = PodInfo(pod("a")), PodInfo(pod("b"))


def reachable(start: State) -> set[State]:
    found, left = {start}, [start]
    while left:
        here = left.pop()
        for (state, _), target in MOVES.items():
            if state is here and target not in found:
                found.add(target)
                left.append(target)
    return found


def test_every_state_can_be_reached_and_has_a_way_out():
    assert reachable(State.NEW) == set(State)
    for state in State:
        if state is not State.GONE:
            assert State.GONE in reachable(state)
        if state not in TERMINAL:
            assert State.BOUND in reachable(state)


def test_nobody_comes_back_from_the_end():
    assert [move for move in MOVES if move[0] is State.GONE] == []
    assert {target for (state, _), target in MOVES.items() if state is State.BOUND} == {State.GONE}


@pytest.mark.parametrize("state", IN_FLIGHT)
def test_there_is_a_way_back_from_every_point_of_an_attempt(state: State):
    assert {MOVES[state, cause] for cause in ("unfit", "unfit_woken", "broke", "requeued", "gated")} == set(QUEUED)


def test_a_move_the_table_does_not_have_raises_and_changes_nothing():
    life = Lifecycle()
    life.move(A, "admitted")
    for cause in ("bound", "placed", "expired", "nonsense"):
        with pytest.raises(IllegalMove, match=f"pod default/a cannot be '{cause}': it is Active"):
            life.move(A, cause)
    assert life.state(A.uid) is State.ACTIVE
    assert len(life.story("default/a")) == 1


def test_a_record_says_when_what_and_because_of_what():
    life = Lifecycle()
    life.begin(Instant(7), 42)
    life.move(A, "admitted", "PodAdd")
    [record] = life.fresh
    assert (record.at, record.because, record.note) == (7, 42, "PodAdd")
    assert (record.was, record.state, record.cause) == (State.NEW, State.ACTIVE, "admitted")
    assert str(record) == "1970-01-01T00:00:00.000000Z  default/a  New → Active  (admitted)  PodAdd"
    life.begin(Instant(8), 43)
    assert life.fresh == []


def test_memory_is_a_ring_and_sixty_four_moves_a_pod():
    life = Lifecycle(keep=10)
    life.move(A, "admitted")
    for _ in range(50):
        life.move(A, "popped")
        life.move(A, "requeued")
    assert len(life.recent) == 10
    assert len(life.story("default/a")) == 64
    assert life.tally["popped"] == 50
    assert life.tally["landed"] == 50
    life.drop(A.uid, A.key)
    assert life.story("default/a") == ()
    assert len(life.recent) == 10


def test_a_name_leads_to_its_latest_bearer():
    life = Lifecycle()
    life.move(A, "admitted")
    second = PodInfo(pod("a", uid="second"))
    life.move(second, "gated", "Quota")
    assert life.uid_of("default/a") == "second"
    life.drop(A.uid, A.key)
    assert life.uid_of("default/a") == "second"
    assert life.counts() == {State.GATED: 1}


# ── the small things beside it ───────────────────────────────────────────────────────────────────────────────


def decision(info: PodInfo, number: int, placed: bool) -> Decision:
    made = Decision(info, "default-scheduler", number, Instant(0), [], 0)
    made.outcome = Outcome.PLACED if placed else Outcome.UNSCHEDULABLE
    return made


def test_of_pods_that_wait_the_latest_decision_is_kept_however_long_ago():
    kept = Decisions(keep=3)
    first, other = decision(A, 1, placed=False), decision(B, 2, placed=True)
    kept.add(first)
    kept.add(other)
    for number in range(3, 9):
        kept.add(decision(PodInfo(pod(f"p{number}")), number, placed=True))
    assert kept.latest("default/a") is first
    assert kept.latest("default/b") is None, "it is bound, and long ago"
    assert len(kept.recent) == 3
    assert len(kept.fresh) == 8
    kept.begin()
    assert kept.fresh == []
    kept.drop("default/a")
    assert kept.latest("default/a") is None


def test_an_effect_is_handed_out_once_and_answered_once():
    outbox, told = Outbox(), []
    outbox.begin(9)
    words = {"type": "Normal", "reason": "", "action": "", "note": "", "reporter": ""}
    number = outbox.emit(Publish, told.append, regarding="x", uid="", **words)
    assert len(outbox) == 1
    [effect] = outbox.take()
    assert (effect.id, effect.cause) == (number, 9)
    assert outbox.take() == []
    heir = outbox.settle(number)
    heir(Answer())
    assert told == [Answer()]
    assert outbox.settle(number) is None
    assert len(outbox) == 0


def test_luck_is_a_function_of_what_it_is_for():
    assert SeededLuck(7, 3).below(1000) == SeededLuck(7, 3).below(1000)
    draws = [
        SeededLuck(seed, cycle).below(1 << 32, purpose)
        for seed in range(5)
        for cycle in range(5)
        for purpose in ("tie", "offset")
    ]
    assert len(set(draws)) == len(draws)


def test_luck_is_fair():
    counts = [0] * 7
    for cycle in range(7000):
        counts[SeededLuck(1, cycle).below(7)] += 1
    assert 900 < min(counts) <= max(counts) < 1100
    assert bin(mixed(1, 2, 3) ^ mixed(1, 2, 4)).count("1") > 16


def test_luck_is_the_same_everywhere():
    assert [SeededLuck(1, cycle).below(100, "tie") for cycle in range(6)] == [26, 26, 41, 82, 27, 14]
