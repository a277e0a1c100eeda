"""Requests drawn from a seed, as schedulers, controllers, operators and people who err would send them.

Few names and many requests, so that names collide, objects are missing, and what is written was written before by
somebody else.  Some bodies are good, some are odd but allowed, some are wrong in one place, some are not JSON at all.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tests.realserver.drawn_kinds import KINDS
from tests.realserver.drawn_pods import Kind
from tests.realserver.likeness import APPLY, JSON, MERGE, STEPS, STRATEGIC, UID, VERSION, Asked, Edit

Json = dict[str, Any]

NAMESPACES = ("here", "there")
NOWHERE = "nowhere"  # a namespace that is not
_SYSTEMS_OWN = ("configmaps", "leases", "services")  # kinds a server has objects of by itself
_NODES = ("n0", "n1", "n2", "gone")


def sequence(seed: int, length: int) -> list[Asked]:
    """So many requests; the same for the same seed."""
    luck = Random(seed)
    made = [Asked("POST", "/api/v1/namespaces", body={"metadata": {"name": name}}) for name in NAMESPACES]
    mild = Mild(luck.random())
    for kind in KINDS:
        at = _At(mild, kind)
        made.append(Asked("POST", at.collection, body=kind.make(mild, at.name)))
    weights = [weight for _, weight in MOVES]
    while len(made) < length:
        kind = luck.choices(KINDS, [each.weight for each in KINDS])[0]
        [(move, _)] = luck.choices(MOVES, weights)
        made.extend(move(luck, kind))
    return made[:length]


class Mild(Random):
    """Luck that mostly takes the first of several choices, and those are the sound ones."""

    def choice(self, seq: Any) -> Any:
        return seq[0] if self.random() < 0.8 else super().choice(seq)


def _made(luck: Random, kind: Kind, name: str) -> Json:
    """An object of a kind; two of three are sound, or nearly so."""
    return kind.make(Mild(luck.random()) if luck.random() < 0.67 else luck, name)


class _At:
    """One kind in one namespace, and one name in it."""

    def __init__(self, luck: Random, kind: Kind) -> None:
        self.kind, self.luck = kind, luck
        self.namespace = luck.choices([*NAMESPACES, NOWHERE], [20, 4, 1])[0]
        self.name = luck.choice(kind.names)

    @property
    def collection(self) -> str:
        inside = f"/namespaces/{self.namespace}" if self.kind.namespaced else ""
        return f"{self.kind.root}{inside}/{self.kind.plural}"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


def _query(luck: Random) -> dict[str, str]:
    """What else a write may say."""
    query = {}
    if luck.random() < 0.1:
        query["dryRun"] = luck.choice(["All", "All", "All", "Some"])
    if luck.random() < 0.3:
        query["fieldValidation"] = luck.choice(["Strict", "Strict", "Warn", "Ignore", "Maybe"])
    return query


# ── moves ───────────────────────────────────────────────────────────────────────────────────────────────────


def _create(luck: Random, kind: Kind) -> Iterator[Asked]:
    at = _At(luck, kind)
    body = _made(luck, kind, at.name)
    if luck.random() < 0.06:
        body["metadata"].pop("name")
        body["metadata"]["generateName"] = f"{luck.choice(['made', 'made', 'Made'])}-{luck.randrange(10**6)}-"
    query = _query(luck)
    if luck.random() < 0.05:
        # What nobody has heard of is dropped there and kept here, so it is only ever refused.
        body, query["fieldValidation"] = {**body, "unheardOf": 1}, "Strict"
    elif "name" in body["metadata"] and luck.random() < 0.15:
        body = spoilt(luck, body)
    yield Asked("POST", at.collection, query, body)


def _create_wrongly(luck: Random, kind: Kind) -> Iterator[Asked]:
    at = _At(luck, kind)
    body = _made(luck, kind, at.name)
    raw = json.dumps(body).encode()
    yield luck.choice(
        [
            Asked("POST", at.collection, body=raw[: len(raw) // 2]),
            Asked("POST", at.collection, body=b""),
            Asked("POST", at.collection, body=b"null"),
            Asked("POST", at.collection, body=b"[]"),
            Asked("POST", at.collection, body=raw, content_type="text/plain"),
            Asked("POST", at.collection, body=raw, content_type=MERGE),
            Asked("POST", at.path, body=raw),
            Asked("PUT", at.collection, body=raw),
            Asked("POST", at.collection, body={**body, "kind": "Thing"}),
            Asked("POST", at.collection, body={**body, "apiVersion": "v7"}),
            Asked("POST", at.collection, body=_with_meta(body, namespace="elsewhere")),
            Asked("POST", at.collection, body=_with_meta(body, resourceVersion="7")),
            Asked("POST", at.collection, body=_with_meta(body, name=luck.choice(["Not_A_Name", "a" * 254, "a/b", ""]))),
            Asked("POST", at.collection, body=_with_meta(body, labels={"bad key!": "x"})),
            Asked("POST", at.collection, body=_with_meta(body, labels={"k": "-x-"})),
            Asked("POST", at.collection, body=_with_meta(body, finalizers=["notqualified"])),
            Asked("POST", at.collection, body=_with_meta(body, ownerReferences=[{"kind": "Pod", "name": "x"}])),
            Asked("POST", f"{at.kind.root}/namespaces/{at.namespace}/things", body=body),
            Asked("PATCH", at.path, body=raw, content_type=JSON),
            Asked("PATCH", at.path, body=b"{", content_type=luck.choice([MERGE, STRATEGIC, STEPS])),
        ]
    )


def _with_meta(body: Json, **changes: Any) -> Json:
    return {**body, "metadata": {**body["metadata"], **changes}}


def _get(luck: Random, kind: Kind) -> Iterator[Asked]:
    yield Asked("GET", _At(luck, kind).path)


def _list(luck: Random, kind: Kind) -> Iterator[Asked]:
    at = _At(luck, kind)
    query = luck.choice(
        [
            {},
            {
                "labelSelector": luck.choice(
                    ["app=a", "app!=a", "app in (a,b)", "!app", "app", "app notin (b)", "a in", "app>1"]
                )
            },
            {"fieldSelector": luck.choice([f"metadata.name={at.name}", "spec.x=1", *kind.selectors])},
            {"limit": luck.choice(["1", "2", "500", "-1", "x"])},
            {"resourceVersion": "0", "limit": "1"},
            {"resourceVersion": luck.choice(["x", "-1"])},
            {"resourceVersionMatch": "Exact"},
            {"resourceVersion": "0", "resourceVersionMatch": luck.choice(["NotOlderThan", "Exact", "Other"])},
            {"sendInitialEvents": "true"},
        ]
    )
    everywhere = kind.namespaced and kind.plural not in _SYSTEMS_OWN and luck.random() < 0.3
    yield Asked("GET", f"{kind.root}/{kind.plural}" if everywhere else at.collection, query)


def _update(luck: Random, kind: Kind) -> Iterator[Asked]:
    at = _At(luck, kind)
    yield Asked("PUT", at.path, _query(luck), base=at.path, edits=_edits(luck, kind))


def _edits(luck: Random, kind: Kind) -> tuple[Edit, ...]:
    edits = [luck.choice(kind.edits)(luck) for _ in range(luck.choice([1, 1, 1, 2]))]
    if luck.random() < 0.2:
        edits.append(
            luck.choice(
                [
                    Edit(("metadata", "resourceVersion"), "1"),
                    Edit(("metadata", "resourceVersion"), None),
                    Edit(("metadata", "uid"), "somebody-else"),
                    Edit(("metadata", "name"), "other"),
                    Edit(("metadata", "finalizers"), luck.choice([["example.com/hold"], []])),
                    Edit(("metadata", "labels"), {"app": luck.choice("ab")}),
                    Edit(("metadata", "generation"), 7),
                    Edit(("metadata", "creationTimestamp"), "2020-01-01T00:00:00Z"),
                ]
            )
        )
    return tuple(edits)


def _status(luck: Random, kind: Kind) -> Iterator[Asked]:
    at = _At(luck, kind)
    if not kind.statuses:
        yield Asked("GET", f"{at.path}/status")
        return
    status = copy.deepcopy(luck.choice(kind.statuses))
    body: Json = {"status": status}
    if luck.random() < 0.2:
        body["metadata"] = {"labels": {"said": "so"}}
    if luck.random() < 0.1:
        body["spec"] = {"replicas": 9, "unschedulable": True}
    if luck.random() < 0.5:
        yield Asked("PATCH", f"{at.path}/status", _query(luck), body, luck.choice([MERGE, STRATEGIC]))
    else:
        yield Asked("PUT", f"{at.path}/status", _query(luck), base=at.path, edits=(Edit(("status",), status),))


def _patch(luck: Random, kind: Kind) -> Iterator[Asked]:
    at = _At(luck, kind)
    edits = _edits(luck, kind)
    style = luck.choice([MERGE, STRATEGIC, STEPS])
    if style == STEPS:
        steps = [_step(edit) for edit in edits]
        yield Asked("PATCH", at.path, _query(luck), steps, STEPS)
        return
    merged: Json = {}
    for edit in edits:
        if any(isinstance(key, int) for key in edit.path):
            continue
        inner: Any = merged
        for key in edit.path[:-1]:
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                return
        inner[edit.path[-1]] = edit.value
    yield Asked("PATCH", at.path, _query(luck), merged, style)


def _step(edit: Edit) -> Json:
    path = "/" + "/".join(str(key).replace("~", "~0").replace("/", "~1") for key in edit.path)
    return {"op": "remove", "path": path} if edit.value is None else {"op": "add", "path": path, "value": edit.value}


def _apply(luck: Random, kind: Kind) -> Iterator[Asked]:
    at = _At(luck, kind)
    body = {"apiVersion": kind.version, "kind": kind.kind, **_made(luck, kind, at.name)}
    body["metadata"].pop("namespace", None)
    query = {"fieldManager": luck.choice(["alice", "bob"]), **({"force": "true"} if luck.random() < 0.5 else {})}
    if luck.random() < 0.1:
        query.pop("fieldManager")
    yield Asked("PATCH", at.path, query, body, APPLY)


def _delete(luck: Random, kind: Kind) -> Iterator[Asked]:
    at = _At(luck, kind)
    options: list[Any] = [
        None,
        None,
        {"gracePeriodSeconds": luck.choice([0, 0, 1, 30, -1])},
        {"propagationPolicy": luck.choice(["Background", "Orphan", "Foreground", "Other"])},
        {"preconditions": {"uid": UID}},
        {"preconditions": {"uid": "somebody-else"}},
        {"preconditions": {"resourceVersion": luck.choice([VERSION, "1"])}},
        {"dryRun": ["All"]},
        {"gracePeriodSeconds": "soon"},
    ]
    yield Asked("DELETE", at.path, {}, luck.choice(options), base=at.path)


def _release(luck: Random, kind: Kind) -> Iterator[Asked]:
    """Take the finalizers off, so that what was to go is gone."""
    yield Asked("PATCH", _At(luck, kind).path, {}, {"metadata": {"finalizers": None}}, MERGE)


def _bind(luck: Random, _: Kind) -> Iterator[Asked]:
    at = _At(luck, KINDS[0])
    target: Json = {"kind": "Node", "name": luck.choice(_NODES)}
    metadata: Json = {"name": at.name}
    fault = luck.choice(["", "", "", "", "uid", "other uid", "name", "kind", "empty", "labels", "version"])
    if fault in ("uid", "other uid"):
        metadata["uid"] = UID if fault == "uid" else "somebody-else"
    elif fault == "name":
        metadata["name"] = "other"
    elif fault == "kind":
        target["kind"] = "Machine"
    elif fault == "empty":
        target["name"] = ""
    elif fault == "labels":
        metadata |= {"labels": {"bound": "so"}, "annotations": {"by": "us"}}
    elif fault == "version":
        metadata["resourceVersion"] = luck.choice([VERSION, "1"])
    body = {"metadata": metadata, "target": target}
    if luck.random() < 0.1:
        yield Asked("POST", f"/api/v1/namespaces/{at.namespace}/bindings", _query(luck), body, base=at.path)
    else:
        yield Asked("POST", f"{at.path}/binding", _query(luck), body, base=at.path)


def _evict(luck: Random, _: Kind) -> Iterator[Asked]:
    at = _At(luck, KINDS[0])
    body: Json = {"metadata": {"name": at.name}}
    if luck.random() < 0.3:
        body["deleteOptions"] = luck.choice(
            [{"gracePeriodSeconds": 0}, {"preconditions": {"uid": UID}}, {"dryRun": ["All"]}]
        )
    yield Asked("POST", f"{at.path}/eviction", {}, body, base=at.path)


def _scale(luck: Random, kind: Kind) -> Iterator[Asked]:
    at = _At(luck, kind)
    replicas = luck.choice([0, 1, 3, -1])
    style = luck.randrange(3)
    if style == 0:
        yield Asked("GET", f"{at.path}/scale")
    elif style == 1:
        yield Asked("PATCH", f"{at.path}/scale", {}, {"spec": {"replicas": replicas}}, MERGE)
    else:
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": at.name, "namespace": at.namespace},
            "spec": {"replicas": replicas},
        }
        yield Asked("PUT", f"{at.path}/scale", {}, body)


def _delete_all(luck: Random, kind: Kind) -> Iterator[Asked]:
    at = _At(luck, kind)
    yield Asked("DELETE", at.collection, {"labelSelector": luck.choice(["app=b", "app=none", "a in"])})


MOVES: list[tuple[Callable[[Random, Kind], Iterator[Asked]], int]] = [
    (_create, 30),
    (_create_wrongly, 6),
    (_get, 6),
    (_list, 6),
    (_update, 12),
    (_status, 6),
    (_patch, 12),
    (_apply, 4),
    (_delete, 8),
    (_release, 2),
    (_bind, 8),
    (_evict, 2),
    (_scale, 2),
    (_delete_all, 1),
]


# ── one thing wrong ─────────────────────────────────────────────────────────────────────────────────────────

WRONG: list[Any] = [None, True, -1, 0, 1.5, "", "x", "-1", "1.5Gi", "Always", [], {}, ["x"], {"x": "y"}, 2**63, "a b"]


def spoilt(luck: Random, body: Any) -> Any:
    """The body with one value somewhere in it replaced."""
    body = copy.deepcopy(body)
    places: list[Any] = []
    _places(body, places)
    place, key = luck.choice(places)
    place[key] = copy.deepcopy(luck.choice(WRONG))
    return body


def _places(value: Any, found: list[Any]) -> None:
    pairs = sorted(value.items()) if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        found.append((value, key))
        _places(below, found)
