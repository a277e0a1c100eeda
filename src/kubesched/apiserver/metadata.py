"""What the server owns of every object: its name once given, its uid, its times, its generation.

Clients send these fields too, mostly because they got them; what they send is then not a wish but a memory.  So a
new object gets them afresh, and every later version keeps them, whatever the request says.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

Json = dict[str, Any]

GENERATE_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words
GENERATED_NAME_MAX = 63
SUFFIX_LENGTH = 5

_DROPPED = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_KEPT = (
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def first_metadata(given: Json, name: str, namespace: str, uid: str, time: str, generation: int | None) -> Json:
    """Return the metadata of a new object, in the order in which the real server prints it."""
    meta: Json = {"name": name}
    if given.get("generateName"):
        meta["generateName"] = given["generateName"]
    if namespace:
        meta["namespace"] = namespace
    meta["uid"] = uid
    meta["resourceVersion"] = ""
    if generation is not None:
        meta["generation"] = generation
    meta["creationTimestamp"] = time
    for field, value in given.items():
        if field not in meta and field not in _DROPPED:
            meta[field] = value
    return meta


def kept_metadata(old: Json, given: Json) -> Json:
    """Return the metadata of a new version: the client's, but what the server owns stays what it was."""
    meta: Json = {"name": old["name"]}
    for field in _KEPT:
        if field in old:
            meta[field] = old[field]
    for field, value in given.items():
        if field not in meta and field not in _DROPPED:
            meta[field] = value
    return meta


def new_uid(luck: Random) -> str:
    """Return a random UUID (RFC 9562, version 4)."""
    bits = luck.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62)
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def with_suffix(prefix: str, luck: Random) -> str:
    """Return what generateName may come to; the prefix is cut where the name would get too long."""
    letters = GENERATE_NAME_ALPHABET
    suffix = [letters[luck.randrange(len(letters))] for _ in range(SUFFIX_LENGTH)]
    return prefix[: GENERATED_NAME_MAX - SUFFIX_LENGTH] + "".join(suffix)


def same_json(old: Json, new: Json) -> bool:
    """Whether two objects are the same JSON.  Python finds 1, 1.0 and True equal, JSON does not."""
    return old is new or (old == new and _encode_sorted(old) == _encode_sorted(new))
