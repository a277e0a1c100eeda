"""Effects on their way to the API server: in which order, how many at once, how many a second.

What the core wants comes in bursts; what an API server takes is limited, by its own measure (429) and by ours
(`clientConnection.qps` and `burst`).  Bindings, and whatever settles one, go before everything else.  Events for people
have a lane of their own, as in kube-scheduler; it is narrow while bindings are under way, for both meet in the same
server, and pods that start are worth more than what is said of them.  Events are dropped before they pile up.  Requests
about one object never overtake each other: the last condition written is the last one said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from msgspec.structs import replace

from kubesched.api.kinds import Kind
from kubesched.api.time import Duration, Instant, seconds
from kubesched.core.messages import AnyEffect, Bind, Call, Completed, EffectId, Evict, PatchPod, Publish, ReadPod
from kubesched.framework.steps import Answer, Create, Delete, Failure, HttpPost, Patch
from kubesched.wire.announcer import Announcer
from kubesched.wire.exchange import Exchange, Luck, Reply, Request, Response, Unanswered
from kubesched.wire.patience import Bucket
from kubesched.wire.plans import Pause, Plan, Plans

AT_ONCE = 64
AT_ONCE_LOW = 32  # of these, for what is not about a binding
EVENTS_AT_ONCE = 8
EVENTS_BESIDE_BINDINGS = 2
EVENTS_MAX = 4096  # under way, until new ones are dropped
TIMEOUT: Duration = seconds(5)

URGENT, NORMAL, LOW = 0, 1, 2


class Job:
    """One effect on its way: its plan, and the request or pause it has got to."""

    __slots__ = ("binds", "effect", "key", "lane", "plan", "rank", "ready_at", "request", "sent")

    def __init__(
        self, effect: EffectId | None, plan: Plan, lane: Lane, rank: tuple[int, int], key: str, binds: bool = False
    ) -> None:
        self.effect, self.plan, self.lane, self.rank, self.key = effect, plan, lane, rank, key
        self.binds = binds
        self.sent = False  # a request of it, at least
        self.request: Request | None = None
        self.ready_at = Instant(0)  # when its request could have been sent, if it had been its turn

    @property
    def can_be_left(self) -> bool:
        """Whether another leader may as well do it: it is for people, or a binding nobody has heard of yet."""
        return self.rank[0] == LOW or (self.binds and not self.sent)


class Lane:
    """Jobs that share a rate, and places to be under way at the same time."""

    def __init__(self, bucket: Bucket, at_once: int, at_once_low: int) -> None:
        self.bucket = bucket
        self.at_once, self._at_once_low = at_once, at_once_low
        self._ready: list[tuple[tuple[int, int], Job]] = []
        self._running = [0, 0]  # all, and those that are not urgent
        self.unfinished = 0

    def put(self, job: Job) -> None:
        heappush(self._ready, (job.rank, job))

    def next(self, now: Instant) -> Job | None:
        """The job whose turn it is, if it is anybody's."""
        if self._turn is None or self.bucket.free_at > now:
            return None
        job = heappop(self._ready)[1]
        self.bucket.take(now)
        self._count(job, 1)
        return job

    def back(self, job: Job) -> None:
        self._count(job, -1)

    def leave(self) -> list[Job]:
        """Those that wait for their turn and can be left."""
        left = [job for _, job in self._ready if job.can_be_left]
        self._ready = [(rank, job) for rank, job in self._ready if not job.can_be_left]
        heapify(self._ready)
        return left

    @property
    def urgent(self) -> bool:
        """Whether something urgent is under way, or the next to be."""
        return self._running[0] > self._running[1] or bool(self._ready and self._ready[0][0][0] == URGENT)

    @property
    def free_at(self) -> Instant | None:
        """When the rate allows the next one; None where it waits for something else."""
        return None if self._turn is None else self.bucket.free_at

    @property
    def _turn(self) -> Job | None:
        if not self._ready:
            return None
        job = self._ready[0][1]
        low = job.rank[0] > URGENT
        full = self._running[0] >= self.at_once or (low and self._running[1] >= self._at_once_low)
        return None if full else job

    def _count(self, job: Job, by: int) -> None:
        self._running[0] += by
        self._running[1] += by if job.rank[0] > URGENT else 0


class Performer:
    """Carries effects out and answers each with Completed.

    Args:
        host: where we run, for Events.
        may_write: whether anything may be written at a moment; asked before every request.
        kinds: that a plugin may write besides those everybody knows.
        extenders: how long each may take, by its number.
    """

    def __init__(
        self,
        exchange: Exchange,
        luck: Luck,
        *,
        host: str,
        may_write: Callable[[Instant], bool] = lambda now: True,
        qps: float = 50.0,
        burst: int = 100,
        timeout: Duration = TIMEOUT,
        kinds: Mapping[str, Kind] | None = None,
        extenders: Mapping[int, Duration] | None = None,
    ) -> None:
        self._exchange, self._may_write = exchange, may_write
        self._plans = Plans(kinds or {}, timeout, extenders or {})
        self._announcer = Announcer(host, timeout, luck)
        self._calls = Lane(Bucket(qps, burst), AT_ONCE, AT_ONCE_LOW)
        self._events = Lane(Bucket(qps, burst), EVENTS_AT_ONCE, EVENTS_AT_ONCE)
        self._extenders = Lane(Bucket(-1, 0), AT_ONCE, AT_ONCE)
        self._lanes = (self._calls, self._events, self._extenders)
        self._behind: dict[str, deque[Job]] = {}  # by object: those that wait for one before them
        self._paused: list[tuple[Instant, int, Job]] = []
        self._numbers = count(1)
        self._writes = True
        self._dropping = False  # Events; said once, until there is room again
        self._hushed = False
        self._dropped = 0  # since it was hushed
        self._makers: Mapping[type[AnyEffect], Callable[[Any, Instant], Plan]] = {
            Bind: self._plans.bind,
            PatchPod: self._plans.patch_pod,
            ReadPod: self._plans.read_pod,
            Evict: self._plans.evict,
        }

    def __len__(self) -> int:
        """How many effects have not been answered, Events aside."""
        return self._calls.unfinished + self._extenders.unfinished

    @property
    def idle(self) -> bool:
        """Whether everything has been answered, Events too."""
        return not any(lane.unfinished for lane in self._lanes)

    # ── what a host calls ────────────────────────────────────────────────────────────────────────────────────

    def perform(self, effects: Iterable[AnyEffect], now: Instant) -> None:
        """Start them; each is answered by Completed."""
        for effect in effects:
            match effect:
                case Publish():
                    self._publish(effect, now)
                case Call(step=step):
                    lane = self._extenders if isinstance(step, HttpPost) else self._calls
                    self._begin(effect.id, self._plans.call(step), lane, NORMAL, _object_of(step), now)
                case _:
                    plan = self._makers[type(effect)](effect, now)
                    binds = isinstance(effect, Bind)
                    self._begin(effect.id, plan, self._calls, _urgency(effect), f"Pod {effect.pod}", now, binds)
        self._go(now)

    def hush(self, now: Instant) -> int:
        """Begin nothing more that another leader may as well do, nor say anything to people.  How much that was."""
        self._hushed = True
        paused = [job for _, _, job in self._paused if job.can_be_left]
        self._paused = [one for one in self._paused if not one[2].can_be_left]
        heapify(self._paused)
        before = self._dropped
        for job in [*paused, *(job for lane in self._lanes for job in lane.leave())]:
            self._drop(job, now)
        self._go(now)
        return self._dropped - before

    def tick(self, now: Instant) -> None:
        """Do what is due."""
        while self._paused and self._paused[0][0] <= now:
            job = heappop(self._paused)[2]
            self._advance(job, None, now)
        for key, plan in self._announcer.tick(now):
            self._begin(None, plan, self._events, LOW, f"Event {key}", now)
        self._go(now)

    @property
    def deadline(self) -> Instant | None:
        """When `tick` is needed by itself."""
        due = [self._paused[0][0]] if self._paused else []
        due += [at for lane in self._lanes if (at := lane.free_at) is not None] if self._writes else []
        due += [self._announcer.deadline] if self._announcer.deadline is not None else []
        return min(due, default=None)

    # ── one job ──────────────────────────────────────────────────────────────────────────────────────────────

    def _publish(self, effect: Publish, now: Instant) -> None:
        if self._events.unfinished >= EVENTS_MAX:
            text = "" if self._dropping else f"too many Events: dropping some, one about {effect.regarding}"
            self._dropping = True
            self._exchange.remark("warning", "Publish", "dropped", text)
            self._complete(effect.id, Answer(failure=Failure("Dropped", "too many Events are under way")))
            return
        self._dropping = self._dropping and self._events.unfinished > EVENTS_MAX // 2
        said = self._announcer.publish(effect, now)
        if said is None:
            self._complete(effect.id, Answer())
        else:
            self._begin(effect.id, said[1], self._events, LOW, f"Event {said[0]}", now)

    def _begin(
        self,
        effect: EffectId | None,
        plan: Plan,
        lane: Lane,
        urgency: int,
        key: str,
        now: Instant,
        binds: bool = False,
    ) -> None:
        job = Job(effect, plan, lane, (urgency, next(self._numbers)), key, binds)
        lane.unfinished += 1
        if key and key in self._behind:
            self._behind[key].append(job)
            return
        if key:
            self._behind[key] = deque()
        self._advance(job, None, now)

    def _go(self, now: Instant) -> None:
        """Send whatever may go now."""
        self._writes = self._may_write(now)
        if not self._writes:
            return
        self._events.at_once = EVENTS_BESIDE_BINDINGS if self._calls.urgent else EVENTS_AT_ONCE
        for lane in self._lanes:
            while (job := lane.next(now)) is not None:
                assert job.request is not None, "what is ready has a request"
                job.sent = True
                request = replace(job.request, waited=Duration(now - job.ready_at))
                self._exchange.send(request, partial(self._hear, job))

    def _hear(self, job: Job, reply: Reply, now: Instant) -> None:
        job.lane.back(job)
        got = reply if isinstance(reply, (Response, Unanswered)) else Unanswered("the answer came in pieces")
        self._advance(job, got, now)
        self._go(now)

    def _advance(self, job: Job, got: Response | Unanswered | None, now: Instant) -> None:
        """Tell a plan what came back, and see to what it wants next."""
        try:
            wanted = job.plan.send(got)
        except StopIteration as done:
            self._end(job, done.value, now)
            return
        if self._hushed and job.can_be_left:
            self._drop(job, now)
        elif isinstance(wanted, Pause):
            heappush(self._paused, (Instant(now + wanted.delay), next(self._numbers), job))
        else:
            job.request, job.ready_at = wanted, now
            job.lane.put(job)

    def _drop(self, job: Job, now: Instant) -> None:
        self._dropped += 1
        job.plan.close()
        self._end(job, Answer(failure=Failure("Dropped", "somebody else is about to lead")), now)

    def _end(self, job: Job, answer: Answer, now: Instant) -> None:
        job.lane.unfinished -= 1
        if job.effect is not None:
            self._complete(job.effect, answer)
        if job.key:
            waiting = self._behind[job.key]
            if waiting:
                self._advance(waiting.popleft(), None, now)
            else:
                del self._behind[job.key]

    def _complete(self, effect: EffectId, answer: Answer) -> None:
        self._exchange.tell(Completed(effect, answer))


def _object_of(step: Patch | Create | Delete | HttpPost) -> str:
    """What a step is about; two that are about the same do not overtake each other."""
    return "" if isinstance(step, HttpPost) else f"{step.kind} {step.key}"


def _urgency(effect: Bind | PatchPod | ReadPod | Evict) -> int:
    """Bindings first, and what settles one: a read, or a write that carries the version it saw."""
    match effect:
        case Bind() | ReadPod():
            return URGENT
        case PatchPod(resource_version=version):
            return URGENT if version else LOW
        case Evict():
            return NORMAL
