"""The pages that are made from the program: the tutorial's, the states of a pod, the flags and the metrics.

    python -m tools.docs            write them all
    python -m tools.docs tutorial   write those whose path has this in it

A test holds them fresh, so whoever changes what they are made from runs `make docs` and looks at the difference.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from tools.reference import commands_page, flags_page, metrics_page

from kubesched.core.lifecycle import MOVES, TERMINAL
from kubesched.framework.records import IN_FLIGHT, State
from kubesched.telemetry.words import HAPPENED, STATE_WORDS
from kubesched.tutorial import MODULES, Stage, stage

ROOT = Path(__file__).parents[1]

# ── the tutorial ─────────────────────────────────────────────────────────────────────────────────────────────


def stage_path(stage: Stage) -> str:
    return f"docs/tutorial/{stage.number}-{stage.title.replace(' ', '-')}.md"


def stage_page(number: int) -> str:
    """A stage: what it says of itself, what it has that the one before has not, and what happens when it is played."""
    this = stage(number)
    _, _, text = this.text.partition("\n")
    lines = [f"# Stage {number}: {this.title}", "", f"**{_lesson(this)}.**", "", text.strip(), ""]
    if this.after is None:
        lines += ["## The program", "", "```python", this.source.rstrip("\n"), "```", ""]
    else:
        before = stage(number - 1)
        lines += [f"## What stage {before.number} did not have", "", "```diff"]
        lines += [this.difference().rstrip("\n"), "```", ""]
    lines += ["## What happens", "", f"`kubesched tutorial {number}` plays it:", ""]
    lines += ["```", *this.lines(), "```", "", f"`kubesched tutorial {number} --show` prints the whole program.", ""]
    lines += [" · ".join(_neighbours(number))]
    return "\n".join(lines) + "\n"


def _neighbours(number: int) -> Iterator[str]:
    for other, word in ((number - 1, "before"), (number + 1, "next")):
        if 1 <= other <= len(MODULES):
            neighbour = stage(other)
            yield f"[{word}: {neighbour.title}]({Path(stage_path(neighbour)).name})"
    yield "[all stages](README.md)"


def _lesson(stage: Stage) -> str:
    """What a stage teaches: the rest of its first line."""
    lesson = stage.text.partition("\n")[0].partition(": ")[2].rstrip(".")
    return lesson[:1].upper() + lesson[1:]


def tutorial_index() -> str:
    rows = []
    for number in range(1, len(MODULES) + 1):
        this = stage(number)
        rows.append(f"| [{number} {this.title}]({Path(stage_path(this)).name}) | {_lesson(this)} |")
    return TUTORIAL.format(rows="\n".join(rows))


TUTORIAL = """\
# Seven schedulers

Each is the real core with more of it switched on, and a few lines longer than the one before. They run in virtual
time, so even five minutes of waiting are over at once: `kubesched tutorial 1` plays the first, `--show` prints a
stage's program, `--diff` what it has that the one before has not.

| stage | what it teaches |
|---|---|
{rows}

There are two little clusters. In stages 1, 2, 6 and 7 nine nodes are cordoned, `pod1` is created, and after three
seconds `node10` arrives, open. In stages 3 to 5 ten open nodes wait for `pod1` and `pod3`.
"""

# ── the states of a pod ──────────────────────────────────────────────────────────────────────────────────────


def lifecycle_page() -> str:
    """The states, their picture, and every legal move."""
    states = [f"| **{state.value}** | {STATE_WORDS[state]} |" for state in State]
    return LIFECYCLE.format(
        states="\n".join(states),
        picture="\n".join(_picture()),
        anywhere="\n".join(_anywhere()),
        moves="\n".join(_moves()),
    )


def _by_cause() -> Mapping[str, dict[State, State]]:
    causes: dict[str, dict[State, State]] = {}
    for (state, cause), target in MOVES.items():
        causes.setdefault(cause, {})[state] = target
    return causes


def _is_from_anywhere(cause: str) -> bool:
    """Whether a move says nothing of where the pod was: drawn, it would hide the picture."""
    found = _by_cause()[cause]
    return len(set(found.values())) == 1 and {*IN_FLIGHT, State.ACTIVE, State.PARKED} <= found.keys()


def _picture() -> Iterator[str]:
    """The table as a state diagram; the way back from every state in flight is one arrow."""
    yield "stateDiagram-v2"
    yield "    direction LR"
    yield "    [*] --> New"
    yield "    state InFlight {"
    for state in IN_FLIGHT:
        yield f"        {state.value}"
    yield "    }"
    arrows: dict[tuple[str, str], list[str]] = {}
    for cause, found in _by_cause().items():
        if _is_from_anywhere(cause):
            continue
        rest = dict(found)
        if all(state in rest for state in IN_FLIGHT) and len({rest[state] for state in IN_FLIGHT}) == 1:
            arrows.setdefault(("InFlight", rest[IN_FLIGHT[0]].value), []).append(cause)
            rest = {state: target for state, target in rest.items() if state not in IN_FLIGHT}
        for state, target in rest.items():
            arrows.setdefault((state.value, target.value), []).append(cause)
    for (state, target), causes in arrows.items():
        yield f"    {state} --> {target}: {', '.join(causes)}"
    for end in TERMINAL:
        yield f"    {end.value} --> [*]"


def _anywhere() -> Iterator[str]:
    for cause, found in _by_cause().items():
        if _is_from_anywhere(cause):
            [target] = set(found.values())
            never = [state.value for state in State if state not in found]
            yield f"- `{cause}` leads to **{target.value}** from anywhere but {' and '.join(never)}."


def _moves() -> Iterator[str]:
    for cause, found in _by_cause().items():
        targets: dict[State, list[str]] = {}
        for state, target in found.items():
            targets.setdefault(target, []).append(state.value)
        for target, states in targets.items():
            words = HAPPENED[cause].replace("{note}", "…")
            yield f"| `{cause}` | {', '.join(states)} | **{target.value}** | a pod {words} |"


LIFECYCLE = """\
# The states of a pod

A pod is in exactly one of these, and moves between them only as the table in `core/lifecycle.py` allows; this page is
made from it. A move the table does not have raises, with the story of the pod, because a scheduler that has lost track
of a pod must not go on quietly.

| state | a pod in it |
|---|---|
{states}

## The picture

```mermaid
{picture}
```

Three moves say nothing of where the pod was, and are not drawn:

{anywhere}

## Every move

The cause is the word in a record; the last column is how a story tells it.

| cause | from | to | in words |
|---|---|---|---|
{moves}
"""

# ── all of them ──────────────────────────────────────────────────────────────────────────────────────────────


def pages() -> dict[str, Callable[[], str]]:
    """Every page that is made, by its path, and how."""
    made: dict[str, Callable[[], str]] = {
        "docs/commands.md": commands_page,
        "docs/flags.md": flags_page,
        "docs/lifecycle.md": lifecycle_page,
        "docs/metrics.md": metrics_page,
        "docs/tutorial/README.md": tutorial_index,
    }
    for number in range(1, len(MODULES) + 1):
        made[stage_path(stage(number))] = partial(stage_page, number)
    return made


def main(wanted: str) -> None:
    for name, make in pages().items():
        if wanted in name:
            path = ROOT / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(make(), encoding="utf-8")
            print(name)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
