"""How many pods wait where, after whatever has happened: what the metric `pending_pods` says.

A pod is active, backing off, unschedulable (it sleeps), or gated; one in flight is counted nowhere.  A script is a line
of steps, each at the second behind the `@`: `+a` comes, `!` takes the next out, `-a` is turned down and sleeps, `~a`
broke and backs off, `xa` is deleted, `*` an event that helps, `/` one that does not, `.` time passes, `^a` is asked for
by name.  Capital letters are pods held back by a gate; `oA` opens it, `ca` closes one.
"""

from __future__ import annotations

import pytest
from tests.core.queue.bench import NODE_ADD, PVC_ADD, Bench, Gate, Rejector, at, pod

from kubesched.core.queue import PriorityQueue
from kubesched.framework.events import Hint

FIT = Rejector("Fit", NODE_ADD)


class Script:
    """A queue, and the steps of a script."""

    def __init__(self, *, early: bool) -> None:
        self.gate = Gate("Gate", *"ABC", events=[Hint("Node", NODE_ADD.action)])
        self.world = Bench(FIT, self.gate, queue=PriorityQueue(pop_from_backoff=early))

    def step(self, verb: str, name: str, seconds: float) -> None:
        world = self.world
        match verb:
            case "+":
                world.add(pod(name), seconds)
            case "!":
                world.pop(seconds)
            case "-":
                world.back(name, "Fit", seconds=seconds)
            case "~":
                world.back(name, seconds=seconds)
            case "x":
                world.queue.delete(f"uid-{name}", at(seconds))
            case "*":
                world.notify(NODE_ADD, seconds)
            case "/":
                world.notify(PVC_ADD, seconds)
            case ".":
                world.tick(seconds)
            case "^":
                world.queue.activate([f"uid-{name}"], at(seconds))
            case "o":
                self.gate.closed.discard(name)
            case "c":
                self.gate.closed.add(name)
            case _:
                raise AssertionError(f"no step is called {verb}")


def counted(script: str, *, early: bool = False) -> str:
    told = Script(early=early)
    for step in script.split():
        what, _, when = step.partition("@")
        told.step(what[0], what[1:], float(when or 0))
    counts = told.world.queue.counts()
    assert list(counts) == ["active", "backoff", "unschedulable", "gated"]
    return " ".join(map(str, counts.values()))


@pytest.mark.parametrize(
    ("script", "counts"),
    [
        pytest.param("", "0 0 0 0", id="nobody"),
        pytest.param("+a +b +c", "3 0 0 0", id="new pods are active"),
        pytest.param("+a +b !", "1 0 0 0", id="one in flight is counted nowhere"),
        pytest.param("+a ! -a", "0 0 1 0", id="turned down, it sleeps"),
        pytest.param("+a ! ~a", "0 1 0 0", id="broken, it backs off"),
        pytest.param("+a ! * -a", "0 1 0 0", id="helped in flight, it backs off"),
        pytest.param("+a ! / -a", "0 0 1 0", id="something that does not help it, in flight"),
        pytest.param("+a ! -a *", "0 1 0 0", id="helped while its backoff runs"),
        pytest.param("+a ! -a *@5", "1 0 0 0", id="helped when that is over"),
        pytest.param("+a ! -a /@5", "0 0 1 0", id="not helped"),
        pytest.param("+a ! ~a .@1", "0 1 0 0", id="its backoff runs"),
        pytest.param("+a ! ~a .@3", "1 0 0 0", id="its backoff is over"),
        pytest.param("+a ! -a +b ! -b *@1", "0 2 0 0", id="two are helped at once"),
        pytest.param("+a ! -a +b ! -b xa", "0 0 1 0", id="a sleeper is deleted"),
        pytest.param("+a ! ~a xa", "0 0 0 0", id="one that backs off is deleted"),
        pytest.param("+a +b xa", "1 0 0 0", id="an active one is deleted"),
        pytest.param("+a ! xa", "0 0 0 0", id="one in flight is deleted"),
        pytest.param("+A +B +c", "1 0 0 2", id="gated ones are counted apart"),
        pytest.param("+A +B oA *@1", "1 0 0 1", id="a gate opens"),
        pytest.param("+A *@1", "0 0 0 1", id="a gate is asked, and stays"),
        pytest.param("+A xA", "0 0 0 0", id="a gated one is deleted"),
        pytest.param("+a ! -a ca *@5", "0 0 0 1", id="helped, it is held back by a gate"),
        pytest.param("+a ! -a ca *", "0 0 0 1", id="while its backoff runs, too"),
        pytest.param("+a ! -a ^a", "1 0 0 0", id="a sleeper is asked for by name"),
        pytest.param("+a ! ~a ^a", "1 0 0 0", id="so is one that backs off"),
        pytest.param("+A ^A", "0 0 0 1", id="a gated one is not let in by that"),
        pytest.param("+a ! -a .@299", "0 0 1 0", id="it has not slept for long"),
        pytest.param("+a ! -a .@360", "1 0 0 0", id="it has slept for too long"),
        pytest.param("+A .@360", "0 0 0 1", id="a gated one sleeps on"),
        pytest.param(
            "+a +b +c +d +A ! -a ! ~b ! -c *@1 !",
            "0 3 0 1",
            id="everything at once: three back off, one is in flight, one is gated",
        ),
        pytest.param("+a ! -a *@5 !@5 -a@5 *@6", "0 1 0 0", id="the second time it backs off longer"),
        pytest.param("+a ! -a *@5 !@5 -a@5 *@9", "1 0 0 0", id="but not for ever"),
    ],
)
def test_how_many_wait_where(script: str, counts: str) -> None:
    assert counted(script) == counts


def test_one_taken_before_its_backoff_is_over_is_counted_nowhere() -> None:
    assert counted("+a ! * -a", early=True) == "0 1 0 0"
    assert counted("+a ! * -a !@1", early=True) == "0 0 0 0"
    assert counted("+a ! ~a !@1", early=True) == "0 1 0 0", "what broke is not tried early"
