"""Many seeds in many processes: how each is played, and that nobody goes on when the one who asked has gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from itertools import islice

import pytest

from kubesched.fuzz.campaign import mode_of, runs_of
from kubesched.fuzz.drawing import FAULT_NAMES, MODES, draw
from kubesched.fuzz.explore import variations

ENDLESS = """
from kubesched.fuzz.campaign import campaign
campaign(range(1, 1 << 40), jobs=2, progress=lambda tally: print("at work", flush=True))
"""
AT_MOST = 120  # seconds, until a worker that went on is given up


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="nobody can be killed like this elsewhere")
def test_workers_do_not_outlive_whoever_asked_them() -> None:
    """Their standard output is the parent's: it ends when the last of them has gone."""
    command = [sys.executable, "-c", ENDLESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        assert parent.stdout is not None
        try:
            assert parent.stdout.readline() == "at work\n"
            parent.kill()
            parent.communicate(timeout=AT_MOST)
            assert parent.returncode == -signal.SIGKILL
        finally:
            with suppress(ProcessLookupError):  # nobody is left of its session
                os.killpg(parent.pid, signal.SIGKILL)


def test_where_modes_are_mixed_each_has_its_share() -> None:
    assert Counter(mode_of(seed, "mixed") for seed in range(40)) == {"random": 32, "liveness": 6, "small": 2}
    assert {mode_of(7, mode) for mode in MODES} == set(MODES)


def test_a_seed_is_played_in_its_mode() -> None:
    assert next(runs_of(1, "mixed", FAULT_NAMES)).plan == draw(1, "liveness")
    assert next(runs_of(4, "mixed", FAULT_NAMES)).plan == draw(4, "random")


def test_some_of_the_faults_of_a_small_cluster() -> None:
    """Every run without faults is played; of the others one in twenty, and over the seeds all of them."""
    plan = draw(20, "small")
    all_of_them, some = list(variations(plan)), list(variations(plan, 20))
    calm = [one for one in all_of_them if not one.mishaps and one.happenings == plan.happenings]
    assert [one for one in some if one in calm] == calm
    assert 0.8 < (len(some) - len(calm)) / (len(all_of_them) - len(calm)) * 20 < 1.2
    assert all(one in all_of_them for one in islice(some, 10))
