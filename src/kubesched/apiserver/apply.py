"""Server-side apply: say what you want of an object, and be told when somebody else wants it otherwise.

Every writer has a name, and the object remembers in metadata.managedFields which fields each of them has set.
An apply merges the wish into the object.  Fields it sets to another value although others own them are
conflicts (or, with force, taken over); fields it set last time and does not mention any more are removed, unless
somebody else owns them too.  All other writes are followed as well: whoever changes a field owns it, and those
who had it lose it.

    manager = FieldManager(built_in("apps.Deployment"), "apps/v1", "Deployment", reset=[("f:status",)])
    new = manager.update(old, new, "kubectl-edit", now)            # a create (old is None), PUT or other patch
    new = manager.apply(old, wish, "kubectl", force=False, now=now)   # old is None: it does not exist yet

What comes back from `apply` is to be cleaned, defaulted and validated like any other request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from kubesched.api.time import parse_rfc3339
from kubesched.apiserver import typed
from kubesched.apiserver.fieldset import FieldSet, Path, field_element, shown
from kubesched.apiserver.model import Model
from kubesched.apiserver.status import ApiError, apply_conflict, bad_request, plain

Json = dict[str, Any]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ANNOTATIONS_BYTES_MAX = 256 * 1024
UPDATERS_MAX = 10
BEFORE_FIRST_APPLY, ANCIENT = "before-first-apply", "ancient-changes"

Operation = Literal["Apply", "Update"]

# What identifies an object is nobody's field.
_NOBODYS = FieldSet.of(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", field_element(name))
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has written: a name and how.  One who applies stays the same whatever version it speaks."""

    manager: str
    operation: Operation
    version: str
    subresource: str = ""

    @property
    def identity(self) -> str:
        """The same for the same owner; its order is the order in which conflicts are told."""
        return _identity(self.manager, self.operation, self.version, self.subresource)

    def shown(self) -> str:
        text = json.dumps(self.manager, ensure_ascii=False)
        if self.subresource:
            text += f" with subresource {json.dumps(self.subresource)}"
        return f"{text} using {self.version}" if self.operation == "Update" else text


@lru_cache(maxsize=4096)
def _identity(manager: str, operation: Operation, version: str, subresource: str) -> str:
    parts = {"manager": manager, "operation": operation}
    if operation == "Update":
        parts["apiVersion"] = version
    if subresource:
        parts["subresource"] = subresource
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


class Claim:
    """What an owner owns, and since when (None: not known).

    Most writes touch nobody else's fields, so a claim that was read is not decoded before somebody asks for its
    fields, and is written back as it was.
    """

    __slots__ = ("_fields", "entry", "owner", "time")

    def __init__(self, owner: Owner, fields: FieldSet | None, time: str | None, entry: Json | None = None) -> None:
        self.owner = owner
        self.time = time
        self.entry = entry
        self._fields = fields

    @property
    def fields(self) -> FieldSet:
        if self._fields is None:
            assert self.entry is not None
            self._fields = FieldSet.from_json(self.entry.get("fieldsV1") or {})
        return self._fields

    def has_any(self, fields: FieldSet) -> bool:
        """Whether it owns one of these fields."""
        if self._fields is None and self.entry is not None:
            return fields.meets_json(self.entry.get("fieldsV1") or {})
        return bool(self.fields & fields)

    def but(self, fields: FieldSet) -> Claim:
        """The same claim to other fields."""
        return Claim(self.owner, fields, self.time)


Claims = dict[str, Claim]


class Conflicted(Exception):
    """An apply would change what others own: (identity, path), to be told or to be forgiven."""

    def __init__(self, conflicts: dict[str, FieldSet], claims: Claims) -> None:
        self.conflicts = conflicts
        self.claims = claims

    def as_error(self) -> ApiError:
        return apply_conflict(
            [
                (self.claims[identity].owner.shown(), shown(path))
                for identity in sorted(self.conflicts)
                for path in self.conflicts[identity].paths()
            ]
        )


class FieldManager:
    """Follows who owns which field of the objects of one kind, through one subresource ("": the object itself).

    Args:
        model: how objects of the kind merge; built_in(struct) or custom(schema).
        version: the apiVersion that requests speak.
        kind: the kind.
        subresource: "status", "scale" …
        reset: paths that a write through this door does not change, whatever it says.
    """

    def __init__(
        self, model: Model, version: str, kind: str, subresource: str = "", reset: Iterable[Path] = ()
    ) -> None:
        self.model = model
        self.version = version
        self.kind = kind
        self.subresource = subresource
        self.reset = FieldSet.of(*reset)
        self._empty: Json = {**model.empty(), "kind": kind, "apiVersion": version}

    # the two doors ---------------------------------------------------------------------------------

    def update(self, old: Json | None, new: Json, manager: str, now: str) -> Json:
        """Return new with the managedFields it has after a create (old is None) or an update.

        new is cleaned and defaulted.  Its own managedFields count if they are valid; an empty list in them
        resets the ownership of everything.
        """
        claims = self._claims_of_update(old, new)
        bare, before = _without_managed(new), _without_managed(old) if old is not None else self._nothing()
        if not claims and old is not None:
            return bare  # nobody follows this object
        try:
            return _with_claims(bare, _cap(self._update(before, bare, claims, manager, now)))
        except ValueError:
            return bare  # a list item that has no name; validation is about to refuse it

    def apply(self, old: Json | None, wish: Json, manager: str, *, force: bool, now: str) -> Json:
        """Return what the wish makes of an object (None: of nothing).

        Raises 409 with all conflicts, 400 for another kind or for managedFields in the wish, 500 (as the real
        server) for fields that the kind does not have.
        """
        self._check_wish(wish)
        try:
            claims = _decoded(_claims(old))
        except ValueError as error:
            raise plain(f"failed to decode managed fields: {error}") from None
        live = _without_managed(old) if old is not None else self._nothing()
        if not claims:
            claims = self._update(self._nothing(), live, {}, BEFORE_FIRST_APPLY, now)
        try:
            merged, claims = self._apply_upgrading(live, wish, claims, manager, force, now)
        except Conflicted as conflicted:
            raise conflicted.as_error() from None
        if manager == "kubectl":
            merged = _with_last_applied(merged, wish)
        return _with_claims(merged, claims)

    # following updates -----------------------------------------------------------------------------

    def _claims_of_update(self, old: Json | None, new: Json) -> Claims:
        """Whose word on ownership counts: the request's if it is valid, else the object's."""
        if not self.subresource:
            given = (new.get("metadata") or {}).get("managedFields")
            if given is not None and (given == [] or given == [{}]):
                return {}
            # The usual case is a client that sends back what it was given.
            if given and (old is None or given != (old.get("metadata") or {}).get("managedFields")):
                try:
                    return _decoded(_claims(new))
                except ValueError:
                    pass
        try:
            return _claims(old)
        except ValueError:
            return {}

    def _update(self, old: Json, new: Json, claims: Claims, manager: str, now: str) -> Claims:
        difference = typed.compare(old, new, self.model).without(self.reset)
        changed = difference.modified | difference.added
        claims = _taken(claims, changed, difference.removed)
        mine = changed - _NOBODYS
        if not mine:
            return claims
        owner = Owner(manager or "unknown", "Update", self.version, self.subresource)
        former = claims.get(owner.identity)
        fields = mine if former is None else mine | former.fields
        return {**claims, owner.identity: Claim(owner, fields, now)}

    # applying --------------------------------------------------------------------------------------

    def _check_wish(self, wish: Json) -> None:
        version, kind = wish.get("apiVersion") or "", wish.get("kind") or ""
        if (version, kind) != (self.version, self.kind):
            raise bad_request(f"invalid object type: {_shown_kind(version, kind)}")
        if (wish.get("metadata") or {}).get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        try:
            typed.validate(wish, self.model)
        except typed.Mismatch as error:
            meta = wish.get("metadata") or {}
            place = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {_shown_kind(version, kind)}"
            raise plain(f"failed to create typed patch object ({place}): {error}") from None

    def _apply_upgrading(
        self, live: Json, wish: Json, claims: Claims, manager: str, force: bool, now: str
    ) -> tuple[Json, Claims]:
        """Apply; kubectl is forgiven conflicts over what it once applied from the client's side."""
        try:
            return self._apply(live, wish, claims, manager, force, now)
        except Conflicted as conflicted:
            if manager != "kubectl":
                raise
            allowed = self._applied_by_client(live)
            if allowed is None:
                raise
            left = {identity: rest for identity, fields in conflicted.conflicts.items() if (rest := fields - allowed)}
            if left:
                raise Conflicted(left, conflicted.claims) from None
        return self._apply(live, wish, claims, manager, True, now)

    def _apply(
        self, live: Json, wish: Json, claims: Claims, manager: str, force: bool, now: str
    ) -> tuple[Json, Claims]:
        owner = Owner(manager, "Apply", self.version, self.subresource)
        me = owner.identity
        last = claims.get(me)
        fields = typed.field_set(wish, self.model).without(self.reset)
        merged = typed.merge(live, wish, self.model)
        since = last.time if last is not None else None
        mine = Claim(owner, fields, since)
        merged = self._prune(merged, {**claims, me: mine}, last)
        difference = typed.compare(live, merged, self.model).without(self.reset)
        changed = difference.modified | difference.added
        others = {identity: claim for identity, claim in claims.items() if identity != me}
        conflicts = {name: claim.fields & changed for name, claim in others.items() if claim.has_any(changed)}
        if conflicts and not force:
            raise Conflicted(conflicts, others)
        kept = _taken(others, changed, difference.removed)
        is_changed = not typed.same(live, merged)
        fields = fields - _NOBODYS
        if fields:
            kept[me] = Claim(owner, fields, now if is_changed else since)
        return (merged if is_changed else live), kept

    def _prune(self, merged: Json, claims: Claims, last: Claim | None) -> Json:
        """Remove what this manager applied last time, does not apply now, and nobody else owns."""
        if last is None or not last.fields:
            return merged
        model = self.model
        was_mine = typed.with_named_fields(last.fields, model)
        pruned = typed.remove(merged, was_mine, model)
        everything = typed.with_named_fields(typed.field_set(merged, model), model)
        left = typed.with_named_fields(typed.field_set(pruned, model), model)
        owned = FieldSet()
        for claim in claims.values():
            owned = owned | claim.fields
        owned = typed.with_named_fields(owned, model)
        # Back comes what somebody owns, this apply included …
        pruned = typed.remove(merged, everything - (left | owned), model)
        # … and what went only because something around it did.
        left = typed.with_named_fields(typed.field_set(pruned, model), model)
        result: Json = typed.remove(merged, (everything - left) & was_mine, model) or {}
        return result

    def _applied_by_client(self, live: Json) -> FieldSet | None:
        """The fields that `kubectl apply` without --server-side set, as far as they still have its values."""
        text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
        if not text:
            return None
        try:
            applied = json.loads(text)
            if not isinstance(applied, dict) or applied.get("apiVersion") != self.version:
                return None
            typed.validate(applied, self.model)
            typed.validate(live, self.model)
            fields = typed.field_set(applied, self.model)
            difference = typed.compare(applied, live, self.model)
        except (ValueError, typed.Mismatch):
            return None
        return fields - difference.modified - difference.added - difference.removed

    def _nothing(self) -> Json:
        return self._empty


def _shown_kind(version: Any, kind: Any) -> str:
    """A kind as Go shows it; the core group is the empty string before a slash."""
    return f"{version if '/' in str(version) else f'/{version}'}, Kind={kind}"


def without_new_times(old: Json, new: Json) -> Json:
    """Return new, or if it differs from old only in the times of its managedFields, with old's times.

    An apply that changes nothing shall be no write.
    """
    before, after = old["metadata"].get("managedFields"), new["metadata"].get("managedFields")
    if not before or not after or len(before) != len(after) or before == after:
        return new
    if [{**entry, "time": None} for entry in before] != [{**entry, "time": None} for entry in after]:
        return new
    if _without_managed(old) != _without_managed(new):
        return new
    return {**new, "metadata": {**new["metadata"], "managedFields": before}}


# Claims ----------------------------------------------------------------------------------------------------------


def _taken(claims: Claims, changed: FieldSet, removed: FieldSet) -> Claims:
    """Take from everybody what somebody changed or removed; who has nothing left is forgotten."""
    kept: Claims = {}
    for identity, claim in claims.items():
        if not claim.has_any(changed) and not claim.has_any(removed):
            kept[identity] = claim
        elif fields := claim.fields - changed - removed:
            kept[identity] = claim.but(fields)
    return kept


def _claims(obj: Json | None) -> Claims:
    """Read metadata.managedFields; ValueError for what cannot be understood."""
    entries = ((obj or {}).get("metadata") or {}).get("managedFields") or []
    claims: Claims = {}
    for index, entry in enumerate(entries):
        operation = entry.get("operation")
        if operation not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise ValueError("apiVersion must not be empty")
        kind = entry.get("fieldsType")
        if not kind:
            raise ValueError(f"missing fieldsType in managed fields entry {index}")
        if kind != "FieldsV1":
            raise ValueError(f'invalid fieldsType "{kind}" in managed fields entry {index}')
        owner = Owner(entry.get("manager") or "", operation, entry["apiVersion"], entry.get("subresource") or "")
        claims[owner.identity] = Claim(owner, None, entry.get("time"), entry)
    return claims


def _decoded(claims: Claims) -> Claims:
    """Decode all claims now, so that what cannot be understood is found now: ValueError."""
    return {identity: Claim(claim.owner, claim.fields, claim.time) for identity, claim in claims.items()}


def _with_claims(obj: Json, claims: Claims) -> Json:
    """Return the object with these managedFields: appliers first, then by time and name."""
    meta = {field: value for field, value in (obj.get("metadata") or {}).items() if field != "managedFields"}
    if claims:
        meta["managedFields"] = [_entry(claim) for claim in sorted(claims.values(), key=_place)]
    return {**obj, "metadata": meta}


def _place(claim: Claim) -> tuple[str, int, str, str, str]:
    owner = claim.owner
    return owner.operation, _seconds(claim.time), owner.manager, owner.version, owner.subresource


def _seconds(time: str | None) -> int:
    if time is None:
        return 0
    try:
        return parse_rfc3339(time) // 1_000_000_000
    except ValueError:
        return 0


def _entry(claim: Claim) -> Json:
    if claim.entry is not None:
        return claim.entry
    owner = claim.owner
    entry: Json = {"manager": owner.manager, "operation": owner.operation, "apiVersion": owner.version}
    if not owner.manager:
        del entry["manager"]
    if claim.time is not None:
        entry["time"] = claim.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = claim.fields.to_json()
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def _cap(claims: Claims) -> Claims:
    """Keep at most ten updaters: the oldest of them share one entry for ancient changes."""
    updaters = [claim for claim in claims.values() if claim.owner.operation == "Update"]
    surplus = len(updaters) - UPDATERS_MAX
    if surplus <= 0:
        return claims
    updaters.sort(key=lambda claim: (_seconds(claim.time), claim.owner.identity))
    kept = dict(claims)
    first: dict[str, Owner] = {}
    for claim in updaters:
        if surplus <= 0:
            break
        version = claim.owner.version
        if version not in first:
            first[version] = claim.owner
            continue
        bucket = Owner(ANCIENT, "Update", version)
        if bucket.identity not in kept:
            oldest = kept.pop(first[version].identity)
            kept[bucket.identity] = Claim(bucket, oldest.fields, oldest.time)
        fields = claim.fields | kept[bucket.identity].fields
        kept[bucket.identity] = Claim(bucket, fields, claim.time)
        del kept[claim.owner.identity]
        surplus -= 1
    return kept


# The object's metadata -------------------------------------------------------------------------------------------


def _without_managed(obj: Json) -> Json:
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {field: value for field, value in meta.items() if field != "managedFields"}}


def _with_last_applied(merged: Json, wish: Json) -> Json:
    """Keep kubectl's annotation, where there is one, in step with what it applied from the server's side."""
    meta = merged.get("metadata") or {}
    annotations = meta.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return merged
    given = wish.get("metadata") or {}
    told = {field: value for field, value in given.items() if field != "annotations"}
    if given.get("annotations") is not None:
        told["annotations"] = {key: value for key, value in given["annotations"].items() if key != LAST_APPLIED}
    text = json.dumps({**wish, "metadata": told}, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    annotations = {**annotations, LAST_APPLIED: text}
    if sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items()) > ANNOTATIONS_BYTES_MAX:
        del annotations[LAST_APPLIED]
    return {**merged, "metadata": {**meta, "annotations": annotations}}


def reset_paths(*paths: Sequence[str]) -> list[Path]:
    """Paths of plain fields for FieldManager's reset: reset_paths(("status",), ("metadata", "labels"))."""
    return [tuple(field_element(name) for name in path) for path in paths]
