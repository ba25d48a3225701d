"""Linking: what `/link` does, by itself and with a code."""

import os
from collections.abc import Callable
from enum import StrEnum
from typing import assert_never

from segue.changes.exchange import deliveries, handoffs
from segue.changes.people import actors, codes, grants, persons
from segue.changes.people.codes import Code, CodeKind
from segue.changes.people.grants import Scope
from segue.changes.people.persons import Met
from segue.core.contracts.database import Ids, Transaction
from segue.core.lanes import Address, Kind, Lane, Place, account_key
from segue.core.messages import Arrival
from segue.core.people import RANDOMNESS, Standing, make_code
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.values import Moment, SessionId, Value
from segue.errors import Refusal, Refused

GIVEN = "Send me /link {code} from your other account within ten minutes. Whoever does becomes you: show it to nobody."
IN_PRIVATE = "Ask me in a private chat: whoever read the code here could become you."
SHOWN = "Everyone here could read that code, so it works no more. Get a new one and send it in a private chat."
LINKED = "You are one person in both places now."
COMING = "Welcome. The conversation is on its way here."
ALREADY = "You are one person in both places already."
PAIRED = "{name} may talk to me in private now."
WELCOME = "You may talk to me now."


class Trust(StrEnum):
    """What somebody is in the place where they asked for a code, which goes with it to where it is typed."""

    KNOWN = "known"
    """The host let them in."""
    PUBLIC = "public"
    """Everybody is let in there, which says nothing about them anywhere else."""


class Linked(Value, frozen=True):
    """What became of `/link`, and the session that it began to hand off, if it did."""

    text: str
    session: str = ""


class Linking:
    """Gives codes, and does what they are good for."""

    def __init__(self, settings: GatewaySettings, ids: Ids, randomness: Callable[[int], bytes] = os.urandom) -> None:
        self._settings = settings
        self._ids = ids
        self._randomness = randomness

    def link(
        self, arrival: Arrival, met: Met, lane: Lane, standing: Standing, typed: str, at: Moment
    ) -> Transaction[Linked]:
        """What to answer to `/link`; nothing to a stranger who has guessed too often."""
        if not typed:
            return Linked((yield from self._give(arrival, met, lane, at)))
        found = yield from codes.find_code(typed, met.person.id, self._secret(), at)
        if isinstance(found, Code) and found.kind is CodeKind.HANDOFF:
            return (yield from self._bring(found, arrival, met, lane, standing, at))
        answer = (yield from self._use(found, arrival, met, lane, standing, at)) if isinstance(found, Code) else found
        if answer is Refusal.TOO_MANY_TRIES and standing is Standing.STRANGER:
            return Linked("")
        return Linked(answer.value if isinstance(answer, Refusal) else answer)

    def _give(self, arrival: Arrival, met: Met, lane: Lane, at: Moment) -> Transaction[str]:
        if arrival.place.kind is not Kind.DM:
            return IN_PRIVATE
        code = make_code(self._randomness(RANDOMNESS))
        trust = self._trust(arrival)
        yield from codes.give_link(met.person.id, _account(arrival), trust, code, self._secret(), at)
        yield from persons.linked_in(arrival.speaker.identity, lane.address)
        return GIVEN.format(code=code)

    def _use(
        self, code: Code, arrival: Arrival, met: Met, lane: Lane, standing: Standing, at: Moment
    ) -> Transaction[str | Refusal]:
        match code.kind:
            case CodeKind.PAIRING:
                if standing is not Standing.HOST:
                    return (yield from codes.wrong_code(met.person.id, at))
                paired = yield from codes.pair(code, met.person.id, at)
                yield from deliveries.notify(Address.parse(code.body), WELCOME, f"paired/{code.digest}", (), at)
                return PAIRED.format(name=paired.name or "They")
            case CodeKind.LINK | CodeKind.HANDOFF:
                return (yield from self._join(code, arrival, met, lane, standing, at))
            case _:
                assert_never(code.kind)

    def _join(
        self, code: Code, arrival: Arrival, met: Met, lane: Lane, standing: Standing, at: Moment
    ) -> Transaction[str | Refusal]:
        if code.person == met.person.id:
            return ALREADY
        if standing is Standing.HOST:
            # Else whoever got the host to type a code would be the host.
            return (yield from codes.wrong_code(met.person.id, at))
        yield from codes.use_code(code, at)
        yield from persons.link(code.person, met.person.id, "link", code.person, self._ids(), at)
        if standing is Standing.STRANGER:
            if code.body == Trust.PUBLIC:
                return LINKED
            # To who asked for the code: if the two are parted again, the other is a stranger again.
            yield from grants.grant(_account(arrival), code.person, Scope.DM, "link", code.person, at)
        if arrival.place.kind is Kind.DM:
            yield from persons.linked_in(arrival.speaker.identity, lane.address)
        return LINKED

    def _bring(
        self, code: Code, arrival: Arrival, met: Met, lane: Lane, standing: Standing, at: Moment
    ) -> Transaction[Linked]:
        """Let them in, make them one person, and hand the conversation off to this private chat."""
        if arrival.place.kind is not Kind.DM:
            yield from codes.use_code(code, at)
            return Linked(SHOWN)
        joined = yield from self._join(code, arrival, met, lane, standing, at)
        if isinstance(joined, Refusal):
            return Linked(joined.value)
        if joined == ALREADY:
            yield from codes.use_code(code, at)
        session, _, origin = code.body.partition(" ")
        place = Place(lane.address, Kind.DM, arrival.place.name)
        person = yield from actors.now(code.person)
        try:
            yield from handoffs.request(
                self._ids(), SessionId(session), Lane.parse(origin), place, person, self._settings.handoff, at
            )
        except Refused as refused:
            return Linked(f"{joined} {refused}")
        return Linked(COMING, session)

    def _trust(self, arrival: Arrival) -> Trust:
        address = arrival.place.address
        account = self._settings.accounts.get((address.platform, address.account), AccountSettings())
        return Trust.PUBLIC if account.public else Trust.KNOWN

    def _secret(self) -> str:
        """What digests are made with, in case that none is kept yet."""
        return self._randomness(32).hex()


def _account(arrival: Arrival) -> str:
    return account_key(arrival.place.address.platform, arrival.place.address.account)
