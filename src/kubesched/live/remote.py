"""The world of a real cluster: the wire's client, an HTTP transport and the wall clock.

One thread does everything, as in the embedded world: when the scheduler has nothing to take, the event loop has a
turn and requests, answers and watches move on; when there is nothing to do at all, the loop runs until something
happens.  Nothing needs a lock, and a scheduler that computes does not starve its own I/O: two threads would share one
interpreter, and each read of a socket would wait for its turn at it.  The other way round a flood of news cannot
starve the Lease, for the loop has its turn at least every few milliseconds.

What must happen at some moment (a retry, a renewal, a connection given up) is the client's to know: `deadline` says
when, and the loop wakes up for it.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from random import Random

from kubesched.api.kinds import Kind
from kubesched.api.time import Duration, Instant, milliseconds, seconds
from kubesched.core.messages import AnyEffect, Commanded, Event, Synced
from kubesched.live.memory import give_back
from kubesched.live.pace import Pace
from kubesched.live.transport import Transport
from kubesched.wire.client import DRAIN_WITHIN, LAST_WORDS_WITHIN, Client
from kubesched.wire.elector import LeaseOptions
from kubesched.wire.exchange import Actions, Number, Remark, Reply

TURN_EVERY: Duration = milliseconds(20)  # that the event loop waits for its turn at most
TURN_AGAIN: Duration = milliseconds(1)  # a turn costs as much as a decision: several decisions share one
RELEASE_WITHIN: Duration = seconds(1)
GIVE_BACK_EVERY: Duration = seconds(60)


class RemoteWorld:
    """What `drive` needs to schedule a real cluster.

    Args:
        transport: carries requests out, in an event loop that runs in the thread that drives.
        kinds: what is watched; pods come last, for they need the others.
        identity: who we are to other candidates for the Lease; different for every process.
        lease: which Lease to hold while scheduling; None to schedule without.
        seed: of jitter.
        host: where we run, as Events say it.
        extenders: how long each extender may take, by its number.
        streams: whether first views are streamed where the server can.
        idle_until_leading: watch nothing before we lead.
        listen: told of everything worth a line in a log.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        kinds: Iterable[Kind],
        identity: str,
        lease: LeaseOptions | None = None,
        qps: float = 50.0,
        burst: int = 100,
        seed: int = 0,
        host: str = "",
        extenders: Mapping[int, Duration] | None = None,
        streams: bool = True,
        idle_until_leading: bool = False,
        listen: Callable[[Remark], None] | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.transport, self.loop, self.pace = transport, transport.loop, pace or Pace()
        self.client = Client(
            sorted(kinds, key=lambda kind: (kind.name == "Pod", kind.name)),
            Random(f"{seed}/wire"),
            identity=identity,
            lease=lease,
            host=host,
            qps=qps,
            burst=burst,
            extenders=extenders,
            streams=streams,
            idle_until_leading=idle_until_leading,
        )
        self._listen = listen or (lambda remark: None)
        self._inbox: deque[Event] = deque()
        self._unsynced = set(self.client.reflectors)
        self._begun = self._asleep = self._over = False
        self._turned_at = Instant(0)
        self._give_back_at: Instant | None = None
        self._draining: tuple[Callable[[], bool], Instant] | None = None
        self._hush_at: Instant | None = None
        self._end_at: Instant | None = None  # when not to wait for the Lease any longer

    # ── the World protocol ───────────────────────────────────────────────────────────────────────────────────

    @property
    def now(self) -> Instant:
        return self.pace.now()

    def perform(self, effects: Iterable[AnyEffect]) -> None:
        wanted = tuple(effects)
        if wanted:
            self._do(self.client.perform(wanted, self.now))

    def take(self) -> Event | None:
        if not self._begun:
            self._begin()
        if self.now - self._turned_at >= (TURN_EVERY if self._inbox else TURN_AGAIN):
            self._turn()
        return self._inbox.popleft() if self._inbox else None

    def sleep(self, until: Instant | None) -> bool:
        self._end_if_drained()
        if self.over:
            return False
        if self._inbox:
            return True
        due = [at for at in (until, self.client.deadline, self._wake_at) if at is not None]
        alarm = None
        if due:
            alarm = self.loop.call_later(self.pace.wait(Duration(max(0, min(due) - self.now))), self.wake)
        self._asleep = True
        self.loop.run_forever()
        self._asleep = False
        if alarm is not None:
            alarm.cancel()
        return True

    # ── from outside ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def over(self) -> bool:
        """Whether nothing will happen any more: we were stopped, or lost the Lease."""
        return self._over or self.client.over or (self._end_at is not None and self.now >= self._end_at)

    @property
    def lost(self) -> bool:
        """Whether it is over because somebody else may lead now."""
        return self.client.lost

    def tell(self, event: Event) -> None:
        """Tell the scheduler something: an operator's word, say."""
        self._inbox.append(event)
        self.wake()

    def wake(self) -> None:
        """Let `sleep` return: something has changed."""
        if self._asleep:
            self.loop.stop()

    def drain(self, settled: Callable[[], bool], within: Duration = DRAIN_WITHIN) -> None:
        """Begin nothing new, bring to an end what is under way, let go of the Lease, and be over.

        Args:
            settled: whether the core has nothing under way.
            within: then the Lease is let go in any case; what is still under way is fenced.
        """
        if self._draining is None and self._end_at is None:
            now = self.now
            self._draining = (settled, Instant(now + within))
            self._hush_at = Instant(now + LAST_WORDS_WITHIN) if within else None
            self.tell(Commanded("drain"))

    def stop(self) -> None:
        """Be over at once."""
        self._over = True
        self.tell(Commanded("drain"))

    def close(self) -> None:
        """Close all connections, and the event loop."""
        if not self.loop.is_closed():
            self.loop.run_until_complete(self.transport.close())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        self._begun = True
        self._do(self.client.start(self.now))

    def _turn(self) -> None:
        """Let requests, answers and whoever else lives in the event loop move on, without waiting for them."""
        deadline, now = self.client.deadline, self.now
        if deadline is not None and deadline <= now:
            self._do(self.client.tick(now))
        if self._give_back_at is not None and self._give_back_at <= now:
            give_back()
            self._give_back_at = Instant(self.now + GIVE_BACK_EVERY)
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        self._turned_at = self.now

    def _do(self, actions: Actions) -> None:
        """What the client wants done."""
        for remark in actions.remarks:
            self._listen(remark)
        for number in actions.abandoned:
            self.transport.abandon(number)
        for number, request in actions.requests:
            self.transport.send(number, request, self._hear)
        for event in actions.events:
            self._inbox.append(event)
            if isinstance(event, Synced):
                self._note_synced(event)
        if self.client.lost and not self._over:
            self._over = True
            self._inbox.append(Commanded("drain"))  # whatever the core decides now is decided too late

    def _hear(self, number: Number, reply: Reply) -> None:
        self._do(self.client.receive(number, reply, self.now))
        self.wake()

    def _note_synced(self, event: Synced) -> None:
        self._unsynced.difference_update(event.kinds)
        if not self._unsynced and event.kinds[0] in self.client.reflectors:
            give_back()
            gc.freeze()  # the first view stays for long: do not look through it again and again
            self._give_back_at = Instant(self.now + GIVE_BACK_EVERY)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _wake_at(self) -> Instant | None:
        if self._draining is None:
            return self._end_at
        return self._draining[1] if self._hush_at is None else self._hush_at

    def _end_if_drained(self) -> None:
        if self._draining is None or self._inbox:
            return
        settled, at_latest = self._draining
        now = self.now
        if self._hush_at is not None and now >= self._hush_at:
            self._hush_at = None
            self._do(self.client.hush(now))
        if (settled() and self.client.performer.idle) or now >= at_latest:
            self._draining = None
            self._end_at = Instant(now + RELEASE_WITHIN)
            self._do(self.client.stop(now))
