"""Scenarios as pages: prose, a cluster, and what must happen, in one Markdown file that anyone can read.

A fenced block ```yaml scenario``` holds a scenario; ```yaml cluster``` only its `cluster`, for the many that need
nothing else.  The ```expect``` block behind it is the answer: what happened to each pod, a line each, in order.  It
is not written by hand: play the page, look at what it says, and keep it (`make golden`).

    0s   web  unschedulable  0/1 nodes are available: …  [NodeUnschedulable]
    10s  web  bound          n1

Times are rounded to tenths of a second, for requests take their milliseconds, and a refusal that says what the one
before it said is not told again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, structs

from kubesched.api.time import Duration, Instant, format_duration, milliseconds
from kubesched.config.faults import Fault
from kubesched.config.registry import PluginClass
from kubesched.core.messages import Evict
from kubesched.drive.tap import Moment
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.plain import plain
from kubesched.framework.records import Record, State
from kubesched.sim.reading import NO_PLUGINS, bytes_of, parse_scenario
from kubesched.sim.scenario import InvalidScenario, Scenario

TENTH: Duration = milliseconds(100)
_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
_WRAPPED = {"yaml scenario": b"", "yaml cluster": b"cluster:\n"}


class Example(Struct, frozen=True):
    """One scenario of a page.

    Args:
        answer: the text of its expect block; None where it has none.
        span: where in the page that text stands.
        line: the line its block begins at.
    """

    scenario: Scenario
    answer: str | None = None
    span: tuple[int, int] = (0, 0)
    line: int = 0


class Page(Struct, frozen=True):
    """A Markdown file with scenarios in it."""

    title: str
    text: str
    examples: tuple[Example, ...]

    def with_answers(self, answers: list[str]) -> str:
        """The page with other answers, one for each example that has one."""
        text = self.text
        asked = [example for example in self.examples if example.answer is not None]
        for example, answer in reversed(list(zip(asked, answers, strict=True))):
            text = text[: example.span[0]] + answer + text[example.span[1] :]
        return text


def read_page(path: Path, plugins: Mapping[str, PluginClass] = NO_PLUGINS) -> Page:
    """The page in a Markdown file.  Raises InvalidScenario.

    Args:
        plugins: classes of one's own that the schedulers of its scenarios may name.
    """
    try:
        text = bytes_of(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidScenario([Fault("", f"is not UTF-8 text: {error}")], str(path)) from None
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    page = Page(heading[1].strip() if heading else path.stem, text, ())
    return structs.replace(page, examples=tuple(_examples(page, path, plugins)))


def _examples(page: Page, path: Path, plugins: Mapping[str, PluginClass]) -> Iterator[Example]:
    example: Example | None = None
    for block in _FENCE.finditer(page.text):
        info, line = " ".join(block["info"].split()), page.text.count("\n", 0, block.start("text"))
        if info in _WRAPPED:
            if example is not None:
                yield example
            before = _WRAPPED[info]
            data = before + block["text"].encode()
            scenario = parse_scenario(data, str(path), path.parent, line - before.count(b"\n"), plugins=plugins)
            example = Example(structs.replace(scenario, name=scenario.name or page.title), line=line)
        elif info == "expect":
            if example is None or example.answer is not None:
                problem = "an expect block belongs behind a ```yaml scenario``` or ```yaml cluster``` of its own"
                raise InvalidScenario([Fault("", problem, line=line)], str(path))
            example = structs.replace(example, answer=block["text"], span=block.span("text"))
    if example is None:
        remedy = "begin a block with ```yaml scenario or ```yaml cluster"
        raise InvalidScenario([Fault("", "has no scenario in it", remedy)], str(path))
    yield example


# ── what happened, to be compared ────────────────────────────────────────────────────────────────────────────


class Chronicle:
    """What happened to every pod, in the lines of an expect block; listens to a run."""

    def __init__(self, start: Instant) -> None:
        self._start = start
        self._rows: list[tuple[str, str, str, str]] = []
        self._latest: dict[str, tuple[str, str]] = {}  # pod → what was told of it last
        self._decisions: dict[str, Decision] = {}  # uid → its latest attempt

    def __call__(self, moment: Moment) -> None:
        self._decisions.update((decision.uid, decision) for decision in moment.decisions)
        for record in moment.records:
            self._move(record, self._decisions.get(record.uid))
        for effect in moment.effects:
            if isinstance(effect, Evict):
                by = next((decision.pod for decision in moment.decisions), "")
                self._tell(moment.at, effect.pod, "evicted", f"for {_short(by)}" if by else "")

    def _move(self, record: Record, decision: Decision | None) -> None:
        match record.state, record.cause:
            case State.BOUND, cause:
                what = "bound" if cause == "bound" else "bound by another"
                self._tell(record.at, record.pod, what, record.note)
            case State.GATED, _:
                self._tell(record.at, record.pod, "gated", record.note)
            case State.INVALID, _:
                self._tell(record.at, record.pod, "invalid", record.note)
            case State.WAITING, _:
                self._tell(record.at, record.pod, "waiting", record.note)
            case State.AMBIGUOUS, _:
                self._tell(record.at, record.pod, "ambiguous", record.note)
            case State.GONE, _:
                self._tell(record.at, record.pod, "gone", "")
            case State.PARKED | State.BACKOFF | State.ACTIVE, "unfit" | "unfit_woken" | "broke" | "requeued":
                if decision is not None:
                    self._turned_down(record, decision)

    def _turned_down(self, record: Record, decision: Decision) -> None:
        after = decision.after
        broke = decision.outcome is Outcome.ERROR if after is None else not after.rejected
        names = sorted(decision.rejectors) if after is None else [after.plugin] if after.plugin else []
        by = f"  [{', '.join(names)}]" if names else ""
        self._tell(record.at, record.pod, "error" if broke else "unschedulable", f"{decision.message}{by}")

    def _tell(self, at: Instant, pod: str, what: str, detail: str) -> None:
        if self._latest.get(pod) == (what, detail) and what in ("unschedulable", "error"):
            return
        self._latest[pod] = what, detail
        rounded = Duration((at - self._start + TENTH // 2) // TENTH * TENTH)
        self._rows.append((format_duration(rounded), plain(_short(pod)), what, plain(detail)))

    def text(self) -> str:
        """The lines, in columns."""
        widths = [max((len(row[i]) for row in self._rows), default=0) for i in range(3)]
        return "".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip() + "\n"
            for row in self._rows
        )


def _short(pod: str) -> str:
    """A pod of the default namespace by its name alone."""
    return pod.removeprefix("default/")
