"""The one loop between a core that decides and a world that carries out.

A world says what time it is, performs effects and hands out events; the loop feeds the core.  Simulated, embedded
and live differ only in their world.  Everything that reaches the core is written to the journal first, so a
journal is a complete account: fold it, and the same run happens again.
"""

from __future__ import annotations

from kubesched.core.messages import Event, Tick
from kubesched.drive.journal import Journal
from kubesched.drive.world import Actor, World


def drive(core: Actor, world: World, journal: Journal | None = None, *, burst: int = 256) -> None:
    """Run until nothing will ever happen again.

    Args:
        burst: how many events are folded in before the core may work: a watch storm cannot starve the queue, nor
            the queue the watch.
    """
    while turn(core, world, journal, burst=burst) or world.sleep(core.deadline):
        pass


def turn(core: Actor, world: World, journal: Journal | None = None, *, burst: int = 256) -> bool:
    """One round: the news, and then one piece of work.  False: there was no work, and it is time to sleep."""
    for _ in range(burst):
        event = world.take()
        if event is None:
            break
        step(core, world, journal, event)
    if core.ready or (core.deadline is not None and core.deadline <= world.now):
        step(core, world, journal, Tick())
        return True
    return False


def step(core: Actor, world: World, journal: Journal | None, event: Event) -> None:
    """One event: written down, folded in, and what follows performed."""
    now = world.now
    if journal is not None:
        journal.append(now, event)
    effects = core.handle(event, now)
    if journal is not None:
        journal.answer(effects)
    world.perform(effects)
