"""Write to a store in a data directory for ever, saying so after each acknowledged step: to be killed.

    python writer.py DATA_DIR DURABILITY STEPS_PER_COMMIT

`steps` is the script of what it does, so that whoever kills it can tell what must have survived.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random

from kubesched.apiserver.persistence import Durability, Journal
from kubesched.apiserver.store import Store

NAMES = [f"p{number}" for number in range(20)]


def steps() -> Iterator[tuple[str, str, int]]:
    """Yield (verb, name, value) without end: what a busy cluster does, always the same."""
    luck = Random(42)
    there: set[str] = set()
    value = 0
    while True:
        value += 1
        name = luck.choice(NAMES)
        if name not in there:
            there.add(name)
            yield "create", name, value
        elif luck.random() < 0.3:
            there.discard(name)
            yield "delete", name, value
        else:
            yield "update", name, value


def perform(store: Store, verb: str, name: str, value: int) -> None:
    obj = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "d"}, "value": value}
    match verb:
        case "create":
            store.create("pods", {**obj, "padding": "x" * 500})
        case "update":
            store.update("pods", "d", name, {**obj, "padding": "y" * 500})
        case "delete":
            store.delete("pods", "d", name)


def main(data_dir: str, durability: Durability, per_commit: int) -> None:
    store = Store(now=lambda: 1_800_000_000_000_000_000, luck=Random(1), journal=Journal(data_dir, durability))
    script = steps()
    while True:
        with store.batch():
            for _ in range(per_commit):
                perform(store, *next(script))
        sys.stdout.write(f"{store.revision}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], "power" if sys.argv[2] == "power" else "process", int(sys.argv[3]))
