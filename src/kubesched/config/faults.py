"""What is wrong with a configuration: every fault with its place, so that one look mends them all.

A Fault names the path of a field, the problem in the words of kube-scheduler where it has some, and a remedy where
we can tell.  An InvalidConfiguration carries all faults of a document; as text it is kube-scheduler's, one error
bare and several in brackets, while `lines()` gives each its own line with file and line number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from msgspec import Struct

from kubesched.framework.errors import ConfigError


class Fault(Struct, frozen=True):
    """One thing that is wrong, and where."""

    path: str
    problem: str
    remedy: str = ""
    line: int = 0  # in the file, from 1; 0 where nobody knows

    def __str__(self) -> str:
        return str(ConfigError(self.path, self.problem, self.remedy))


class InvalidConfiguration(ConfigError):
    """A configuration that cannot be used, with all its faults."""

    def __init__(self, faults: Sequence[Fault], file: str = "") -> None:
        assert faults, "a configuration without faults is valid"
        self.faults, self.file = tuple(faults), file
        first = faults[0]
        super().__init__(first.path, first.problem, first.remedy)
        if len(faults) > 1:
            self.args = (f"[{', '.join(map(str, faults))}]",)

    def lines(self) -> list[str]:
        """A line per fault, as compilers print them."""
        return [f"{_place(self.file, fault.line)}{fault}" for fault in self.faults]


def _place(file: str, line: int) -> str:
    if not file:
        return f"line {line}: " if line else ""
    return f"{file}:{line}: " if line else f"{file}: "


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A remedy for a misspelt name; empty where nothing known is like it."""
    names = list(known)
    folded = {name.lower(): name for name in reversed(names)}
    close = [folded[word.lower()]] if word.lower() in folded else get_close_matches(word, names, n=1, cutoff=0.6)
    return f'did you mean "{close[0]}"?' if close else ""


def invalid(value: Any, detail: str) -> str:
    """Kubernetes' sentence for a value that will not do."""
    return f"Invalid value: {shown(value)}: {detail}"


def shown(value: Any) -> str:
    """A value as error messages print it: texts in quotes, the rest as JSON."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return str(value)
