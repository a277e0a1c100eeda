"""Memory that is not needed any more goes back to the machine.

A scheduler runs for months, and what it holds rises for a moment again and again: a view is made anew, or a score of
connections.  Freed memory is kept by the C library in case it is needed again, in holes between what stays; so a
process grows with its worst moments, and a limit that was enough for a year is not enough for another.

Three things keep it flat.  A connection's buffers are small; pieces that are large all the same are taken from the
machine one by one, and go back as soon as they are free; and the holes go back with every collection of garbage.
The last two are glibc's to do; where there is another C library they are left to it.
"""

from __future__ import annotations

import ctypes
import gc
from asyncio.sslproto import SSLProtocol

COLLECT_AFTER = 100_000  # objects made: views have no cycles, and looking for some costs more than reading them
TLS_BUFFER = 64 << 10  # asyncio's own is 256 KiB for each connection, of which there may be a hundred
LARGE = 256 << 10
M_MMAP_THRESHOLD = -3  # of <malloc.h>


def be_frugal() -> None:
    """Settle, for this process, how memory is taken and given back."""
    gc.set_threshold(COLLECT_AFTER)
    SSLProtocol.max_size = TLS_BUFFER
    library = _glibc()
    if library is not None:
        # Unless it is said, it grows with the largest piece that was ever freed, until nothing is large any more.
        library.mallopt(M_MMAP_THRESHOLD, LARGE)


def give_back() -> None:
    """Collect garbage, and return what is free."""
    gc.collect()
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    """This process's C library, if it is the one that is known here."""
    library = ctypes.CDLL(None)
    known = all(hasattr(library, name) for name in ("gnu_get_libc_version", "mallopt", "malloc_trim"))
    return library if known else None
