"""Print the part of requirements.lock that is needed to run: what an image installs, without what only tests need.

    python tools/runtime_lock.py > runtime.lock
    python tools/runtime_lock.py setuptools > build.lock      # what these packages need instead

The lock says of every package who asked for it; beginning with the dependencies of pyproject.toml, the rest follows.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def packages(lock: str) -> Iterator[tuple[str, str]]:
    """Every package of a lock: its name, and its lines."""
    for block in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]:
        yield re.split(r"[=<> \[]", block, maxsplit=1)[0].lower(), block


def wanted_by(block: str) -> set[str]:
    """Who asked for a package."""
    comments = re.findall(r"^ +#(.*)$", block, flags=re.MULTILINE)
    return {re.split(r"[ (]", line.replace("via", "", 1).strip(), maxsplit=1)[0].lower() for line in comments} - {""}


def runtime(lock: str, dependencies: Iterable[str]) -> str:
    """The packages that these dependencies need, as the lock has them."""
    blocks = dict(packages(lock))
    needed = {re.split(r"[=<>~!; \[]", one, maxsplit=1)[0].lower().replace("_", "-") for one in dependencies}
    missing = needed - blocks.keys()
    assert not missing, f"requirements.lock lacks {', '.join(sorted(missing))}: run `make lock`"
    while more := {name for name, block in blocks.items() if wanted_by(block) & needed} - needed:
        needed |= more
    return "".join(block for name, block in blocks.items() if name in needed)


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = sys.argv[1:] or project["dependencies"]
    print(runtime((ROOT / "requirements.lock").read_text(encoding="utf-8"), wanted), end="")


if __name__ == "__main__":
    main()
