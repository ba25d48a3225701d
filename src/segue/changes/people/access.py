"""Access: what a person is to the lane that they speak in, decided before anything else is.

Law: nobody learns anything by being refused. In a group a stranger gets no answer; in private they may get a code that
only the host can use. A person is joined with the host only by a code that the host asked for.
"""

import os
from collections.abc import Callable, Sequence

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.exchange import questions
from segue.changes.people import actors, codes, grants, persons
from segue.changes.people.persons import Met
from segue.changes.places import merges
from segue.core.commands import Command, Unknown, may_ask
from segue.core.contracts.database import Ids, Transaction
from segue.core.lanes import Identity, Kind, Lane, Place, account_key
from segue.core.messages import Arrival
from segue.core.people import RANDOMNESS, UNBOUNDED, Allowance, Facts, Standing, authorize, make_code, standing_of
from segue.core.settings import NO_ACCOUNT, GatewaySettings
from segue.core.text.notices import pairing
from segue.core.values import Moment, PersonId, Value
from segue.core.windows import ACCOUNT, EDITOR
from segue.database.statements import q
from segue.errors import Refused


class Pass(Value, frozen=True):
    """They may do what they ask for."""

    standing: Standing
    """Who only speaks isn't looked at any closer than that they may: they are participants."""
    allowance: Allowance = Allowance()
    """Their allowance, by what their message shows: never more than they may have."""


class Refuse(Value, frozen=True):
    """They may not; perhaps they are told something."""

    notice: str | None = None


Verdict = Pass | Refuse


def anybody(_arrival: Arrival, _command: object, _met: Met, _lane: Lane, _at: Moment) -> Transaction[Verdict]:
    """Let everybody speak."""
    yield from ()
    return Pass(Standing.PARTICIPANT, UNBOUNDED.person)


class Access:
    """Tells the host and participants from strangers."""

    def __init__(self, settings: GatewaySettings, ids: Ids, randomness: Callable[[int], bytes] = os.urandom) -> None:
        self._settings = settings
        self._ids = ids
        self._randomness = randomness
        self._hosts = frozenset(settings.hosts)
        self._host = settings.hosts[0].key if settings.hosts else ""
        """All identities of the host are one person: any of them tells who that is."""

    def judge(
        self, arrival: Arrival, command: Command | Unknown | None, met: Met, lane: Lane, at: Moment
    ) -> Transaction[Verdict]:
        """Whether this arrival may come in, and as whose."""
        by = arrival.speaker.identity
        users = (by.user, *arrival.speaker.aliases)
        if any(Identity(by.platform, by.account, user) in self._hosts for user in users):
            if met.new:
                yield from grants.attach(self._settings.hosts, met.person.id, at)
            return Pass(Standing.HOST, self._settings.limits.host)
        if met.blocked:
            yield from _note(arrival, met, "blocked", at)
            return Refuse()
        place, address, limits = arrival.place, arrival.place.address, self._settings.limits
        its = self._settings.accounts.get((address.platform, address.account), NO_ACCOUNT)
        if place.kind is Kind.DM:
            listed = not its.allow.isdisjoint(users)
        else:
            chats = address.chat, lane.address.chat, place.around.chat, *arrival.chat_aliases
            listed = not its.allow_groups.isdisjoint(chats)
        known = its.public or listed
        stranger = its.public and not listed and not met.granted
        allowance = limits.stranger if stranger else limits.person
        if known and not isinstance(command, Command):
            return Pass(Standing.PARTICIPANT, allowance)
        account, scope = account_key(address.platform, address.account), grants.scope_of(place.kind)
        found = yield from grants.footing(met.person.id, self._host, account, scope, lane)
        standing = standing_of(Facts(met.person.id, found.host, known or found.granted, found.owner))
        if standing is Standing.STRANGER:
            return (yield from self._strange(arrival, met, lane, command, at))
        try:
            typed = command.name if stranger and isinstance(command, Command) else ""
            authorize(standing, may_ask(command), offered=not typed or self._settings.stranger_may(typed, address))
        except Refused as refused:
            asked = f"/{command.name}" if isinstance(command, Command) else ""
            yield from _note(arrival, met, asked, at)
            return Refuse(str(refused))
        return Pass(standing, allowance)

    def still(self, person: PersonId, place: Place | None) -> Transaction[bool]:
        """Whether somebody may talk in a place as things stand now, though they say nothing; None: in some way at all.

        That is how it is looked at where a program or an editor acts for them, or work of theirs is due nowhere.
        """
        person = yield from actors.now(person)
        ways = yield from persons.identities(person)
        if not self._hosts.isdisjoint(ways):
            return True
        if (yield q.block(person=person)):
            return False
        if place is None or (place.address.platform, place.address.account) == (EDITOR, ACCOUNT):
            return (yield from self._somewhere(person, ways))
        address = place.address
        account = self._settings.accounts.get((address.platform, address.account), NO_ACCOUNT)
        users = {way.user for way in ways if (way.platform, way.account) == (address.platform, address.account)}
        if account.public or (place.kind is Kind.DM and account.allow & users):
            return True
        if place.kind is not Kind.DM and account.allow_groups:
            # The platform may have told of the chat by other ids.
            told = [merge.gone.chat for merge in (yield from merges.within(place.around))]
            if account.allow_groups & {address.chat, place.around.chat, *told}:
                return True
        key, scope = account_key(address.platform, address.account), grants.scope_of(place.kind)
        return any((grant.account, grant.scope) == (key, scope) for grant in (yield from grants.of(person)))

    def _somewhere(self, person: PersonId, ways: Sequence[Identity]) -> Transaction[bool]:
        """Whether somebody may talk in some way: by a grant, by name, or where everybody may; groups alone are none."""
        for way in ways:
            account = self._settings.accounts.get((way.platform, way.account), NO_ACCOUNT)
            if way.platform != EDITOR and (account.public or way.user in account.allow):
                return True
        return bool((yield from grants.of(person)))

    def _strange(self, arrival: Arrival, met: Met, lane: Lane, command: object, at: Moment) -> Transaction[Verdict]:
        """The way in for a stranger: in private they may type a code, or are given one for the host to type."""
        typed = command.rest if isinstance(command, Command) and command.name == "link" else ""
        if arrival.place.kind is not Kind.DM or not arrival.parts:
            if typed:
                yield from codes.spoil(typed, self._randomness(32).hex(), at)
            yield from _note(arrival, met, "stranger", at)
            return Refuse()
        if typed or (isinstance(command, Command) and (yield from _was_asked(command, met, lane, at))):
            return Pass(Standing.STRANGER)
        yield from _note(arrival, met, "stranger", at)
        address = arrival.place.address
        account = account_key(address.platform, address.account)
        code, secret = make_code(self._randomness(RANDOMNESS)), self._randomness(32).hex()
        offered = self._host and (yield from codes.offer_pairing(met.person.id, account, address.key, code, secret, at))
        return Refuse(pairing(code) if offered else None)


def _was_asked(command: Command, met: Met, lane: Lane, at: Moment) -> Transaction[bool]:
    """Whether somebody answers what they were asked about a code that they typed."""
    if command.name not in ("yes", "no", "answer"):
        return False
    asked = yield from questions.last(lane, met.person.id)
    return asked is not None and asked.kind == questions.LINK and asked.open(at)


def _note(arrival: Arrival, met: Met, detail: str, at: Moment) -> Transaction[None]:
    """Write down that somebody was refused."""
    address, identity = arrival.place.address, arrival.speaker.identity
    account = account_key(address.platform, address.account)
    yield from audit.note(Fact(Event.REFUSED, met.person.id, "", account, identity.key, detail), at)
