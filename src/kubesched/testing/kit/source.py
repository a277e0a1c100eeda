"""What the code of a plugin mentions: texts it may be looking for, and containers it may be keeping things in.

The code of a plugin is its methods, those of the classes it builds on, and the functions of a module that these call.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

_CONTAINERS = (dict, list, set)


def texts(kind: type) -> Iterator[str]:
    """Texts in the code, and in the constants that it names; keyword names look like texts, and come last."""
    later: list[object] = []
    for function in _functions(kind):
        for code in _codes(function.__code__):
            named = (function.__globals__.get(name) for name in code.co_names)
            yield from (value for value in (*code.co_consts, *named) if isinstance(value, str))
            later += [text for value in code.co_consts if isinstance(value, tuple) for text in value]
    yield from (text for text in later if isinstance(text, str))


def shared(kind: type) -> Iterator[tuple[str, Any]]:
    """Containers that all instances share, by name: of the classes, and of a module where the code names them."""
    for base in _bases(kind):
        for name, value in vars(base).items():
            if isinstance(value, _CONTAINERS) and not name.startswith("__"):
                yield f"{base.__name__}.{name}", value
    for function in _functions(kind):
        for code in _codes(function.__code__):
            for name in code.co_names:
                if isinstance(function.__globals__.get(name), _CONTAINERS):
                    yield name, function.__globals__[name]


def _bases(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if base is not object]


def _functions(kind: type) -> list[types.FunctionType]:
    """The methods, and the functions beside them that they use, directly or not."""
    found = [value for base in _bases(kind) for value in vars(base).values() if isinstance(value, types.FunctionType)]
    for function in found:  # which grows while it is read
        for code in _codes(function.__code__):
            beside = (function.__globals__.get(name) for name in code.co_names)
            used = (one for one in beside if isinstance(one, types.FunctionType))
            found += [one for one in used if one.__module__ == function.__module__ and one not in found]
    return found


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of the functions within it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _codes(value)
