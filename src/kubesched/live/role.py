"""The rights a scheduler needs, derived from what it does: no star, no verb that nobody uses.

What every scheduler does is a table here; what its plugins read and write they declare themselves
(`framework.hooks.Reader`, `Writer`).  So a profile without preemption may delete no pod, and a plugin that reads a
kind of its own may read just that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kubesched.api.kinds import kind_of
from kubesched.api.objects import Node, Pod
from kubesched.config.schema import LeaderElection
from kubesched.framework.hooks import writes_of
from kubesched.framework.profile import Profile

Json = dict[str, Any]

WATCHED = ("list", "watch")
_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete")


class Right(NamedTuple):
    """What may be done with one resource."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


ALWAYS = (
    Right("", "pods", ("get",)),  # to learn what became of a binding nobody answered
    Right("", "pods/binding", ("create",)),
    Right("", "pods/status", ("patch",)),
    Right("events.k8s.io", "events", ("create", "patch")),
)
"""What a scheduler does whatever its plugins are, besides watching."""

ASKING_WHO = (
    Right("authentication.k8s.io", "tokenreviews", ("create",)),
    Right("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)
"""What it takes to ask the API server who somebody is and what they may see."""

LEASES = "coordination.k8s.io"


def cluster_rights(profiles: Mapping[str, Profile], *, serving: bool = True) -> list[Right]:
    """The rights in the whole cluster that these profiles need.

    Args:
        serving: whether others may ask the scheduler over its port.
    """
    rights = list(ALWAYS)
    rights += [Right(kind.group, kind.plural, WATCHED) for kind in (kind_of(Pod), kind_of(Node))]
    for profile in profiles.values():
        rights += [Right(kind.group, kind.plural, WATCHED) for kind in profile.kinds.values()]
        for plugin in profile.plugins:
            for write in writes_of(plugin):
                kind = kind_of(write.kind)
                resource = f"{kind.plural}/{write.subresource}" if write.subresource else kind.plural
                rights.append(Right(kind.group, resource, (write.verb,)))
    if serving:
        rights += ASKING_WHO
    return merged(rights)


def lease_rights(election: LeaderElection) -> list[Right]:
    """The rights in the namespace of the lease; none where nobody is elected."""
    if not election.leader_elect:
        return []
    # A name cannot be asked for at creation: the object is not there yet.
    return [
        Right(LEASES, "leases", ("create",)),
        Right(LEASES, "leases", ("get", "watch", "update"), (election.resource_name,)),
    ]


def merged(rights: Iterable[Right]) -> list[Right]:
    """The same with every resource once, sorted."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for right in rights:
        verbs.setdefault((right.group, right.resource, right.names), set()).update(right.verbs)
    return [
        Right(group, resource, tuple(sorted(found, key=_ORDER.index)), names)
        for (group, resource, names), found in sorted(verbs.items())
    ]


def rules(rights: Iterable[Right]) -> list[Json]:
    """As a Role has them: resources of one group with the same verbs share a rule."""
    together: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for right in rights:
        together.setdefault((right.group, right.verbs, right.names), []).append(right.resource)
    return [
        {
            "apiGroups": [group],
            "resources": resources,
            **({"resourceNames": list(names)} if names else {}),
            "verbs": list(verbs),
        }
        for (group, verbs, names), resources in together.items()
    ]
