"""Versions of a template: the ControllerRevisions that DaemonSets and StatefulSets keep of themselves.

Pods carry the hash of the template they were made from, so it is known which are of the present version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesched.actors.deployment import template_hash
from kubesched.actors.messages import Create, Effect, change, delete
from kubesched.actors.pods import owner_reference
from kubesched.actors.view import View

Json = dict[str, Any]

REVISIONS = "apps/controllerrevisions"
HASH = "controller-revision-hash"
_LIMIT = 10


def revisions_of(view: View, owner: Json) -> list[Json]:
    """The known versions of an owner, oldest first."""
    found = view.controlled(REVISIONS, owner["metadata"]["uid"])
    return sorted(found, key=lambda one: (one.get("revision", 0), one["metadata"]["name"]))


def keep_revision(known: list[Json], owner: Json) -> Iterator[Effect]:
    """See that the present version is the latest one on record."""
    name = revision_name(owner)
    latest = known[-1].get("revision", 0) if known else 0
    mine = next((one for one in known if one["metadata"]["name"] == name), None)
    if mine is None:
        template = owner["spec"].get("template") or {}
        meta = {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": {**((template.get("metadata") or {}).get("labels") or {}), HASH: hash_of(owner)},
            "ownerReferences": [owner_reference(owner)],
        }
        data = {"spec": {"template": {**template, "$patch": "replace"}}}
        made = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta}
        yield Create(REVISIONS, {**made, "data": data, "revision": latest + 1})
    elif mine is not known[-1]:
        yield change(REVISIONS, mine, {"revision": latest + 1})


def forget_revisions(known: list[Json], owner: Json, used: set[str]) -> Iterator[Effect]:
    """Old versions no pod is of, beyond those that are kept for a way back."""
    limit = owner["spec"].get("revisionHistoryLimit")
    idle = [one for one in known[:-1] if one["metadata"].get("labels", {}).get(HASH) not in used]
    for one in idle[: max(0, len(idle) - (_LIMIT if limit is None else int(limit)))]:
        yield delete(REVISIONS, one)


def hash_of(owner: Json) -> str:
    return template_hash(owner["spec"].get("template") or {})


def revision_name(owner: Json) -> str:
    return f"{owner['metadata']['name']}-{hash_of(owner)}"


def hash_on(pod: Json) -> str:
    """The version a pod is of."""
    found: str = (pod["metadata"].get("labels") or {}).get(HASH, "")
    return found
