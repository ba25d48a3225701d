"""Commands about who somebody is and may talk: /link, with and without a code, /unlink and /revoke.

Law: two persons become one only by the yes of whoever typed the code, who was told by name whom they would be one with;
the other side is told. Nobody becomes the host without the host's own yes, in the place where the host asked for the
code. A code that others could read is used up. A start link, which people open without reading it, brings a
conversation and does nothing else.
"""

import os
from collections.abc import Callable, Sequence
from typing import TypeVar, assert_never

import msgspec
from msgspec.structs import replace

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.commands.consent import COMMANDS, Consents
from segue.changes.commands.request import Answer, Request, line_of, listing
from segue.changes.exchange import deliveries, handoffs, questions
from segue.changes.exchange.questions import Posed
from segue.changes.people import actors, codes, grants, persons
from segue.changes.people.access import Access
from segue.changes.people.codes import Code, CodeKind
from segue.changes.people.grants import Scope
from segue.changes.people.persons import Merge
from segue.changes.places import lanes, merges
from segue.changes.places.merges import ChatMerge
from segue.changes.sessions import moves, sessions
from segue.core.commands import Means
from segue.core.contracts.database import Ids, Transaction
from segue.core.lanes import Address, Identity, Kind, Lane, Place, account_key
from segue.core.people import RANDOMNESS, Standing, make_code
from segue.core.questions import Question
from segue.core.settings import NO_ACCOUNT, GatewaySettings
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.errors import Refusal, Refused

GIVEN = (
    "Send me /link {code} from your other account, in a private chat, within ten minutes. Whoever does becomes you: "
    "show it to nobody."
)
IN_PRIVATE = "Ask me in a private chat: whoever read the code here could become you."
SHOWN = "Everyone here could read that code, so it works no more. Get a new one and send it in a private chat."
ASKED = (
    "That code is of {other}. If you say yes, you are one person with them: each reads the sessions of both and speaks "
    "as both. Type /yes within five minutes if both accounts are yours, and /no if somebody sent you the code."
)
HOST_ASKED = (
    "{other} typed the code that you asked for and wants to be you, the host: to read all your sessions and do all "
    "that you may. Type /yes here within five minutes if that is your account, and /no if it isn't."
)
CONFIRM = "Now say /yes where you asked for the code: nobody becomes the host without that."
LINKED = "You are one person in both places now. /unlink takes it back."
TOLD = "{other} typed your code and is one person with you now. /unlink takes it back."
COMING = "Welcome. The conversation is on its way here."
ALREADY = "You are one person in both places already."
PAIRED = "{name} may talk to me in private now."
WELCOME = "You may talk to me now."
NOT_LINKED = "You are linked with nobody."
UNLINK_IN_PRIVATE = "Ask me in a private chat: the answer names your other accounts."
REVOKE_IN_PRIVATE = "Ask me in a private chat: the answer names other people's accounts."
UNLINKED = "You and {other} are two again: each has what was theirs."
CHAT_UNLINKED = "The chat {other} is one of its own again: each has what was said there before."
NOBODY_LET_IN = (
    "Nobody was let in by a code. Those whom the settings let in are in segue.toml; `segue people list` has all."
)
REVOKED = "{other} may talk to me no more, unless segue.toml lets them."
HOST = "host"
"""The kind of question whether somebody is the host."""
T = TypeVar("T")


class Joining(Value, frozen=True):
    """A code that somebody typed in a private chat, and who they are."""

    code: Code
    person: PersonId
    identity: Identity
    lane: Lane
    place_name: str
    standing: Standing


_joining = msgspec.json.Decoder(Joining)


class LinkCommand:
    """Gives codes, and does what they are good for."""

    def __init__(
        self,
        settings: GatewaySettings,
        consents: Consents,
        ids: Ids,
        randomness: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._settings = settings
        self._ids = ids
        self._randomness = randomness
        consents.kinds[questions.LINK] = self._agreed
        consents.kinds[HOST] = self._host_agreed

    def link(self, request: Request) -> Transaction[Answer]:
        if not request.rest:
            return Answer((yield from self._give(request)))
        found = yield from codes.find_code(request.rest, request.met.person.id, self._secret(), request.at)
        answer = (yield from self._use(found, request)) if isinstance(found, Code) else found
        if answer is Refusal.TOO_MANY_TRIES and request.standing is Standing.STRANGER:
            return Answer()
        return Answer(answer.value) if isinstance(answer, Refusal) else answer

    def _give(self, request: Request) -> Transaction[str]:
        arrival, lane = request.arrival, request.lane
        if arrival.place.kind is not Kind.DM:
            return IN_PRIVATE
        code = make_code(self._randomness(RANDOMNESS))
        yield from codes.give_link(request.met.person.id, lane, code, self._secret(), request.at)
        yield from persons.linked_in(arrival.speaker.identity, lane.address)
        return GIVEN.format(code=code)

    def _use(self, code: Code, request: Request) -> Transaction[Answer | Refusal]:
        person, at = request.met.person.id, request.at
        if not request.here_alone:
            yield from codes.use_code(code, at)
            return Answer(SHOWN)
        if not _fits(code, request):
            return (yield from codes.wrong_code(person, at))
        if code.kind is CodeKind.PAIRING:
            paired = yield from codes.pair(code, person, at)
            yield from deliveries.notify(Address.parse(code.body), WELCOME, f"paired/{code.digest}", (), at)
            return Answer(PAIRED.format(name=paired.name or "They"))
        if code.person == person:
            return (yield from self._same(code, request))
        yield from codes.use_code(code, at)
        body = msgspec.json.encode(_typed(code, request)).decode()
        # A stranger's chat is remembered only from here on.
        yield from moves.see(replace(request.arrival.place, address=request.lane.address), request.lane.person, at)
        text, id = ASKED.format(other=(yield from persons.described(code.person))), self._ids()
        yield from questions.ask(request.lane, person, Posed.by_command(id, questions.LINK, body, text), at)
        return Answer(text, choices=COMMANDS, question=id)

    def _same(self, code: Code, request: Request) -> Transaction[Answer]:
        """Somebody typed a code of their own: there is nobody to join, but perhaps a conversation to bring."""
        if code.kind is CodeKind.LINK:
            return Answer(ALREADY)
        yield from codes.use_code(code, request.at)
        return Answer((yield from self._bring(_typed(code, request), ALREADY, request.at)))

    def _agreed(self, request: Request, question: Question) -> Transaction[Answer]:
        """Whoever typed a code says yes."""
        joining = _joining.decode(question.body)
        other, at = (yield from actors.now(joining.code.person)), request.at
        if other == request.met.person.id:
            return Answer(ALREADY)
        origin = yield from lanes.now(joining.code.lane)
        named = yield from persons.described(request.met.person.id)
        if not (yield from self._is_host(other)):
            yield from deliveries.notify(
                origin.address, TOLD.format(other=named), f"linked/{joining.code.digest}", (), at
            )
            return Answer((yield from self._join(joining, at)))
        text, id = HOST_ASKED.format(other=named), self._ids()
        yield from questions.ask(origin, other, Posed.by_command(id, HOST, question.body, text), at)
        yield from deliveries.notify(origin.address, text, questions.key_of(id), (), at, COMMANDS)
        return Answer(CONFIRM)

    def _host_agreed(self, request: Request, question: Question) -> Transaction[Answer]:
        """The host says yes to being one with whoever typed the code."""
        joining, at = _joining.decode(question.body), request.at
        if (yield from actors.now(joining.person)) == request.met.person.id:
            return Answer(ALREADY)
        told = yield from self._join(joining, at)
        fact = Fact(Event.HOST, request.met.person.id, request.met.person.id, identity=joining.identity.key)
        yield from audit.note(fact, at)
        yield from deliveries.notify(joining.lane.address, told, f"linked/{joining.code.digest}", (), at)
        return Answer(LINKED)

    def _join(self, joining: Joining, at: Moment) -> Transaction[str]:
        """Make two persons one, with what the code brings; returns what to tell whoever typed it."""
        code, address = joining.code, joining.lane.address
        yield from persons.link(code.person, joining.person, "link", code.person, self._ids(), at)
        if joining.standing is Standing.STRANGER:
            if self._public(code.lane.address) and code.kind is CodeKind.LINK:
                # Everybody is let in there, which says nothing about them here.
                return LINKED
            # To who asked for the code: if the two are parted again, the other is a stranger again.
            account = account_key(address.platform, address.account)
            yield from grants.grant(account, code.person, Scope.DM, "link", code.person, at)
        yield from persons.linked_in(joining.identity, address)
        return LINKED if code.kind is CodeKind.LINK else (yield from self._bring(joining, LINKED, at))

    def _bring(self, joining: Joining, joined: str, at: Moment) -> Transaction[str]:
        """Hand the conversation off to the private chat in which its code was typed."""
        place = Place(joining.lane.address, Kind.DM, joining.place_name)
        person, session = (yield from actors.now(joining.code.person)), SessionId(joining.code.body)
        origin, patience = joining.code.lane, self._settings.handoff
        try:
            yield from handoffs.request(self._ids(), session, origin, place, person, patience, at)
        except Refused as refused:
            return f"{joined} {refused}"
        return COMING

    def _is_host(self, person: PersonId) -> Transaction[bool]:
        hosts = self._settings.hosts
        return bool(hosts) and (yield from persons.who(hosts[0])) == person

    def _public(self, address: Address) -> bool:
        return self._settings.accounts.get((address.platform, address.account), NO_ACCOUNT).public

    def _secret(self) -> str:
        """The secret of digests, in case that none is kept yet."""
        return self._randomness(32).hex()


def _fits(code: Code, request: Request) -> bool:
    """Whether a code is good for whoever typed it, in the way in which they did."""
    host, own = request.standing is Standing.HOST, code.person == request.met.person.id
    typed = request.command.means is Means.TYPED
    match code.kind:
        case CodeKind.PAIRING:
            return host and typed
        case CodeKind.LINK:
            # Whoever got the host to type a code would be the host.
            return (own or not host) and typed
        case CodeKind.HANDOFF:
            return own or not host
        case _:
            assert_never(code.kind)


def _typed(code: Code, request: Request) -> Joining:
    place, identity = request.arrival.place, request.arrival.speaker.identity
    return Joining(code, request.met.person.id, identity, request.lane, place.name, request.standing)


class PeopleCommands:
    """Takes back who is one person with whom, and who may talk."""

    def __init__(self, settings: GatewaySettings, ids: Ids) -> None:
        self._ids = ids
        self._still = Access(settings, ids).still

    def unlink(self, request: Request) -> Transaction[Answer]:
        if not request.here_alone:
            return Answer(UNLINK_IN_PRIVATE)
        person = request.met.person.id
        if not request.rest:
            linked: list[Merge | ChatMerge] = [*(yield from persons.merges_within(person))]
            linked += yield from merges.folded(request.lane.address)
            yield from sessions.keep_list(request.lane, person, "unlink", [merge.id for merge in linked], request.at)
            lines = yield from _numbered(linked, _came_by)
            return Answer(listing(lines, "/unlink N parts them again.") if lines else NOT_LINKED)
        merge = yield from sessions.line(request.lane, person, "unlink", _number(request))
        for chat in (yield from merges.folded(request.lane.address)):
            if chat.id == merge:
                yield from merges.part(merge, person, self._ids(), request.at)
                return Answer(CHAT_UNLINKED.format(other=chat.gone.chat))
        parted = yield from persons.part_by(merge, person, self._ids(), request.at)
        return Answer(UNLINKED.format(other=(yield from persons.described(parted.gone))))

    def revoke(self, request: Request) -> Transaction[Answer]:
        host = request.met.person.id
        if not request.private:
            return Answer(REVOKE_IN_PRIVATE)
        if not request.rest:
            held = yield from grants.everyones()
            people = list(dict.fromkeys(grant.person for grant in held))
            yield from sessions.keep_list(request.lane, host, "revoke", people, request.at)
            lines = yield from _numbered(people, grants.described)
            return Answer(listing(lines, "/revoke N takes it back.") if lines else NOBODY_LET_IN)
        person = yield from sessions.line(request.lane, host, "revoke", _number(request))
        yield from grants.revoke_all(PersonId(person), host, self._still, request.at)
        return Answer(REVOKED.format(other=(yield from persons.described(PersonId(person)))))


def _came_by(merge: Merge | ChatMerge) -> Transaction[str]:
    return (yield from persons.came_by(merge)) if isinstance(merge, Merge) else persons.chat_came_by(merge)


def _number(request: Request) -> int:
    return line_of(request.rest) if request.rest.isdecimal() else 0


def _numbered(things: Sequence[T], described: Callable[[T], Transaction[str]]) -> Transaction[list[str]]:
    lines = []
    for number, thing in enumerate(things, 1):
        lines.append(f"{number}. {yield from described(thing)}")
    return lines
