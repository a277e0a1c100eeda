"""Text from strangers, made fit to print.

Names, messages and labels come from whoever may create an object, and end up on terminals.  Whatever is printed
goes through `plain`: it takes one line and does nothing to a terminal, whatever a pod is called.
"""

from __future__ import annotations

import unicodedata

FIELD_AT_MOST = 1024  # characters of one field that are printed


def plain(text: object, at_most: int = FIELD_AT_MOST) -> str:
    """Text that takes one line and does nothing to a terminal: control and direction characters are escaped."""
    string = str(text)
    cut = string if len(string) <= at_most else string[: at_most - 1] + "…"
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(c if _harmless(c) else c.encode("unicode_escape").decode() for c in cut)


def _harmless(character: str) -> bool:
    # Cc and Cf are control and format characters (bidi overrides among them), Zl and Zp separate lines.
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
