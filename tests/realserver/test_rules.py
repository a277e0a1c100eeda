"""Every rule that is chosen in rules.py is kept, to the word: as recorded, and as the real server answers today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.realserver.compare import ours_in_process, real
from tests.realserver.harness import Options, RealCluster
from tests.realserver.likeness import Asked, Seen, differences, play
from tests.realserver.rules import NAMESPACE, RULES


def asked(group: str) -> list[Asked]:
    return [NAMESPACE, *RULES[group]]


@pytest.mark.parametrize("group", RULES)
def test_rules_are_kept_as_recorded(group: str, golden: Callable[[str, str], None]) -> None:
    sequence = asked(group)
    golden(f"rules-{group}.txt", "".join(map(told, sequence, play(ours_in_process(), sequence))))


@pytest.mark.slow
@pytest.mark.parametrize("group", RULES)
def test_rules_are_those_of_the_real_server(group: str, own_cluster: Callable[[Options], RealCluster]) -> None:
    sequence = asked(group)
    with real(own_cluster(Options())) as ask:
        theirs = play(ask, sequence)
    found = differences(sequence, theirs, play(ours_in_process(), sequence), words=True)
    assert not found, "\n\n".join(found)


SENTENCE = 120  # so much of it tells which one it is


def told(one: Asked, seen: Seen) -> str:
    """A request and what came of it, for people."""
    answer = seen.answer if isinstance(seen.answer, dict) else {}
    lines = [str(one), f"  {seen.status} {answer.get('reason') or ''}".rstrip()]
    causes = (answer.get("details") or {}).get("causes") or ()
    often = Counter(f"{cause.get('field')}: {cause.get('message')}" for cause in causes)
    lines += [f"    {f'{times} times ' if times > 1 else ''}{cause[:SENTENCE]}" for cause, times in often.items()]
    if answer.get("message") and not causes:
        lines.append(f"    {answer['message'][:SENTENCE]}")
    return "\n".join([*lines, "", ""])
