"""The commands about where a conversation goes: /handoff and /home."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from segue.changes.commands.consent import COMMANDS, Consents
from segue.changes.commands.request import Answer, Request, bound, counted, name
from segue.changes.exchange import children, handoffs, questions
from segue.changes.exchange.questions import Posed
from segue.changes.places import addresses
from segue.changes.places.addresses import reader
from segue.changes.places.destinations import Choice, Destinations
from segue.changes.sessions import moves, sessions, transcripts
from segue.core.contracts.database import Ids, Transaction
from segue.core.destinations import parse
from segue.core.handoffs import ALLOW_READERS, FORMER_ALLOW_READERS, Patience
from segue.core.lanes import Address, Audience, Kind, Lane, Place
from segue.core.moves import Consent, Limits, Resume
from segue.core.people import Standing
from segue.core.questions import Question
from segue.core.transcripts import Session
from segue.core.values import Moment, PersonId, SessionId, is_id
from segue.core.windows import ACCOUNT, PROGRAM
from segue.errors import Invalid, Refusal, Refused

READERS = "handoff"
"""The kind of question whether more people may read a session where it is handed off to."""
DESTINATION = "destination"
"""The kind of question where a session is handed off to."""
CANCEL = "cancel"

_asked = msgspec.json.Decoder(tuple[SessionId, Place])
_offered = msgspec.json.Decoder(tuple[SessionId, tuple[str, ...]])


class UnaskedReaders(Invalid):
    """A handoff would let people read a session whom its owner hasn't agreed to."""


class HandoffCommand:
    """Asks for handoffs, and takes that back."""

    def __init__(self, destinations: Destinations, consents: Consents, patience: Patience, ids: Ids) -> None:
        self._destinations = destinations
        self._consents = consents
        self._patience = patience
        self._ids = ids
        consents.kinds[READERS] = self._agreed
        consents.kinds[DESTINATION] = self._chosen

    def handoff(self, request: Request) -> Transaction[Answer]:
        if request.rest.casefold() == CANCEL:
            return (yield from self._cancel(request))
        typed = request.rest.removesuffix(ALLOW_READERS).removesuffix(FORMER_ALLOW_READERS).rstrip()
        consent = Consent.GIVEN if typed != request.rest else Consent.ASKED
        named, _, place = typed.partition(" ")
        if place and is_id(named):
            by, at = (request.met.person.id, request.standing, request.lane), request.at
            return Answer((yield from self.of_session(by, SessionId(named), place, consent, self._ids(), at)))
        session = yield from bound(request)
        if not typed:
            return (yield from self._offer(request, session))
        if typed.isdecimal():
            return (yield from self._numbered(request, typed))
        return (yield from self._named(request, session, typed, consent))

    def _named(self, request: Request, session: Session, typed: str, consent: Consent) -> Transaction[Answer]:
        """Hand off to a place, unless several go by that name or more people could read there."""
        by, origin = request.met.person.id, request.lane.address
        found = yield from self._destinations.find(parse(typed), by, request.standing, origin)
        if len(found) > 1:
            return (yield from self._which(request, session, "Which one do you mean?", found))
        if Consent.GIVEN not in (consent, found[0].consent):
            return (yield from self._ask(request, session, found[0]))
        return (yield from self._begin(request, session, found[0]))

    def of_session(
        self,
        by: tuple[PersonId, Standing, Lane],
        session: SessionId,
        typed: str,
        consent: Consent,
        id: str,
        at: Moment,
    ) -> Transaction[str]:
        """Hand off a session that is named, as a script does: from where it was spoken to last.

        One that is spoken to from nowhere leaves from the lane in which that is asked for. Returns what is to be told.
        """
        person, standing, lane = by
        own = yield from sessions.own(session, person)
        speaking = yield from sessions.lanes(own.id)
        origin = next((other for other in speaking if other != lane), lane)
        found = yield from self._destinations.find(parse(typed), person, standing, origin.address)
        if len(found) > 1:
            names = ", ".join(choice.name for choice in found)
            raise Invalid("destination", f"more than one place goes by {typed!r}", f"Name one of {names}.")
        choice = found[0]
        if Consent.GIVEN not in (consent, choice.consent):
            raise UnaskedReaders(
                "destination", f"in {choice.name} {choice.readers}", f"Say so with {ALLOW_READERS} if they may."
            )
        if origin not in speaking:
            yield from moves.make(Resume(origin, own.id), person, Limits(), self._ids(), at)
        return (yield from self._leave(person, own, origin, choice, id, at))

    def for_program(
        self, by: tuple[PersonId, Standing], session: SessionId, typed: str, consent: Consent, id: str, at: Moment
    ) -> Transaction[None]:
        """Hand off a session for a program that acts for its owner; asked again under the same id, it is the same."""
        yield from children.hold_call(id)
        if (yield from handoffs.find(id)) is None:
            # What is spoken to from nowhere leaves from a lane of the program's, in which nobody reads.
            lane = yield from moves.see(Place(Address(PROGRAM, ACCOUNT, chat=session), Kind.DM), PersonId(""), at)
            yield from self.of_session((*by, lane), session, typed, consent, id, at)

    def _begin(self, request: Request, session: Session, choice: Choice) -> Transaction[Answer]:
        by, origin, at = request.met.person.id, request.lane, request.at
        return Answer((yield from self._leave(by, session, origin, choice, self._ids(), at)))

    def _leave(
        self, by: PersonId, session: Session, origin: Lane, choice: Choice, id: str, at: Moment
    ) -> Transaction[str]:
        there = (yield from sessions.bound(choice.lane)) if choice.lane else None
        if there is not None and there.id == session.id:
            raise Refused(Refusal.SAME_LANE)
        yield from handoffs.request(id, session.id, origin, choice.place, by, self._patience, at)
        return f"Handing {name(session)} off to {choice.name}: {choice.readers}. /handoff cancel stops it."

    def _cancel(self, request: Request) -> Transaction[Answer]:
        session = yield from bound(request)
        running = yield from handoffs.running(session.id)
        if running is None:
            raise Refused(Refusal.NO_HANDOFF)
        yield from handoffs.cancel(running.id, request.met.person.id, request.at)
        text = f"The handoff to {running.place} was cancelled. The conversation is still here."
        return Answer(text)

    def _offer(self, request: Request, session: Session) -> Transaction[Answer]:
        """Ask which of the connected places it goes to."""
        origin = request.lane.address
        found = yield from self._destinations.offered(request.met.person.id, request.standing, origin)
        if not found:
            return Answer(self._destinations.nothing)
        return (yield from self._which(request, session, "Where does it go?", found))

    def _which(self, request: Request, session: Session, words: str, found: Sequence[Choice]) -> Transaction[Answer]:
        """Ask which of several places is meant; each is named with its readers."""
        body = msgspec.json.encode((session.id, [choice.name for choice in found])).decode()
        choices = tuple(f"{choice.name}: {choice.readers}" for choice in found)
        asked = Posed.by_command(self._ids(), DESTINATION, body, words, choices)
        yield from questions.ask(request.lane, request.met.person.id, asked, request.at)
        question = yield from questions.read(asked.id)
        return Answer(question.text, choices=question.buttons, question=asked.id)

    def _numbered(self, request: Request, number: str) -> Transaction[Answer]:
        """Answer by a number which place is meant."""
        at = request.at
        question = yield from questions.last(request.lane, request.met.person.id)
        if question is None or question.kind != DESTINATION or not (question.open(at) or question.expired(at)):
            raise Refused(Refusal.NOT_LISTED)
        return (yield from self._consents.settle(request, question, number))

    def _chosen(self, request: Request, question: Question) -> Transaction[Answer]:
        """The place is known by now; whether more people may read there is asked next."""
        session = yield from bound(request)
        asked, names = _offered.decode(question.body)
        if session.id != asked:
            raise Refused(Refusal.MOVED_SINCE)
        named = names[question.choices.index(question.answer)]
        return (yield from self._named(request, session, named, Consent.ASKED))

    def _ask(self, request: Request, session: Session, choice: Choice) -> Transaction[Answer]:
        """Ask the owner, and tell how many people would see how much."""
        said = yield from transcripts.count_said(session.id)
        people = yield from addresses.people(choice.place.address)
        others = len(people.keys() - {request.met.person.id})
        body = msgspec.json.encode((session.id, choice.place)).decode()
        known = f"{counted(others, 'other person has', 'other people have')} spoken there so far"
        text = (
            f"In {choice.name} {choice.readers}: {counted(said, 'message', 'messages')} of {name(session)}; {known}. "
            "Type /yes within five minutes to hand it off, /no to leave it."
        )
        asked = Posed.by_command(self._ids(), READERS, body, text)
        yield from questions.ask(request.lane, request.met.person.id, asked, request.at)
        return Answer(text, choices=COMMANDS, question=asked.id)

    def _agreed(self, request: Request, question: Question) -> Transaction[Answer]:
        session = yield from bound(request)
        asked, place = _asked.decode(question.body)
        if session.id != asked:
            # The yes was to what would be read, not only to who would read it.
            raise Refused(Refusal.MOVED_SINCE)
        other = yield from reader(place, request.met.person.id)
        choice = Choice(f"{place.address.platform}.{place.address.account}:{place.address.chat}", place, reader=other)
        return (yield from self._begin(request, session, choice))


class HomeCommand:
    """Names the place in which it is typed the home of its account."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def home(self, request: Request) -> Transaction[Answer]:
        at, person = request.arrival.place, request.met.person
        place = Place(request.lane.address, at.kind, at.name, at.topic)
        named = replace(place, address=replace(place.address, chat=at.address.chat))
        yield from addresses.set_home(named, person.id, self._ids(), request.at)
        platform = place.address.platform
        if place.audience is Audience.ONE:
            return Answer(f"This is the home on {platform} now. Only you can read what comes here.")
        others = len((yield from addresses.people(place.address)).keys() - {person.id})
        known = counted(others, "other person has", "other people have")
        return Answer(
            f"This is the home on {platform} now. Everyone in {place.name or 'this chat'} can read what comes here; "
            f"{known} spoken here so far."
        )
