"""The embedded API server answers like the real one: what is drawn from a seed is asked of both, and compared.

Status codes, reasons, what a refusal is about, and every object as it is stored and shown, defaults and all, must be
the same; so must be what a watch tells of it afterwards.  Sentences may differ: where several faults are told at once,
or Go prints a value in its own way.  `python -m tests.realserver.compare 7 8 9` shows those, too, and takes any seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.realserver.compare import ours_in_process, ours_over_https, real
from tests.realserver.drawing import sequence
from tests.realserver.harness import Options, RealCluster
from tests.realserver.likeness import Ask, Asked, Edit, Seen, differences, edited, normal, play

LENGTH = 500
SEEDS = (1, 2, 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_requests_are_answered_alike(
    seed: int, own_cluster: Callable[[Options], RealCluster], tmp_path: Path
) -> None:
    asked = sequence(seed, LENGTH)
    in_process = play(ours_in_process(), asked)
    with ours_over_https(tmp_path) as ask:
        by_wire = play(ask, asked)
    found: list[str] = []
    for _ in range(2):
        # The real server's admission hears of new classes from a watch, and may be a moment late: what
        # counts is a difference that is there twice.
        with real(own_cluster(Options())) as ask:
            theirs = play(ask, asked)
        found = differences(asked, theirs, in_process)
        if not found:
            break
    assert not found, "\n\n".join(found)
    assert not differences(asked, in_process, by_wire), "\n\n".join(differences(asked, in_process, by_wire))


# ── the comparison itself ────────────────────────────────────────────────────────────────────────────────────


def test_a_seed_always_asks_the_same() -> None:
    assert sequence(5, 200) == sequence(5, 200)
    assert sequence(5, 200) != sequence(6, 200)


def test_what_is_asked_meets_every_kind_of_answer() -> None:
    answers = Counter(seen.status for seed in SEEDS for seen in play(ours_in_process(), sequence(seed, LENGTH)))
    assert {200, 201, 400, 403, 404, 405, 409, 415, 422} <= set(answers)
    assert answers[200] + answers[201] > answers.total() / 5


def differing(change: Callable[[int, bytes], tuple[int, bytes]]) -> list[str]:
    """What is found when a server answers a little differently."""
    honest, asked = ours_in_process(), sequence(1, 200)
    theirs = play(ours_in_process(), asked)

    def ask(method: str, path: str, query: str, content_type: str, body: bytes) -> tuple[int, bytes]:
        return change(*honest(method, path, query, content_type, body))

    return differences(asked, theirs, play(ask, asked))


def test_nothing_is_found_where_nothing_differs() -> None:
    assert differing(lambda status, body: (status, body)) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda status, body: (200 if status == 201 else status, body),
        lambda status, body: (status, body.replace(b'"AlreadyExists"', b'"Conflict"').replace(b'"Invalid"', b'"Bad"')),
        lambda status, body: (status, body.replace(b'"terminationMessagePath"', b'"terminationMessageFile"')),
        lambda status, body: (status, body.replace(b'"priority":', b'"rank":')),
    ],
)
def test_a_server_that_answers_otherwise_is_found_out(change: Callable[[int, bytes], tuple[int, bytes]]) -> None:
    assert differing(change)


def test_what_is_a_servers_own_is_no_difference() -> None:
    one = {"metadata": {"uid": "a", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    other = {"metadata": {"uid": "b", "resourceVersion": "8", "creationTimestamp": "2026-02-02T00:00:00Z"}}
    assert normal(one) == normal(other)
    assert normal({"spec": {"nodeName": "a"}}) != normal({"spec": {"nodeName": "b"}})


def test_placeholders_are_filled_in_from_the_servers_own_object() -> None:
    bodies: list[bytes] = []

    def ask(method: str, path: str, query: str, content_type: str, body: bytes) -> tuple[int, bytes]:
        bodies.append(body)
        return 200, b'{"metadata":{"uid":"u-1","resourceVersion":"5"}}'

    ask_: Ask = ask
    seen = play(ask_, [Asked("DELETE", "/x", body={"preconditions": {"uid": "@uid"}}, base="/x")])
    assert bodies == [b"", b'{"preconditions": {"uid": "u-1"}}']
    assert seen == [Seen(200, {"metadata": {"uid": "UID", "resourceVersion": "VERSION"}})]


def test_edits_follow_only_what_is_there() -> None:
    obj = {"spec": {"containers": [{"name": "c"}]}}
    assert edited(obj, [Edit(("spec", "containers", 0, "image"), "x")])["spec"]["containers"][0]["image"] == "x"
    assert edited(obj, [Edit(("spec", "containers", 3, "image"), "x")]) == obj
    assert edited(obj, [Edit(("spec", "containers"), None)]) == {"spec": {}}
