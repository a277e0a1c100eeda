"""A run as a value: the cluster, what happens to it and when, and what goes wrong.  Plain data, so it can be cut down.

A Plan is drawn from a seed (`drawing.py`), played (`play.py`), made smaller when it breaks something (`shrink.py`),
and kept as YAML.  Times are milliseconds since the run began.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import yaml
from msgspec import Struct

from kubesched.config.yaml import Limits, parse
from kubesched.framework.errors import KubeschedError

Json = dict[str, Any]
LIMITS = Limits(size=8 << 20, depth=64, nodes=500_000)


class InvalidPlan(KubeschedError):
    """A file that is no plan; says what is wrong with it and where."""

    exit_status = 2


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    pass


# ── what happens to the cluster ──────────────────────────────────────────────────────────────────────────────


class Make(_Part, frozen=True, tag_field="do", tag="make"):
    """An object appears."""

    at: int
    obj: Json


class Remove(_Part, frozen=True, tag_field="do", tag="remove"):
    at: int
    kind: str
    key: str


class Alter(_Part, frozen=True, tag_field="do", tag="alter"):
    """A merge patch."""

    at: int
    kind: str
    key: str
    body: Json


class Place(_Part, frozen=True, tag_field="do", tag="place"):
    """Somebody else binds a pod: this one, or any that waits."""

    at: int
    key: str
    node: str


class Say(_Part, frozen=True, tag_field="do", tag="say"):
    """An operator's word to the scheduler."""

    at: int
    verb: Literal["activate", "allow", "reject"]
    key: str


# ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────


class Hush(_Part, frozen=True, tag_field="do", tag="hush"):
    """News of a kind stay away for a while, and then come all at once."""

    at: int
    kind: str
    lasting: int


class Gap(_Part, frozen=True, tag_field="do", tag="gap"):
    """News of a kind are lost for a while; then the stream ends with 410 and the list is read again."""

    at: int
    kind: str
    lasting: int


class Echo(_Part, frozen=True, tag_field="do", tag="echo"):
    """The next so many news of a kind are told twice."""

    at: int
    kind: str
    times: int


class Crash(_Part, frozen=True, tag_field="do", tag="crash"):
    """The scheduler dies after so many more effects, and begins anew after a while."""

    at: int
    effects: int
    down: int


class Stop(_Part, frozen=True, tag_field="do", tag="stop"):
    """The scheduler is asked to end: it finishes what is under way, lets go of the Lease, and is back after a while."""

    at: int
    down: int


Happening: TypeAlias = Make | Remove | Alter | Place | Say | Hush | Gap | Echo | Crash | Stop
FAULTS = (Hush, Gap, Echo, Crash, Stop)

Outcome = Literal["lost", "timeout-after-apply", "late", "refused", "failed", "slow", "twice"]
"""What becomes of a request.

lost: never carried out, never answered.  timeout-after-apply: carried out, never answered.  late: carried out long
after the caller gave up.  refused: answered with a 4xx.  failed: answered with a 5xx, which says nothing about
whether it was carried out (it was not).  slow: takes long, and is answered truly.  twice: carried out twice.
"""


class Mishap(_Part, frozen=True):
    """What goes wrong with one request: the n-th of its type about its object, counted from 1."""

    effect: str
    key: str
    number: int
    outcome: Outcome
    after: int = 5_000
    reason: str = ""
    code: int = 0

    @property
    def place(self) -> tuple[str, str, int]:
        return self.effect, self.key, self.number


class Weather(_Part, frozen=True):
    """How long things take, and how likely they go wrong where nothing else is said.

    Args:
        lag: of news, by kind; the kind "" stands for all others.
        chances: effect → outcome → its chance.
        until: when faults stop and nothing more happens to the cluster.
    """

    write: int = 2
    lag: Mapping[str, int] = {}
    jitter: int = 0
    cycle: int = 0
    burst: int = 256
    patience: int = 5_000
    chances: Mapping[str, Mapping[Outcome, float]] = {}
    until: int = 0


class Custom(_Part, frozen=True):
    """Who else lives in the cluster, and how.

    Args:
        kubelet: how long a bound pod takes to run; 0 for no kubelet.
        life: how long pods run; 0 for ever.
        recreate: how often a pod that went away comes back, each time after `recreate_after`.
        same_name: under its own name; else under a new one.
        chatter: every so often a node or a pod is written that nobody meant to change; 0 for never.
        rival: another scheduler serves every pod too.
        wire: the schedulers talk to a whole API server through the client they have in production: "" (they do not),
            alone, elected (two of them, and a Lease).
        extender: what a played extender does: "" (there is none), well, strict, hanging, evil, binding.
    """

    kubelet: int = 0
    grace: bool = False
    life: int = 0
    recreate: int = 0
    recreate_after: int = 500
    same_name: bool = False
    chatter: int = 0
    rival: bool = False
    provisioner: bool = False
    wire: str = ""
    extender: str = ""


class Plan(_Part, frozen=True):
    """A run.

    Args:
        broke: the law it broke when it was kept; empty for one that never did.
        story: what it is about, for people.
        scheduler: a KubeSchedulerConfiguration.
        patient: how long the scheduler may take to come to rest in the quiet at the end.
    """

    story: str = ""
    broke: str = ""
    seed: int = 0
    scheduler: Json = {}
    weather: Weather = Weather()
    custom: Custom = Custom()
    patient: int = 60_000
    cluster: tuple[Json, ...] = ()
    happenings: tuple[Happening, ...] = ()
    mishaps: tuple[Mishap, ...] = ()

    @property
    def asks(self) -> bool:
        """Whether extenders are asked, so that an attempt takes time and is about a moment that has passed."""
        return bool(self.scheduler.get("extenders"))

    @property
    def size(self) -> int:
        """Of how many things it is made."""
        return len(self.cluster) + len(self.happenings) + len(self.mishaps)


def as_yaml(plan: Plan) -> str:
    data = msgspec.json.decode(msgspec.json.encode(plan))  # nothing is shared, so nothing becomes an alias
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=118)
    return text


def read_plan(path: Path) -> Plan:
    """The plan in a file.  Raises InvalidPlan."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidPlan(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    try:
        return msgspec.convert(parse(data, str(path), LIMITS), Plan)
    except msgspec.ValidationError as error:
        raise InvalidPlan(f"{path}: not the plan of a run: {error} (see docs/reliability.md)") from None
