"""Many seeds, on all the cores there are, until the time is up; and what is kept of a run that broke a law."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from datetime import date
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from kubesched.fuzz.drawing import FAULT_NAMES, Mode, draw
from kubesched.fuzz.explore import explore
from kubesched.fuzz.plan import Plan, as_yaml
from kubesched.fuzz.play import Played, play
from kubesched.fuzz.shrink import Shrinker

CHUNK = 5  # seeds a worker takes at a time

Manner: TypeAlias = Mode | Literal["mixed"]
_MIXTURE: tuple[Mode, ...] = ("small", *("liveness",) * 3, *("random",) * 16)
_SMALL_SHARE = 20  # of the variations of a small cluster, one in so many is played where modes are mixed


class Found(Struct, frozen=True):
    """A seed that broke a law."""

    seed: int
    mode: Mode
    plan: Plan
    law: str
    what: str


class Tally(Struct):
    """What a campaign has done so far."""

    seeds: int = 0
    runs: int = 0
    events: int = 0
    faults: int = 0
    binds: int = 0
    changes: int = 0
    seconds: float = 0.0
    sometimes: Counter[str] = Counter()
    found: list[Found] = []

    def add(self, played: Played) -> None:
        self.runs += 1
        self.events += played.events
        self.faults += played.faults
        self.binds += played.binds
        self.changes += played.changes
        self.seconds += played.seconds
        self.sometimes.update(played.sometimes)

    def merge(self, other: Tally) -> None:
        for field in ("seeds", "runs", "events", "faults", "binds", "changes", "seconds"):
            setattr(self, field, getattr(self, field) + getattr(other, field))
        self.sometimes.update(other.sometimes)
        self.found += other.found


def seeds_of(day: date) -> int:
    """The first seed of a day: no two days try the same ones."""
    return day.toordinal() * 100_000


def mode_of(seed: int, manner: Manner) -> Mode:
    """How a seed is played: where modes are mixed, its number says so."""
    return _MIXTURE[seed % len(_MIXTURE)] if manner == "mixed" else manner


def runs_of(seed: int, manner: Manner, faults: Sequence[str]) -> Iterator[Played]:
    """Every run of a seed: one, or of a small cluster its variations, some of them where modes are mixed."""
    mode = mode_of(seed, manner)
    plan = draw(seed, mode, faults)
    if mode == "small":
        yield from explore(plan, _SMALL_SHARE if manner == "mixed" else 1)
    else:
        yield play(plan)


def work(seeds: Sequence[int], manner: Manner, faults: Sequence[str]) -> Tally:
    """What one worker does with some seeds."""
    tally = Tally(sometimes=Counter(), found=[])
    for seed in seeds:
        tally.seeds += 1
        for played in runs_of(seed, manner, faults):
            tally.add(played)
            if played.broken is not None:
                mode = mode_of(seed, manner)
                tally.found.append(Found(seed, mode, played.plan, played.broken.law, str(played.broken)))
                break
    return tally


def follow(beginner: Connection, held_by_it: Connection) -> None:
    """In a worker: end with the process that began it, even when that is killed and can say nothing.

    Whoever waits for work would otherwise wait for ever.  A pipe ends when nobody has its other end open any more.
    """
    held_by_it.close()  # our copy of it

    def wait_for_the_end() -> None:
        with suppress(EOFError, OSError):
            beginner.recv_bytes()
        os._exit(1)

    Thread(target=wait_for_the_end, daemon=True).start()


def campaign(
    seeds: range,
    *,
    mode: Manner = "random",
    faults: Sequence[str] = FAULT_NAMES,
    jobs: int = 1,
    minutes: float | None = None,
    progress: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Run seeds until they are used up or the time is.

    Args:
        progress: told after every chunk of seeds, with everything so far.
    """
    end = None if minutes is None else time.monotonic() + 60 * minutes
    total = Tally(sometimes=Counter(), found=[])
    chunks = (seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK))
    if jobs == 1:
        for chunk in chunks:
            if end is not None and time.monotonic() >= end:
                break
            total.merge(work(chunk, mode, faults))
            progress(total)
        return total
    ours, theirs = Pipe(duplex=False)
    with ours, theirs, ProcessPoolExecutor(jobs, initializer=follow, initargs=(ours, theirs)) as pool:
        under_way: set[Future[Tally]] = set()
        while True:
            while len(under_way) < 2 * jobs and (end is None or time.monotonic() < end):
                chunk = next(chunks, range(0))
                if not chunk:
                    break
                under_way.add(pool.submit(work, chunk, mode, faults))
            if not under_way:
                return total
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                total.merge(future.result())
            progress(total)


def keep(found: Found, folder: Path, commit: str) -> tuple[Path, Plan]:
    """Shrink a failure and leave it where the tests find it, with the journal of its run beside it."""
    small = Shrinker(found.plan, found.law).shrink()
    small = structs.replace(small, story=f"seed {found.seed} at {commit}: {found.what}")
    name = f"{found.law.lower().replace(chr(39), '')}-seed-{found.seed}"
    path = folder / f"{name}.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(as_yaml(small), encoding="utf-8")
    play(small, thorough=1, journal=folder / f"{name}.jsonl")
    return path, small
