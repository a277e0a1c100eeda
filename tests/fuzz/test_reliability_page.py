"""The tables of docs/reliability.md are what the judge and the mutants say."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzz.found import FOUND, LISTED, MEDIAN, NOT_APPLYING
from tests.fuzz.mutants import MUTANTS

from kubesched.fuzz.judge import LAWS

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def rows(*head: str) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"


def tables() -> dict[str, str]:
    laws = [*rows("law", "what must hold"), *(f"| {law} | {text} |" for law, text in LAWS.items())]
    seeds = {name: f"{FOUND[name]} | {MEDIAN[name]}" for name in MUTANTS}
    found = (f"| {name} | {MUTANTS[name].story} | {seeds[name]} |" for name in sorted(MUTANTS))
    missing = (f"| {name} | {NOT_APPLYING[name]} |" for name in LISTED if name in NOT_APPLYING)
    return {
        "laws": "\n".join(laws),
        "mutants": "\n".join([*rows("bug", "what goes wrong", "first seed", "median"), *found]),
        "not": "\n".join([*rows("bug", "why it cannot be had here"), *missing]),
    }


@pytest.mark.parametrize("name", ["laws", "mutants", "not"])
def test_a_table_says_what_is(name: str, request: pytest.FixtureRequest) -> None:
    page, table = PAGE.read_text(encoding="utf-8"), tables()[name]
    inside = re.compile(f"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
    if request.config.getoption("golden"):
        PAGE.write_text(inside.sub(lambda _: f"{table}\n", page), encoding="utf-8")
    else:
        assert inside.findall(page) == [f"{table}\n"]
