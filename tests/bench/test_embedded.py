"""The embedded API server is measured from outside: every request is answered, and every figure is one."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.bench.apiload import PODS, Server, Unexpected, measure, prepare
from kubesched.bench.embedded import Figures, first_answer, lines, load, served


@pytest.fixture(scope="module")
def server() -> Server:
    with served() as started:
        yield started


@pytest.mark.slow
def test_every_figure_is_measured(server: Server) -> None:
    found = asyncio.run(load(server, (0.5, 0.4), pods=40))
    assert [(rate.what, rate.connections, rate.requests) for rate in found.rates] == [
        ("create", 1, 4), ("read", 1, 4), ("bind", 1, 4), ("create", 16, 36), ("read", 16, 36), ("bind", 16, 36),
    ]  # fmt: skip
    assert all(rate.per_second > 0 and rate.p50_ms > 0 for rate in found.rates)
    assert [one.watchers for one in found.watched] == [1, 10, 100]
    assert found.listed_pods == 40 + 3 * 300, "nothing was refused, and nothing is left out"
    assert found.resident_mib > 0


@pytest.mark.slow
def test_a_request_that_is_refused_is_no_figure(server: Server) -> None:
    async def ask() -> None:
        await measure(server, "create", [server.head("POST", PODS, b"{}")], 1)

    with pytest.raises(Unexpected, match="create: 422"):
        asyncio.run(ask())


@pytest.mark.slow
def test_nodes_are_made_once(server: Server) -> None:
    with pytest.raises(Unexpected, match="409"):
        for _ in range(2):
            asyncio.run(prepare(server))


@pytest.mark.slow
def test_the_command_answers() -> None:
    seconds, cpu = first_answer()
    assert cpu > 0
    assert seconds > 0


def test_the_figures_are_told_in_lines() -> None:
    told = list(lines(Figures(0.5, 0.4, 70.0, 60.0, [], [], 5000, 90.0)))
    assert told[0] == "embedded API server: first answer after 0.50 s, 0.40 of them at work (goal: 1 s)"
    assert told[-1].strip() == "a list of 5,000 pods in 90 ms"
