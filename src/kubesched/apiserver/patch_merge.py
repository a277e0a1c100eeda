"""JSON Merge Patch (RFC 7386): say what should be, with null for what should not be.

    {"metadata": {"labels": {"app": "web", "old": null}}}

sets one label and removes another.  Lists are replaced whole.  Inputs are left alone; the result shares
with them what the patch did not touch.
"""

from __future__ import annotations

from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """Return what the patch makes of target."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        elif isinstance(value, dict):
            result[field] = merge_patch(result.get(field), value)
        else:
            result[field] = value
    return result
