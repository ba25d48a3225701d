"""The inbox: one transaction from an arrival to a command that was run or a turn that waits."""

from __future__ import annotations

import logging
from typing import assert_never

from segue.changes import accept as arrivals
from segue.changes.accept import Duplicate, Fresh, Handled, Instead, Queued, Via
from segue.changes.commands import Answer, Commands, Request
from segue.changes.exchange import deliveries, quotes
from segue.changes.exchange.welcome import welcome
from segue.changes.people.access import Access, Refuse
from segue.changes.people.persons import Met
from segue.changes.places import addresses
from segue.changes.sessions import moves, sessions
from segue.core.commands import Command, parse
from segue.core.contracts.adapters import Accepted, Letter
from segue.core.contracts.database import Driver, Transaction
from segue.core.contracts.probes import Point
from segue.core.lanes import Kind, Lane, account_key
from segue.core.messages import Arrival, plain_text
from segue.core.moves import Actor, Resume, Why
from segue.core.settings import AccountSettings, Busy, Mentions, Quotes
from segue.core.topics import DELIVERIES, HANDOFF, LOOK, TURNS
from segue.core.turns import TurnKind
from segue.core.values import Moment, PersonId, SessionId
from segue.errors import Fenced, Invalid, Refused, SegueError, StoreError
from segue.runtime.parts import Ground
from segue.runtime.telemetry.logs import traced
from segue.runtime.turns.turns import Turns

log = logging.getLogger(__name__)

TOLD = "That message couldn't be taken in, and nothing was changed. Write it another way; the host's log says more."
"""Said where somebody wrote what became a dead letter."""


class Inbox:
    """Takes messages in, exactly once."""

    def __init__(self, driver: Driver, ground: Ground, turns: Turns, access: Access, commands: Commands) -> None:
        self._driver = driver
        self._turns = turns
        self._access = access
        self._commands = commands
        self._settings = ground.settings
        self._clock = ground.clock
        self._ids = ground.ids
        self._metrics = ground.metrics
        self._probe = ground.probe

    async def accept(self, arrival: Arrival | Letter) -> Accepted:
        """Make an arrival durable; when this returns it may be acknowledged."""
        try:
            outcome = await (self._bury(arrival) if isinstance(arrival, Letter) else self._take(arrival))
        except StoreError as error:
            self._metrics.store_failed(error)
            raise
        self._probe(Point.ACCEPT_COMMITTED)
        where = arrival if isinstance(arrival, Letter) else arrival.place.address
        self._metrics.accepted(where.platform, where.account, outcome)
        return outcome

    async def _take(self, arrival: Arrival) -> Accepted:
        trace = self._ids()
        with traced(trace):
            try:
                return await self._write(arrival, trace)
            except (StoreError, Fenced):
                raise
            except Exception as error:  # noqa: BLE001 -- whatever it is, the same message would come again for ever
                return await self._give_up(arrival, error, trace)

    async def _write(self, arrival: Arrival, trace: str) -> Accepted:
        at = self._clock()
        fresh = Fresh(
            PersonId(self._ids()),
            SessionId(self._ids()),
            self._ids(),
            tuple(self._ids() for _ in range(1 + len(arrival.speaker.aliases))),
        )
        me = self._turns.reserve()
        run = None
        try:
            taken = await self._driver.write(
                arrivals.accept, arrival, self._settings.routing, fresh, me, trace, at, self._gate(trace, at)
            )
            run = taken.run if isinstance(taken, Queued) else None
        finally:
            if me is not None and run is None:
                self._turns.give_back()
        match taken:
            case Duplicate():
                return Accepted.DUPLICATE
            case Handled():
                await self._driver.hint(DELIVERIES)
                if taken.why.startswith((LOOK, HANDOFF)):
                    await self._driver.hint(taken.why)
            case Queued():
                if run is not None:
                    self._turns.start(run)
                elif me is None:
                    await self._driver.hint(TURNS)
                if run is None and self._settings.busy is not Busy.QUEUE:
                    await self._driver.hint(LOOK + taken.session)
                if taken.reset is not None:
                    await self._driver.hint(DELIVERIES)
            case _:
                assert_never(taken)
        return Accepted.NEW

    def _gate(self, trace: str, at: Moment) -> arrivals.Gate:
        def gate(arrival: Arrival, met: Met, lane: Lane) -> Transaction[Handled | Instead | None]:
            verdict = yield from self._access.judge(arrival, met, lane, at)
            if isinstance(verdict, Refuse):
                if verdict.notice:
                    yield from self._say(arrival, Answer(verdict.notice), trace, at)
                return Handled("refused")
            if not arrival.parts:
                # Whoever has a conversation there knows how to talk to it.
                if arrival.brings_agent and (yield from sessions.bound(lane)) is None:
                    line = welcome(arrival.place, lane, self._account(lane))
                    yield from self._say(arrival, Answer(line), trace, at)
                return Handled("nothing was said")
            command = parse(plain_text(arrival.parts))
            if isinstance(command, Command):
                return (yield from self._run(Request(command, arrival, met, lane, verdict.standing, trace, at)))
            if not (yield from self._meant(arrival, met, lane)):
                return Handled("not for the agent")
            return (yield from self._quoted(arrival, met, lane, at))

        return gate

    def _run(self, request: Request) -> Transaction[Handled | Instead | None]:
        arrival = request.arrival
        if arrival.edits:
            # A command ran when it was typed, and what was said as words stays words.
            words = yield from arrivals.edits_words(arrival, request.lane, request.met.person)
            return None if words else Handled("edited command")
        answer = yield from self._commands.run(request)
        if answer.text:
            yield from self._say(arrival, answer, request.trace, request.at)
        if answer.ask:
            return Instead(answer.ask, answer.kind, answer.session, lane=answer.lane)
        return Handled(answer.hint or (LOOK + answer.look if answer.look else "command"))

    def _meant(self, arrival: Arrival, met: Met, lane: Lane) -> Transaction[bool]:
        """Whether a message in a group is for the agent: it names or answers it, or is in a thread that it opened."""
        address = lane.address
        if arrival.place.kind is Kind.DM or self._account(lane).mentions is Mentions.OPTIONAL:
            return True
        if arrival.edits and (yield from arrivals.edits_words(arrival, lane, met.person)):
            # What was meant for it stays so, though the new words don't say it again.
            return True
        return arrival.mentions_agent or bool(address.thread and (yield from addresses.opened(address)))

    def _account(self, lane: Lane) -> AccountSettings:
        return self._settings.accounts.get((lane.address.platform, lane.address.account), AccountSettings())

    def _quoted(self, arrival: Arrival, met: Met, lane: Lane, at: Moment) -> Transaction[Instead | None]:
        """Where a reply to one of the agent's messages goes, if the host lets quotes decide."""
        if self._settings.quotes is Quotes.OFF or not arrival.quotes or arrival.edits:
            return None
        session = yield from quotes.session(lane, arrival.quotes, met.person.id)
        current = yield from sessions.bound(lane)
        if session is None or (current is not None and current.id == session):
            return None
        if self._settings.quotes is Quotes.ONCE:
            return Instead(arrival.parts, TurnKind.ARRIVAL, session, Via.QUOTE)
        try:
            actor, limits = Actor(met.person.id), self._settings.routing.limits
            yield from moves.make(Resume(lane, session, Why.QUOTE), actor, limits, self._ids(), at)
        except Refused:
            # What can't be switched to now changes nothing: the message is asked where the lane speaks.
            return None
        return Instead(arrival.parts, TurnKind.ARRIVAL, session)

    def _say(self, arrival: Arrival, said: Answer, trace: str, at: Moment) -> Transaction[None]:
        address, key = arrival.place.address, f"notice/{trace}"
        yield from deliveries.notify(address, said.text, key, (arrival.message,), at, said.choices, said.files)

    async def _give_up(self, arrival: Arrival, error: Exception, trace: str) -> Accepted:
        """Make a dead letter of an arrival that can't be taken in, in a transaction of its own, and tell its person."""
        address, kind = arrival.place.address, type(error).__name__
        why = _kept(f"{kind}: {error}" if isinstance(error, SegueError) else kind)
        log.error("a message from %s.%s can't be taken in: %s", address.platform, address.account, why, exc_info=error)
        try:
            new = await self._driver.write(arrivals.give_up, arrival, why, TOLD, f"notice/{trace}", self._clock())
        except (Invalid, UnicodeError):
            # Its own ids are what no database keeps: nobody can be told by them.
            return await self._bury(Letter(address.platform, address.account, ascii(arrival), why, kind))
        if not new:
            return Accepted.DUPLICATE
        self._metrics.buried(address.platform, address.account, kind)
        await self._driver.hint(DELIVERIES)
        return Accepted.DEAD

    async def _bury(self, letter: Letter) -> Accepted:
        log.error("something from %s.%s couldn't be understood: %s", letter.platform, letter.account, letter.why)
        account = account_key(letter.platform, letter.account)
        await self._driver.write(arrivals.bury, account, _kept(letter.raw), _kept(letter.why), self._clock())
        self._metrics.buried(letter.platform, letter.account, letter.kind)
        return Accepted.DEAD


def _kept(text: str) -> str:
    """A text as every database can keep it."""
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()
