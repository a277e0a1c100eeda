"""What a plain scalar of YAML means to Kubernetes.

`yes` and `on` are true, 0x10 and 010 are 16 and 8, a date is text: the rules of YAML 1.1 as sigs.k8s.io/yaml keeps
them.  Whoever reads YAML here reads it by these.
"""

from __future__ import annotations

import re

_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
for _word in ("y", "yes", "on", "true"):
    _WORDS |= {_word: True, _word.capitalize(): True, _word.upper(): True}
for _word in ("n", "no", "off", "false"):
    _WORDS |= {_word: False, _word.capitalize(): False, _word.upper(): False}

_BASES = ((re.compile(r"0x([0-9a-fA-F]+)"), 16), (re.compile(r"0b([01]+)"), 2), (re.compile(r"0o?([0-7]+)"), 8))
_INTEGER = re.compile(r"0|[1-9][0-9]*")
_NUMBER = re.compile(r"(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LONGEST_NUMBER = 40  # characters; what is longer fits into no field


def meaning(text: str) -> bool | int | float | str | None:
    """What a plain scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _LONGEST_NUMBER or not (text[0].isdecimal() or text[0] in "+-."):
        return text
    negative, digits = text[0] == "-", text.replace("_", "")
    number = _number(digits[1:] if digits[0] in "+-" else digits)
    if number is None:
        return text
    return -number if negative else number


def _number(digits: str) -> int | float | None:
    """What an unsigned number is worth; None for what is none."""
    if _INTEGER.fullmatch(digits):
        return int(digits)
    for pattern, base in _BASES:
        found = pattern.fullmatch(digits)
        if found:
            return int(found[1], base)
    return float(digits) if _NUMBER.fullmatch(digits) else None
