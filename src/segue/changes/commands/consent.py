"""Commands that answer what Segue asked: /yes and /no; and the question who may read a session."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from segue.changes.commands.request import Answer, Request, called, counted
from segue.changes.exchange import questions
from segue.changes.exchange.questions import Question, QuestionReply
from segue.changes.places import addresses
from segue.changes.places.addresses import Homes
from segue.changes.rows import each
from segue.changes.sessions import moves, readings, sessions, titles
from segue.core.contracts.database import Ids, Transaction
from segue.core.lanes import Lane, also_read_in
from segue.core.messages import Part, plain_text
from segue.core.moves import Consent, Fork, Limits, Renew, Resume
from segue.core.people import Standing
from segue.core.values import SessionId
from segue.database.statements import q
from segue.errors import Refusal, Refused

READERS = "readers"
"""The kind of question whether more people may read a session."""
NOTHING_ASKED = "Nothing was asked of you here."
EXPIRED = "That was asked more than five minutes ago. Ask for it again."
_UNTOLD = 3
"""Answers that waited in a session for somebody to come back, and are told then."""
LEFT = "All stays as it is."

Going = Renew | Resume | Fork
"""A move of the lane in which it is asked for."""
Agreed = Callable[[Request, str], Transaction[Answer]]
"""Reaction to a yes; the text is the question's body."""

_going = msgspec.json.Decoder(Resume | Fork)


class Consents:
    """Makes moves of the lane that a command was typed in; one that lets more people read a session is asked about."""

    def __init__(self, limits: Limits, homes: Homes, ids: Ids) -> None:
        self._limits = limits
        self._homes = homes
        self._ids = ids
        self.kinds: dict[str, Agreed] = {READERS: self._readers}
        """Reactions to a yes, by the kind of the question."""

    def move(self, request: Request, move: Going) -> Transaction[Answer | None]:
        """Make a move; returns the question that must be answered first, if there is one."""
        if not isinstance(move, Renew) and (yield from self._at_home(request)):
            move = replace(move, consent=Consent.GIVEN)
        try:
            yield from self._make(request, move)
        except Refused as refused:
            if refused.why is Refusal.CLOSED and isinstance(move, Resume):
                return (yield from self._open_again(request, move))
            if refused.why is not Refusal.NEEDS_YES or isinstance(move, Renew):
                raise
            return (yield from self._ask(request, move))
        return None

    def _open_again(self, request: Request, move: Resume) -> Transaction[Answer | None]:
        """Open a closed session again, if its owner asks; whether more people may read it is asked before that."""
        yield from sessions.own(move.session, request.met.person.id)
        read = request.here_alone or (yield from readings.whole(move.lane.address, move.session))
        if not read and move.consent is not Consent.GIVEN:
            return (yield from self._ask(request, move))
        yield from moves.reopen(move.session, request.met.person.id, self._limits)
        yield from self._make(request, move)
        return None

    def _make(self, request: Request, move: Going) -> Transaction[None]:
        yield from moves.make(move, request.met.person.id, self._limits, self._ids(), request.at)

    def _at_home(self, request: Request) -> Transaction[bool]:
        """Whether the host, who asks, has said yes already to whoever reads here: for sessions of their own."""
        if request.standing is not Standing.HOST:
            return False
        address = request.lane.address
        home = yield from self._homes.of(address.platform, address.account)
        return home is not None and home.address in (address, request.arrival.place.parent or address.outside)

    def _ask(self, request: Request, move: Resume | Fork) -> Transaction[Answer]:
        """Ask the owner, and tell how many people would see how much that they haven't seen."""
        wanted = move.session if isinstance(move, Resume) else move.source
        said = (yield from readings.unread(request.lane.address, wanted)).said
        people = yield from addresses.people(request.lane.address)
        others = len(people.keys() - {request.met.person.id})
        body = msgspec.json.encode(move).decode()
        asked_in = request.alone.lane if request.alone else request.lane
        yield from questions.ask(asked_in, request.met.person.id, READERS, body, self._ids(), request.at)
        this, here = ("this chat", "here") if asked_in == request.lane else ("that chat", "there")
        where = request.arrival.place.name or this
        title = f"“{found}”" if request.alone and (found := (yield from titles.of(wanted))) else "that session"
        known = f"{counted(others, 'other person has', 'other people have')} spoken {here} so far"
        text = (
            f"Everyone in {where} could read {title} then: {counted(said, 'message', 'messages')}; "
            f"{known}. Type /yes within five minutes to allow it, /no to leave it."
        )
        return Answer(text, choices=("/yes", "/no"), to=request.alone)

    def back(self, request: Request, session: SessionId, lane: Lane) -> Transaction[Answer]:
        """The answer that a lane speaks to a session again; whoever is alone there is told who else reads it."""
        alone = request.here_alone and lane == request.lane
        shared = (yield from readings.shared(session)) if alone else []
        also = f" {also_read_in(shared)}" if shared else ""
        untold = yield from each(tuple[Part, ...], q.untold(session=session, count=_UNTOLD))
        since = "".join(f"\n\n{text}" for text in map(plain_text, reversed(untold)) if text)
        return Answer(f"Back in {yield from called(request, session)}.{also}{since}")

    def yes(self, request: Request) -> Transaction[Answer]:
        question = yield from self._open(request)
        if isinstance(question, Answer):
            return question
        yield from questions.answer(question, QuestionReply.YES, request.at)
        return (yield from self.kinds[question.kind](request, question.body))

    def no(self, request: Request) -> Transaction[Answer]:
        question = yield from self._open(request)
        if isinstance(question, Answer):
            return question
        yield from questions.answer(question, QuestionReply.NO, request.at)
        return Answer(LEFT)

    def _open(self, request: Request) -> Transaction[Question | Answer]:
        """The open question to this person in this lane, or why there is nothing to answer."""
        question = yield from questions.last(request.lane, request.met.person.id)
        if question is None or (question.answer is not None and not question.expired(request.at)):
            return Answer(NOTHING_ASKED)
        return question if question.open(request.at) else Answer(EXPIRED)

    def _readers(self, request: Request, body: str) -> Transaction[Answer]:
        move = replace(_going.decode(body), consent=Consent.GIVEN)
        yield from self.move(request, move)
        return (yield from self.back(request, move.session, move.lane))
