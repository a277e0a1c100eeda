"""What is not needed any more goes back to the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kubesched.live.memory import _glibc, give_back

HOLES = """
import gc
from pathlib import Path
from kubesched.live.memory import LARGE, TLS_BUFFER, be_frugal, give_back

def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

{frugal}
large = [bytearray(LARGE) for _ in range(100)]
del large[::2]                              # from now on glibc would take such pieces for small ones
small = [bytearray(TLS_BUFFER) for _ in range(800)]
more = [bytearray(LARGE) for _ in range(200)]
full = resident()
del small[::2]                              # every second one stays: nothing but holes
del more[::2], large[:]
{collect}
print((full - resident()) >> 20)
"""


@pytest.mark.skipif(_glibc() is None, reason="another C library does as it likes")
def test_what_is_freed_between_what_stays_is_given_back() -> None:
    """400 buffers of connections, 25 MiB in all, and 150 large pieces, 37 MiB."""
    frugal = HOLES.format(frugal="be_frugal()", collect="give_back()")
    said = subprocess.run([sys.executable, "-c", frugal], capture_output=True, text=True, check=True).stdout
    assert int(said) >= 55


def test_where_nothing_is_free_nothing_happens() -> None:
    give_back()
