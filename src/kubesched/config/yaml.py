"""YAML as a configuration needs it, and none of the rest: no tags, no aliases, no key twice, and not without end.

The loaders of YAML libraries build Python objects, expand 300 bytes into 10^8 leaves and forget where anything was
written.  Here a document is read event by event into mappings, lists and scalars that remember their lines, and
what a configuration has no use for is refused with its line.  JSON is read as well, being YAML.

Plain scalars mean what they mean to Kubernetes: `yes` and `on` are true, 0x10 and 010 are 16 and 8, a date is text.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from msgspec import Struct

from kubesched.api.yaml import meaning
from kubesched.config.faults import Fault, InvalidConfiguration, shown

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same events, faster


class Limits(Struct, frozen=True):
    """How much of a document is read before it is refused."""

    size: int = 1 << 20  # bytes
    depth: int = 64
    nodes: int = 20_000


class Map(dict[str, Any]):
    """A mapping that knows its line, and that of each key."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


class List(list[Any]):
    """A list that knows its line, and that of each item."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


def parse(data: bytes, file: str = "", limits: Limits | None = None) -> Any:
    """The one document in some bytes.  Raises InvalidConfiguration."""
    limits = limits or Limits()
    if len(data) > limits.size:
        problem = f"is {len(data):,} bytes long; at most {limits.size:,} are read"
        raise _refused(problem, 0, file)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refused(f"is not UTF-8: byte {error.start + 1} is 0x{data[error.start]:02x}", line, file) from None
    if text.lstrip()[:1] == "{":
        text = text.replace("\t", " ")  # JSON indented with tabs; inside a string JSON has none
    try:
        return _Reader(limits, file).read(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _refused(f"has a character no text has, #x{int(error.character):04x}", line, file) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(filter(None, (error.context, error.problem)))
        line = 0 if mark is None else min(mark.line, text.count("\n")) + 1  # the end is no line of its own
        raise _refused(f"is not YAML: {problem}", line, file) from None


def _refused(problem: str, line: int, file: str, remedy: str = "") -> InvalidConfiguration:
    return InvalidConfiguration([Fault("", problem, remedy, line)], file)


class _Reader:
    """Folds the events of one document into a tree, counting."""

    def __init__(self, limits: Limits, file: str) -> None:
        self._limits, self._file = limits, file
        self._open: list[Map | List] = []
        self._keys: list[str | None] = []  # per open mapping the key that waits for its value
        self._count = 0
        self._documents = 0
        self._root: Any = None

    def read(self, text: str) -> Any:
        for event in yaml.parse(text, Loader=_LOADER):
            match event:
                case yaml.ScalarEvent():
                    self._scalar(event)
                case yaml.MappingStartEvent():
                    self._begin(event, Map(_line(event)))
                case yaml.SequenceStartEvent():
                    self._begin(event, List(_line(event)))
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._open.pop()
                    self._keys.pop()
                case yaml.AliasEvent():
                    raise self._refused(event, f"has the alias *{event.anchor}", "write the value where it is needed")
                case yaml.DocumentStartEvent():
                    self._documents += 1
        return self._root

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if self._documents > 1 and not event.value and event.implicit[0]:
            return  # nothing stands after a last ---
        self._admit(event)
        if self._waits_for_key():
            self._key(event)
        else:
            self._add(meaning(event.value) if event.implicit[0] else event.value, event)

    def _begin(self, event: yaml.CollectionStartEvent, value: Map | List) -> None:
        self._admit(event)
        if self._waits_for_key():
            raise self._refused(event, "has a key that is a mapping or a list", "keys are names")
        if len(self._open) >= self._limits.depth:
            raise self._refused(event, f"nests more than {self._limits.depth} levels deep", "a dozen are enough")
        self._add(value, event)
        self._open.append(value)
        self._keys.append(None)

    def _waits_for_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1], Map) and self._keys[-1] is None

    def _key(self, event: yaml.ScalarEvent) -> None:
        mapping, key, line = self._open[-1], str(event.value), _line(event)
        assert isinstance(mapping, Map), "only a mapping waits for a key"
        if key == "<<" and event.implicit[0]:
            raise self._refused(event, 'has a merge key "<<"', "write the fields out")
        if key in mapping.lines:
            problem = f"key {shown(key)} already set in map"
            raise _refused(problem, line, self._file, f"first on line {mapping.lines[key]}")
        mapping.lines[key] = line
        self._keys[-1] = key

    def _add(self, value: Any, event: yaml.NodeEvent) -> None:
        if not self._open:
            self._root = value
            return
        parent = self._open[-1]
        if isinstance(parent, Map):
            key = self._keys[-1]
            assert key is not None, "a value follows its key"
            parent[key] = value
            self._keys[-1] = None
        else:
            parent.append(value)
            parent.lines.append(_line(event))

    def _admit(self, event: Any) -> None:
        if self._documents > 1:
            raise self._refused(event, "has a second document", "a configuration is one")
        self._count += 1
        if self._count > self._limits.nodes:
            raise self._refused(event, f"has more than {self._limits.nodes:,} values", "that is no configuration")
        if event.tag is not None:
            raise self._refused(event, f"has the tag {event.tag}", "values need none here")

    def _refused(self, event: yaml.Event, problem: str, remedy: str) -> InvalidConfiguration:
        return _refused(problem, _line(event), self._file, remedy)


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return 0 if mark is None else int(mark.line) + 1


# ── where things are ─────────────────────────────────────────────────────────────────────────────────────────

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def line_of(tree: Any, path: str) -> int:
    """The line of what a path leads to, or of the last part of it that is there; 0 where nobody knows."""
    line: int = getattr(tree, "line", 0)
    for key, index in _STEP.findall(path):
        if isinstance(tree, Map) and key in tree.lines:
            line, tree = tree.lines[key], tree.get(key)
        elif isinstance(tree, List) and index and int(index) < len(tree.lines):
            line, tree = tree.lines[int(index)], tree[int(index)]
        else:
            break
    return line


def remove(items: list[Any], at: int) -> None:
    """Take an item out of a list, and its line with it."""
    del items[at]
    if isinstance(items, List) and at < len(items.lines):
        del items.lines[at]


def without_nulls(value: Any) -> Any:
    """A copy without the fields that are null.  Kept from kube-scheduler: a null field is one that is not there."""
    if isinstance(value, dict):
        mapping = Map(getattr(value, "line", 0))
        mapping.lines.update(getattr(value, "lines", {}))
        mapping.update({key: without_nulls(item) for key, item in value.items() if item is not None})
        return mapping
    if isinstance(value, (list, tuple)):
        items = List(getattr(value, "line", 0))
        items.lines.extend(getattr(value, "lines", ()))
        items.extend(without_nulls(item) for item in value)
        return items
    return value
