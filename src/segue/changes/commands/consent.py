"""Commands that answer what was asked: /yes, /no, /answer and /questions; and the question who may read a session."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from segue.changes.commands.request import Answer, Request, called, counted, line_of, listing, short
from segue.changes.exchange import deliveries, questions
from segue.changes.exchange.questions import Permission, Posed
from segue.changes.places import addresses
from segue.changes.places.addresses import Homes
from segue.changes.rows import each
from segue.changes.sessions import moves, readings, sessions, titles
from segue.core.contracts.database import Ids, Transaction
from segue.core.lanes import Lane, also_read_in
from segue.core.messages import Part, plain_text
from segue.core.moves import Consent, Fork, Limits, Renew, Resume
from segue.core.people import Standing
from segue.core.questions import ALWAYS, FOR_THIS_SESSION, NO, YES, Question, QuestionState, listed
from segue.core.values import Moment, SessionId, is_id
from segue.database.statements import q
from segue.errors import Invalid, Refusal, Refused

_LISTED, _ALLOWED = "questions", "permissions"
"""The kinds of lists that /questions shows."""
READERS = "readers"
"""The kind of question whether more people may read a session."""
NOTHING_ASKED = "Nothing was asked of you here."
SEVERAL = "Several things are asked of you here. /questions lists them, /answer N TEXT answers one; so does a reply."
COMMANDS = ("/yes", "/no")
"""The commands that answer a question of Segue's own."""
NOT_YOURS = "That was asked of somebody else."
EXPIRED = "That was asked more than five minutes ago. Ask for it again."
_UNTOLD = 3
"""Answers that waited in a session for somebody to come back, and are told then."""
LEFT = "All stays as it is."

Going = Renew | Resume | Fork
"""A move of the lane in which it is asked for."""
Answered = Callable[[Request, Question], Transaction[Answer]]
"""Reaction to an answer other than no, which the question has."""

_going = msgspec.json.Decoder(Resume | Fork)


class Consents:
    """Makes moves of the lane that a command was typed in; one that lets more people read a session is asked about."""

    def __init__(self, limits: Limits, homes: Homes, ids: Ids) -> None:
        self._limits = limits
        self._homes = homes
        self._ids = ids
        self.kinds: dict[str, Answered] = {READERS: self._readers, questions.UNSURE: _send_again}
        """Reactions, by the kind of the question."""

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
        this, here = ("this chat", "here") if asked_in == request.lane else ("that chat", "there")
        where = request.arrival.place.name or this
        title = f"“{found}”" if request.alone and (found := (yield from titles.of(wanted))) else "that session"
        known = f"{counted(others, 'other person has', 'other people have')} spoken {here} so far"
        text = (
            f"Everyone in {where} could read {title} then: {counted(said, 'message', 'messages')}; "
            f"{known}. Type /yes within five minutes to allow it, /no to leave it."
        )
        id = self._ids()
        yield from questions.ask(asked_in, request.met.person.id, Posed.by_command(id, READERS, body, text), request.at)
        return Answer(text, choices=COMMANDS, question=id, to=request.alone)

    def back(self, request: Request, session: SessionId, lane: Lane) -> Transaction[Answer]:
        """The answer that a lane speaks to a session again; whoever is alone there is told who else reads it."""
        alone = request.here_alone and lane == request.lane
        shared = (yield from readings.shared(session)) if alone else []
        also = f" {also_read_in(shared)}" if shared else ""
        untold = yield from each(tuple[Part, ...], q.untold(session=session, count=_UNTOLD))
        since = "".join(f"\n\n{text}" for text in map(plain_text, reversed(untold)) if text)
        return Answer(f"Back in {yield from called(request, session)}.{also}{since}")

    def yes(self, request: Request) -> Transaction[Answer]:
        return (yield from self._decide(request, YES))

    def no(self, request: Request) -> Transaction[Answer]:
        return (yield from self._decide(request, NO))

    def answer(self, request: Request) -> Transaction[Answer]:
        """`/answer TEXT`, `/answer N TEXT` of a list, or `/answer ID TEXT` as windows and buttons say it."""
        word, _, rest = request.rest.partition(" ")
        question = (yield from questions.find(word)) if is_id(word) else None
        if question is None and rest and word.isdecimal():
            try:
                listed = yield from sessions.line(request.lane, request.met.person.id, _LISTED, line_of(word))
                question = yield from questions.find(listed)
            except Refused:
                """There is no such list: the number is a part of the answer."""
        if question is None:
            return (yield from self._decide(request, request.rest))
        return (yield from self.settle(request, question, rest))

    def questions(self, request: Request) -> Transaction[Answer]:
        """List what waits for an answer and what is allowed for always, or revoke one of those."""
        person = request.met.person.id
        if request.rest:
            return (yield from self._revoke(request))
        found = yield from questions.open_to(person, request.lane, request.at)
        # Among others only what was asked here is anybody's business.
        asked = [question for question, here in found if here or request.private]
        allowed = (yield from questions.permissions(person)) if request.private else []
        for lane in request.shown_in:
            yield from sessions.keep_list(lane, person, _LISTED, [question.id for question in asked], request.at)
            yield from sessions.keep_list(lane, person, _ALLOWED, [one.id for one in allowed], request.at)
        lines = [f"{n}. {short(question.words)}" for n, question in enumerate(asked, 1)]
        told = [listing(lines, "/answer N TEXT answers one." if asked else "Nothing waits for your answer.")]
        if allowed:
            lines = ["You allow:", *(f"{n}. {_permission(one)}" for n, one in enumerate(allowed, 1))]
            told.append(listing(lines, "/questions revoke N allows one of these no more."))
        return Answer("\n\n".join(told))

    def _revoke(self, request: Request) -> Transaction[Answer]:
        word, _, number = request.rest.partition(" ")
        if word.casefold() != "revoke" or not number.strip().isdecimal():
            raise Invalid(
                "questions", f"“{short(request.rest)}” isn't known", "Type /questions, or /questions revoke N."
            )
        person = request.met.person.id
        id = yield from sessions.line(request.lane, person, _ALLOWED, line_of(number.strip()))
        if not (yield from questions.revoke(person, id, request.at)):
            raise Refused(Refusal.NOT_LISTED)
        return Answer("That is allowed no more. I will ask again.")

    def _decide(self, request: Request, text: str) -> Transaction[Answer]:
        """Answer the question that a message replies to, or the only one here that is open, or that offers it."""
        person, about = request.met.person.id, _about(request)
        question = (yield from questions.of_message(request.lane.address, about)) if about else None
        if question is None:
            asked = yield from questions.open_in(request.lane, person, request.at)
            offering = [one for one in asked if one.choices and one.choose(text) is not None]
            asked = offering if len(offering) == 1 else asked
            if len(asked) > 1:
                return Answer(SEVERAL)
            question = asked[0] if asked else (yield from questions.last(request.lane, person))
        if question is None or (question.session is None and _over(question, request.at)):
            return Answer(NOTHING_ASKED)
        return (yield from self.settle(request, question, text))

    def settle(self, request: Request, question: Question, text: str) -> Transaction[Answer]:
        """Answer a question, and do what its answer leads to."""
        if not (yield from questions.may_answer(question, request.met.person.id)):
            return Answer(NOT_YOURS)
        if not question.open(request.at):
            return _alone(request, *_late(question, request.at))
        chosen = question.choose(text)
        if chosen is None:
            offered = f":\n{listed(question.choices)}" if question.choices else ""
            return _alone(request, "That is none of the choices" if offered else "There is no answer in it.", offered)
        person = request.met.person
        if not (yield from questions.answer(question, chosen, person.name, self._ids(), request.at)):
            return _alone(request, *_late((yield from questions.read(question.id)), request.at))
        if question.kind == questions.AGENT or chosen == NO:
            return Answer(LEFT if question.session is None else "")
        return (yield from self.kinds[question.kind](request, replace(question, answer=chosen)))

    def _readers(self, request: Request, question: Question) -> Transaction[Answer]:
        move = replace(_going.decode(question.body), consent=Consent.GIVEN)
        yield from self.move(request, move)
        return (yield from self.back(request, move.session, move.lane))


def _send_again(_request: Request, question: Question) -> Transaction[Answer]:
    """Send what nobody knows whether it was sent."""
    yield from deliveries.send_again(int(question.body))
    return Answer()


def _about(request: Request) -> str:
    """The message that somebody answers by a reply or a button."""
    pressed = request.arrival.pressed
    return pressed.message if pressed else request.arrival.quotes


def _over(question: Question, at: Moment) -> bool:
    return question.state is not QuestionState.OPEN and not question.expired(at)


def _late(question: Question, at: Moment) -> tuple[str, str]:
    """The words for an answer that comes too late, and those that are only for whoever was asked."""
    if question.session is None:
        return EXPIRED if question.expired(at) else NOTHING_ASKED, ""
    if question.expired(at):
        return "That came too late: nobody had answered in time.", ""
    return "That came too late.", f" {question.outcome}"


def _alone(request: Request, words: str, more: str) -> Answer:
    """An answer with words of a question, which may have been asked elsewhere: for whoever was asked alone."""
    if not more or request.here_alone:
        return Answer(words + more)
    return Answer(words + more, to=request.alone) if request.alone else Answer(words)


def _permission(one: Permission) -> str:
    agent = f" ({one.agent})" if one.agent else ""
    return f"{one.what}{agent}, {ALWAYS if one.session is None else FOR_THIS_SESSION}"
