"""Seeds about one thing only: a few objects with hardly a wish, and happenings that all pull in one direction.

Some mistakes need three or four things in a row, and then silence: whoever was forgotten is woken by the next thing
that happens anywhere.  A plan with a little of everything hardly ever brings the first and never the second.  So a few
seeds in a hundred are about one subject to the exclusion of the rest; what is drawn is how much of it, when, and whom.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kubesched.fuzz import extender
from kubesched.fuzz.objects import Drawn, Theme
from kubesched.fuzz.plan import Custom, Happening, Json, Make, Outcome, Place, Plan, Remove, Weather
from kubesched.fuzz.tape import Tape

SHARE = 0.08  # of all seeds
_RATES = (0.3, 0.6, 1.0)


class Subject(Struct, frozen=True, kw_only=True):
    """What a plan is about, and nothing else.

    Args:
        nodes: how many there may be.
        room: processors of a node.
        arrivals: how many pods come, at least and at most.
        held: pods are held at permit.
        full: every node is full of pods of no importance, who take their time to go.
        extended: an extender binds, and is not always heard.
        ranks: priorities of those who come.
        late: by how many milliseconds news of pods may be late.
        unheard: requests that go wrong.
        people: what somebody does meanwhile.
    """

    nodes: tuple[int, ...] = (1, 1, 2)
    room: tuple[int, ...] = (1, 2)
    arrivals: tuple[int, int] = (2, 4)
    held: bool = False
    full: bool = False
    extended: bool = False
    ranks: tuple[int, ...] = (0,)
    late: tuple[int, ...] = (1,)
    unheard: tuple[str, ...] = ()
    people: tuple[str, ...] = ()


_HIGH = (100, 1000)
SUBJECTS: Mapping[str, Subject] = {
    "strangers bind pods that are held": Subject(held=True, people=("stranger binds",)),
    "an extender binds, and is not heard": Subject(
        extended=True, room=(16,), arrivals=(3, 8), late=(2_000, 5_000, 10_000), unheard=("PatchPod",)
    ),
    "room is promised on nodes that go": Subject(
        full=True, room=(2,), nodes=(2, 3), arrivals=(1, 2), ranks=_HIGH, people=("node goes",)
    ),
    "room is promised to pods that go": Subject(full=True, room=(2,), ranks=_HIGH, people=("waiter goes",)),
    "victims are held": Subject(held=True, ranks=(0, 0, 1000)),
    "victims go by themselves": Subject(full=True, room=(2,), ranks=_HIGH, unheard=("Evict",), people=("victim goes",)),
}


def draw(seed: int) -> Plan | None:
    """The plan of a seed that is about one thing; most are not."""
    tape = Tape(seed)
    if tape.part("concentrated") >= SHARE:
        return None
    return _Specialist(tape, tape.choice(tuple(SUBJECTS.values()), "subject")).plan()


class _Specialist:
    def __init__(self, tape: Tape, subject: Subject) -> None:
        self._seed, self._subject = tape.seed, subject
        self._luck = luck = tape.stream("subject")
        self._drawn = Drawn(luck, Theme.bare())
        self._until = luck.choice((20_000, 40_000))
        self._within = luck.choice((100, 1_000, 4_000))  # everybody arrives
        self._sizes = ("1",) if subject.full else luck.choice((("1",), ("1", "2")))
        self._nodes: list[str] = []  # where pods of ours may go
        self._crowd: list[str] = []  # who is there from the beginning

    def plan(self) -> Plan:
        luck, subject = self._luck, self._subject
        cluster = self._cluster()
        arrivals = [self._arrival() for _ in range(luck.randint(*subject.arrivals))]
        if subject.full:
            arrivals[0] = self._important(arrivals[0])
        first_in_line = min(arrivals, key=lambda made: (-made.obj["spec"]["priority"], made.at))
        happenings: list[Happening] = [*arrivals]
        for _ in range(luck.choice((1, 1, 2)) if subject.people else 0):
            meets = first_in_line if luck.random() < 0.6 else luck.choice(arrivals)
            happenings += self._deed(luck.choice(subject.people), meets)
        happenings.sort(key=lambda happening: happening.at)
        return Plan(
            seed=self._seed,
            scheduler=self._scheduler(),
            weather=self._weather(),
            custom=Custom(
                kubelet=luck.choice((5, 200, 2_000)),
                grace=True,
                extender="binding" if subject.extended else "",
            ),
            cluster=tuple(cluster),
            happenings=tuple(happenings),
        )

    # ── who is there, and who comes ──────────────────────────────────────────────────────────────────────────

    def _cluster(self) -> list[Json]:
        luck, found = self._luck, []
        for _ in range(luck.choice(self._subject.nodes)):
            node = self._drawn.node()
            room = luck.choice(self._subject.room)
            node["status"]["allocatable"] = {"cpu": str(room), "memory": "8Gi", "pods": "110"}
            self._nodes.append(node["metadata"]["name"])
            found += [node, *(self._crowd_on(self._nodes[-1]) if self._subject.full else ())]
        if luck.random() < (0.9 if self._subject.held else 0.2):  # a place where only strangers put pods
            found.append(self._drawn.node())
            found[-1]["spec"]["unschedulable"] = True
        return found

    def _crowd_on(self, node: str) -> list[Json]:
        luck = self._luck
        found: list[Json] = []
        for size in luck.choice((("2",), ("1", "1"), ("1", "1"), ("1", "1"))):
            pod = _asking(self._drawn.static_pod(node), size)
            grace = luck.choice((0, 1, 1, 30))
            pod["spec"] |= {"priority": luck.choice((0, 0, 10)), "terminationGracePeriodSeconds": grace}
            if not found and luck.random() < 0.8:  # of each node, one at most stays whatever is done
                pod["metadata"]["finalizers"] = ["example.com/agree"]
            found.append(pod)
            self._crowd.append(f"default/{pod['metadata']['name']}")
        return found

    def _arrival(self) -> Make:
        luck = self._luck
        pod = _asking(self._drawn.pod(), luck.choice(self._sizes))
        pod["spec"]["priority"] = luck.choice(self._subject.ranks)
        return Make(at=luck.randrange(self._within), obj=pod)

    def _important(self, made: Make) -> Make:
        """Somebody who comes early, and wants a lot."""
        _asking(made.obj, "2")["spec"]["priority"] = max(self._subject.ranks)
        return Make(at=made.at // 4, obj=made.obj)

    # ── what is done to them ─────────────────────────────────────────────────────────────────────────────────

    def _deed(self, kind: str, meets: Make) -> list[Happening]:
        """Something that is done a while after a pod came."""
        luck = self._luck
        at = meets.at + luck.choice((500, 3_000, 5_000, 8_000))
        name = luck.choice(self._nodes)
        match kind:
            case "stranger binds":
                return [Place(at=at, key=_key(meets), node=self._drawn.some_node())]
            case "waiter goes":
                return [Remove(at=at, kind="Pod", key=_key(meets))]
            case "victim goes":
                return [Remove(at=at, kind="Pod", key=luck.choice(self._crowd))]
            case "node goes" if luck.random() < 0.3:
                again = Make(at=at + luck.choice((50, 3_000)), obj=self._drawn.node(name))
                return [Remove(at=at, kind="Node", key=name), again]
        assert kind == "node goes", "a deed that is known"
        return [Remove(at=at, kind="Node", key=name)]

    # ── and how it is ────────────────────────────────────────────────────────────────────────────────────────

    def _weather(self) -> Weather:
        luck = self._luck
        outcomes: tuple[Outcome, ...] = ("lost", "failed", "refused", "timeout-after-apply", "slow")
        return Weather(
            write=luck.choice((1, 2, 20, 300)),
            lag={"": 1, "Pod": luck.choice(self._subject.late)},
            jitter=luck.choice((0, 0, 1, 20)),
            chances={name: {luck.choice(outcomes): luck.choice(_RATES)} for name in self._subject.unheard},
            until=self._until,
        )

    def _scheduler(self) -> Json:
        luck, plugins, config = self._luck, [{"name": "kubesched.fuzz.plugins:Probe"}], []
        if self._subject.held:
            plugins.insert(0, {"name": "kubesched.fuzz.plugins:Patience"})
            after = luck.choice((10_000, 20_000))
            args = {"held": luck.choice((70, 100)), "refused": luck.choice((0, 20)), "forgotten": luck.choice((0, 20))}
            args |= {"after": after, "atMost": after + luck.choice((1_000, 5_000))}
            config.append({"name": "kubesched.fuzz.plugins:Patience", "args": args})
        scheduler: Json = {"profiles": [{"plugins": {"multiPoint": {"enabled": plugins}}, "pluginConfig": config}]}
        if self._subject.extended:
            scheduler["extenders"] = [extender.configured("binding", luck)]
        return scheduler


def _asking(pod: Json, cpu: str) -> Json:
    """A pod that asks for so much of the processor, and for nothing else."""
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return pod


def _key(made: Make) -> str:
    return f"default/{made.obj['metadata']['name']}"
