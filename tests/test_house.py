"""The house rules: who may import whom, and what the pure half may not touch.

A room (a folder or module directly under `kubesched`) may import only rooms on lower storeys; rooms sharing a
storey are strangers; the pure half touches no clock, socket, thread or luck of its own.  Since every edge goes
strictly down, looking at direct imports is enough.

An import is an import wherever it stands: inside a function, behind `if TYPE_CHECKING`, relative, or spelled
`import_module("…")`.  Types get no exemption, because a wall you can name a type through is a wall the reader
has to look behind.

`broken_rules` is applied to the tree, and, so that we know it can say no, to small trees that break each rule.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.tidy import lengths

SRC = Path(__file__).parents[1] / "src" / "kubesched"

FACADE = "the façade"
STOREYS = [  # top to bottom; rooms sharing a storey are strangers
    {"__main__"},
    {"cli"},
    {"web", "notebook", "bench", "fuzz"},
    {"tutorial", "testing"},
    {FACADE},  # kubesched/__init__.py: `from kubesched import Pod` is for the rooms above this line
    {"live", "sim"},
    {"assemble"},
    {"drive", "config", "wire"},
    {"plugins", "core", "actors", "explain", "telemetry"},
    {"framework"},
    {"cluster", "apiserver"},
    {"api"},
]
LEVEL = {room: level for level, rooms in enumerate(STOREYS) for room in rooms}

PURE = {"api", "cluster", "framework", "plugins", "core", "wire"}
IMPURE_MODULES = {
    *("asyncio", "threading", "multiprocessing", "concurrent", "socket", "selectors", "select", "signal", "ssl"),
    *("subprocess", "os", "pathlib", "io", "shutil", "tempfile", "sqlite3", "http", "urllib", "logging"),
    *("time", "datetime", "random", "secrets", "uuid", "numpy.random"),
}
IMPURE_CALLS = {"open", "print", "input"}
PURE_LIBRARIES = {"numpy", "msgspec"}
ALLOWED = {("api/time.py", "datetime"), ("core/luck.py", "random")}  # parsing stamps; the seeded generator


def broken_rules(src: Path) -> list[str]:
    """Every breach of the house rules under `src`, which plays the folder `kubesched`, as `file:line: what`."""
    broken = []
    for path in sorted(src.rglob("*.py")):
        here = path.relative_to(src)
        room = FACADE if here.as_posix() == "__init__.py" else here.parts[0].removesuffix(".py")
        if room not in LEVEL:
            broken.append(f"{here.as_posix()}:1: {room} is on no storey: give it one in STOREYS, and say why")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        complaints = [*wall_breaches(tree, here, room), *(impurities(tree, here, room) if room in PURE else ())]
        broken += [f"{here.as_posix()}:{line}: {what}" for line, what in sorted(set(complaints))]
    return broken


def wall_breaches(tree: ast.Module, here: Path, room: str) -> Iterator[tuple[int, str]]:
    """The imports that do not go strictly down."""
    for name, line in imports(tree, here):
        top, *rest = name.split(".")
        if top != "kubesched":
            continue
        other = rest[0] if rest and rest[0] in LEVEL else FACADE
        if other != room and LEVEL[other] <= LEVEL[room]:
            yield line, f"{room} may not import {other}"


def impurities(tree: ast.Module, here: Path, room: str) -> Iterator[tuple[int, str]]:
    """What a room of the pure half touches and must not."""
    for name, line in imports(tree, here):
        top = name.partition(".")[0]
        for module in sorted(IMPURE_MODULES):
            if (name == module or name.startswith(f"{module}.")) and (here.as_posix(), module) not in ALLOWED:
                yield line, f"{room} is pure and may not import {module}"
        if top not in {"kubesched", *PURE_LIBRARIES, *sys.stdlib_module_names}:
            yield line, f"{room} is pure and stands on {' and '.join(sorted(PURE_LIBRARIES))} alone, not on {top}"
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"):
                yield node.lineno, f"{room} is pure and may not import numpy.random"
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                yield node.lineno, f"{room} is pure and may not call {name}()"


def imports(tree: ast.Module, here: Path) -> Iterator[tuple[str, int]]:
    """Every module a file imports, by absolute name, with the line that does it."""
    package = ("kubesched", *here.parts[:-1])
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                yield from ((alias.name, node.lineno) for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases, level=level):
                up = package[: len(package) - level + 1] if level else ()
                base = ".".join([*up, *([module] if module else [])])
                # `from kubesched import core` imports a room, `from numpy import random` a module; the
                # longer name says so, and does no harm where the alias is a class.
                yield from ((f"{base}.{alias.name}", node.lineno) for alias in aliases)
            case ast.Call(func=called, args=[ast.Constant(value=str(name)), *_]) if spelled(called) in {
                "__import__",
                "import_module",
            }:
                yield name, node.lineno


def spelled(called: ast.expr) -> str | None:
    """The last word of what is called: `importlib.import_module` is `import_module`."""
    match called:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


ONE_SCREEN = 60  # lines
LONG_BY_NATURE = {"schedule"}  # it is the algorithm, and splitting it would hide it


def second_screens(core: Path) -> list[str]:
    """The functions of the core that need one, as `file:line: name has so many lines`."""
    return [
        f"{path.relative_to(core).as_posix()}:{line}: {name} has {count} lines"
        for path in sorted(core.rglob("*.py"))
        for name, (line, count) in lengths(path.read_text(encoding="utf-8")).items()
        if count > ONE_SCREEN and name[name.rfind(".") + 1 :].islower() and name not in LONG_BY_NATURE
    ]


def test_the_house_keeps_its_rules() -> None:
    broken = broken_rules(SRC)
    assert not broken, "\n".join(["the house rules are broken:", *broken])


def test_no_function_of_the_core_needs_a_second_screen() -> None:
    assert second_screens(SRC / "core") == []


# ── and the rules have teeth ─────────────────────────────────────────────────────────────────────


def planted(root: Path, files: dict[str, str]) -> list[str]:
    """What the checker says of a tree with these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return broken_rules(root)


@pytest.mark.parametrize("module", sorted(IMPURE_MODULES))
@pytest.mark.parametrize("room", sorted(PURE))
def test_the_pure_half_may_not_import(module: str, room: str, tmp_path: Path) -> None:
    said = planted(tmp_path, {f"{room}/bad.py": f'"""Docstring."""\nimport {module}\n'})
    assert said == [f"{room}/bad.py:2: {room} is pure and may not import {module}"]


@pytest.mark.parametrize(
    "text",
    [
        "import time as innocent",
        "from time import monotonic",
        "def f():\n    from time import monotonic",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import time",
        "__import__('time')",
        "import importlib\nimportlib.import_module('time')",
        "from importlib import import_module\nimport_module('time')",
    ],
)
def test_a_clock_is_found_however_it_is_imported(text: str, tmp_path: Path) -> None:
    [said] = planted(tmp_path, {"plugins/bad.py": text})
    assert said.endswith("plugins is pure and may not import time")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("import os.path", "may not import os"),
        ("from numpy import random", "may not import numpy.random"),
        ("import numpy as np\nnp.random.default_rng()", "may not import numpy.random"),
        ("print('hello')", "may not call print()"),
        ("open('file')", "may not call open()"),
        ("import aiohttp", "stands on msgspec and numpy alone, not on aiohttp"),
        ("import yaml", "stands on msgspec and numpy alone, not on yaml"),
    ],
)
def test_the_pure_half_has_no_luck_no_input_and_no_libraries(text: str, wrong: str, tmp_path: Path) -> None:
    [said] = planted(tmp_path, {"cluster/bad.py": text})
    assert wrong in said


def test_two_files_have_leave_to_be_impure_and_no_others(tmp_path: Path) -> None:
    said = planted(
        tmp_path,
        {
            "api/time.py": "import datetime",
            "core/luck.py": "import random",
            "api/luck.py": "import random",
            "core/time.py": "import datetime",
        },
    )
    assert said == [
        "api/luck.py:1: api is pure and may not import random",
        "core/time.py:1: core is pure and may not import datetime",
    ]


def test_the_world_half_may_be_impure(tmp_path: Path) -> None:
    assert planted(tmp_path, {"live/remote.py": "import asyncio, time, aiohttp\nprint(open)"}) == []


@pytest.mark.parametrize(
    "text",
    [
        "import kubesched.core.core",
        "import kubesched.core as innocent",
        "from kubesched import core",
        "from kubesched.core import messages",
        "from kubesched.core.queue.simple import SimpleQueue",
        "from .. import core",
        "from ..core import messages",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from kubesched.core import messages",
        "def f():\n    from kubesched.core import messages",
        "import importlib\nimportlib.import_module('kubesched.core')",
    ],
)
def test_strangers_do_not_meet_however_the_import_is_spelled(text: str, tmp_path: Path) -> None:
    [said] = planted(tmp_path, {"explain/bad.py": text})
    assert said.endswith("explain may not import core")


def test_a_relative_import_is_resolved_from_where_it_stands(tmp_path: Path) -> None:
    deep = tmp_path / "explain" / "inner"
    deep.mkdir(parents=True)
    (deep / "good.py").write_text("from . import a\nfrom .. import b\nfrom ..b import c\n", encoding="utf-8")
    (deep / "__init__.py").write_text("from ...core import messages\n", encoding="utf-8")
    assert broken_rules(tmp_path) == ["explain/inner/__init__.py:1: explain may not import core"]


@pytest.mark.parametrize("lower", range(len(STOREYS)))
@pytest.mark.parametrize("upper", range(len(STOREYS)))
def test_every_pair_of_storeys_goes_one_way(upper: int, lower: int, tmp_path: Path) -> None:
    importer, imported = sorted(STOREYS[upper])[0], sorted(STOREYS[lower])[-1]
    file = "__init__.py" if importer == FACADE else f"{importer}/file.py"
    name = "kubesched" if imported == FACADE else f"kubesched.{imported}"
    said = planted(tmp_path, {file: f"import {name}"})
    allowed = upper < lower or importer == imported
    assert bool(said) is not allowed


@pytest.mark.parametrize("text", ["from kubesched import Pod", "import kubesched", "from .. import Pod"])
@pytest.mark.parametrize("room", ["sim", "live", "drive", "core", "api"])
def test_the_facade_is_not_for_the_rooms_it_is_made_of(room: str, text: str, tmp_path: Path) -> None:
    [said] = planted(tmp_path, {f"{room}/bad.py": text})
    assert said == f"{room}/bad.py:1: {room} may not import {FACADE}"


def test_the_facade_is_for_the_rooms_above_it_and_made_of_those_below(tmp_path: Path) -> None:
    said = planted(
        tmp_path,
        {
            "tutorial/good.py": "from kubesched import Pod",
            "cli/good.py": "from kubesched import Pod, sim",
            "__init__.py": "from kubesched.sim.world import SimWorld\nfrom kubesched.tutorial import play\n",
        },
    )
    assert said == [f"__init__.py:2: {FACADE} may not import tutorial"]


def test_a_room_nobody_drew_is_asked_for_its_storey(tmp_path: Path) -> None:
    [said] = planted(tmp_path, {"utils/helpers.py": ""})
    assert said.startswith("utils/helpers.py:1: utils is on no storey")


def test_every_breach_is_told_in_order_and_once(tmp_path: Path) -> None:
    said = planted(
        tmp_path,
        {
            "core/bad.py": "from kubesched.explain import a, b\nimport time\nfrom kubesched.plugins import c\n",
            "api/bad.py": "from kubesched.cluster import table\n",
        },
    )
    assert said == [
        "api/bad.py:1: api may not import cluster",
        "core/bad.py:1: core may not import explain",
        "core/bad.py:2: core is pure and may not import time",
        "core/bad.py:3: core may not import plugins",
    ]


def test_a_function_that_needs_a_second_screen_is_named(tmp_path: Path) -> None:
    body = "        pass\n" * ONE_SCREEN
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / "bad.py").write_text(f"class Big:\n    def short(self): ...\n\n    def long(self):\n{body}")
    (tmp_path / "schedule.py").write_text(f"def schedule():\n{body}\n\ndef attempt():\n{body}")
    assert second_screens(tmp_path) == [
        f"queue/bad.py:4: Big.long has {ONE_SCREEN + 1} lines",
        f"schedule.py:{ONE_SCREEN + 4}: attempt has {ONE_SCREEN + 1} lines",
    ]
