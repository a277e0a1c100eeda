"""What becomes of a bad input: it is refused with a named error, and nobody else is harmed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kubesched.api.kinds import KNOWN
from kubesched.api.objects import Invalid
from kubesched.api.time import Instant
from kubesched.assemble import build
from kubesched.config.load import load_text
from kubesched.core.core import Core
from kubesched.core.messages import Bind, Observed, Tick
from kubesched.drive.journal import Reading
from kubesched.framework.errors import KubeschedError
from kubesched.testing import node, pod
from kubesched.wire.decoding import Foreign, Garbled, Reader, Trouble
from kubesched.wire.frames import Lines, LineTooLong

HERE = Path(__file__).parent
KINDS = {"pods": "Pod", "nodes": "Node", "volumes": "PersistentVolume", "claims": "PersistentVolumeClaim"}
TAKEN = "taken"
LINE_AT_MOST = 1 << 20


def verdict(path: Path) -> str:
    """Which error a file is refused with, in its own words; `taken` where it is not refused."""
    folder = path.parent.name
    if folder == "configs":
        return _config(path)
    if folder == "journals":
        return _journal(path)
    if folder == "frames":
        return _frames(path.read_bytes())
    return _object(KINDS[folder], path.read_bytes())


def _object(kind: str, data: bytes) -> str:
    try:
        obj = Reader(KNOWN[kind]).object(data)
    except Garbled as garbled:
        return f"Garbled: {garbled}"
    core = _core()
    core.handle(Observed(obj), Instant(1))
    _goes_on(core)
    if isinstance(obj, Invalid):
        return f"Invalid: {obj.error}"
    unusable = core.mirror.invalid.get((kind, obj.key))
    return TAKEN if unusable is None else f"Invalid: {unusable.error}"


@cache
def _profiles():
    return build(checks=True).profiles


def _core() -> Core:
    return Core(_profiles(), seed=1)


def _goes_on(core: Core) -> None:
    """A good pod is placed on a good node all the same."""
    for obj in (node("good-node", cpu=8), pod("good-pod", cpu=1, priority=1 << 30)):
        core.handle(Observed(obj), Instant(2))
    effects = [effect for at in range(3, 8) for effect in core.handle(Tick(), Instant(at))]
    bound = [effect.pod for effect in effects if isinstance(effect, Bind)]
    assert "default/good-pod" in bound, "a bad object kept a good one from its place"


def _frames(data: bytes) -> str:
    lines, reader = Lines(LINE_AT_MOST), Reader(KNOWN["Pod"])
    try:
        for line in lines.feed(data):
            told = reader.line(line)
            if isinstance(told, Trouble):
                return f"Trouble: {told.status.code} {told.status.reason} {told.status.message}"
            if isinstance(told, Foreign):
                return f"Foreign: {told}"
            obj = getattr(told, "obj", None)
            if isinstance(obj, Invalid):
                return f"Invalid: {obj.error}"
    except (Garbled, LineTooLong) as problem:
        return f"{type(problem).__name__}: {problem}"
    return TAKEN


def _config(path: Path) -> str:
    try:
        build(load_text(path.read_bytes(), "config.yaml").configuration)
    except KubeschedError as error:
        return f"{type(error).__name__}: {error}"
    return TAKEN


def _journal(path: Path) -> str:
    try:
        for _ in Reading(path):
            pass
    except KubeschedError as error:
        return f"{type(error).__name__}: {str(error).replace(str(path), 'journal')}"
    return TAKEN
