"""kubesched with a time of day that can be moved.

Started as a process, `skewed.py FILE arguments...`, it adds the seconds in FILE whenever somebody asks for the time.
"""

import mmap
import runpy
import struct
import sys
import time
from pathlib import Path


def skew(path: Path) -> None:
    with path.open("r+b") as file:
        shared = mmap.mmap(file.fileno(), 8)
    real = time.time_ns

    def time_ns() -> int:
        return real() + int(struct.unpack_from("<d", shared)[0] * 1e9)

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def write(path: Path, seconds: float) -> None:
    """Move the clock of whoever runs with this file."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(struct.pack("<d", seconds))


if __name__ == "__main__":
    skew(Path(sys.argv[1]))
    sys.argv = ["kubesched", *sys.argv[2:]]
    runpy.run_module("kubesched", run_name="__main__")
