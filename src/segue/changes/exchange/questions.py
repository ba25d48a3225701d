"""Questions: asked of a person in a lane, by Segue itself or by the agent of a turn, and answered once.

Law: the first answer wins, wherever it is given; whoever waits is woken by the commit that has it. Each copy of a
question then says what became of it.
"""

from collections.abc import Sequence
from typing import Self

import msgspec
from msgspec.structs import replace

from segue.changes.exchange import deliveries, turns
from segue.changes.exchange.turns import Sequel
from segue.changes.people import actors, persons
from segue.changes.places import lanes
from segue.changes.places.ways import Way
from segue.changes.rows import each, first, one
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.lanes import Address, Lane, account_key
from segue.core.messages import Outgoing
from segue.core.questions import (
    ALWAYS,
    FOR_THIS_SESSION,
    NO,
    YES,
    YES_OR_NO,
    Question,
    QuestionState,
    shown_by,
)
from segue.core.turns import Claim, Finish, Finished, Run
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.errors import Invalid

LINK = "link"
"""The kind of question whether two persons are one: the only one that a stranger is asked."""
AGENT = "agent"
"""The kind of question that an agent asks in its turn."""
UNSURE = "unsure"
"""The kind of question whether a message is sent again of which nobody knows whether it was sent."""
LIFETIME = 300.0
"""Seconds for which a question of Segue's own stays open."""
_MOST = 100


class Asking(Value, frozen=True):
    """Something that the agent of a turn wants to know."""

    key: str
    """The same in every attempt at the turn."""
    words: str
    choices: tuple[str, ...] = ()
    allows: str = ""
    """The deed that is asked about, if a yes may hold for longer than this once."""
    deadline: float = 86_400.0
    """Seconds for which it is asked."""
    approvers: tuple[str, ...] = ()
    """The keys of the identities that may answer instead of the person."""


class Posed(Value, frozen=True):
    """A question as it is put to somebody: its kind says who hears the answer, its body what they need to know then."""

    id: str
    asking: Asking
    kind: str = AGENT
    body: str = ""
    session: SessionId | None = None
    turn: int = 0
    agent: str = ""

    @classmethod
    def by_command(cls, id: str, kind: str, body: str, words: str, choices: tuple[str, ...] = YES_OR_NO) -> Self:
        """The question of a command, which is open for a few minutes."""
        return cls(id, Asking("", words, choices, deadline=LIFETIME), kind, body)


class Copy(Value, frozen=True):
    """A message that shows a question."""

    id: int
    address: Address


class Permission(Value, frozen=True):
    """Something that a person allowed an agent for longer than once."""

    id: str
    agent: str
    what: str
    session: SessionId | None
    since: Moment


def ask(lane: Lane, person: PersonId, asked: Posed, at: Moment) -> Transaction[None]:
    """Ask a person in a lane, for a command of theirs; what was asked so there before is asked no more."""
    person = yield from actors.hold(person)
    key = (yield from lanes.now(lane)).key
    yield q.end_questions(lane=key, person=person, at=at)
    yield from _add(asked, key, person, at)


def ask_in_turn(run: Run, asked: Posed, ways: Sequence[Way], most: int, at: Moment) -> Transaction[Question]:
    """Ask what a running turn wants to know, by each way; asked again, it is the same question."""
    yield from turns.check(run.held)
    call = {"session": asked.session, "turn": asked.turn, "call": asked.asking.key}
    known = yield from first(Question, q.question_of_call(**call))
    if known is not None:
        return known
    if not ways:
        raise Invalid("question", "there is no place where its person could be asked", "Say it in the answer.")
    return (yield from ask_for_program(PersonId(run.turns[0].person), asked, ways, most, at))


def ask_for_program(
    person: PersonId, asked: Posed, ways: Sequence[Way], most: int, at: Moment
) -> Transaction[Question]:
    """Ask a person what a program of theirs wants to know, where one of their sessions is; in no turn."""
    person = yield from actors.hold(person)
    if (yield from one(int, q.count_questions(person=person))) >= most:
        raise Invalid("question", f"its person is asked {most} things already", "Wait for an answer first.")
    return (yield from _put(asked, ways, person, at))


def ask_about_send(
    held: Outgoing, person: PersonId, asked: Posed, way: Way, most: int, at: Moment
) -> Transaction[None]:
    """Ask a person whether a message is sent again of which nobody knows whether it was; it is a dead letter till then.

    Whoever is asked too much already finds it among those.
    """
    person = yield from actors.hold(person)
    if (yield from one(int, q.count_questions(person=person))) < most:
        turn = yield from one(int, q.turn_of_delivery(id=held.id))
        yield from _put(replace(asked, turn=turn), (way,), person, at)


def _put(asked: Posed, ways: Sequence[Way], person: PersonId, at: Moment) -> Transaction[Question]:
    """Ask about a turn, by each way."""
    yield from _add(asked, (yield from lanes.now(ways[0].lane)).key, person, at)
    question = yield from read(asked.id)
    yield from deliveries.hold_order({way.address for way in ways})
    for n, way in enumerate(ways):
        for part, words in enumerate(question.before):
            key = f"{asked.session}/{asked.turn}/asks/{question.id}/{n}/{part}"
            yield from deliveries.notify(way.address, words, key, (), at, only=way.only)
        yield from deliveries.ask(way.address, question, f"{_prefix(question)}{n}", way.only, at)
    yield Wake(Topic.ASKED, person)
    return question


def _add(asked: Posed, lane: str, person: PersonId, at: Moment) -> Transaction[None]:
    asking = asked.asking
    yield q.add_question(
        question=asked.id,
        lane=lane,
        person=person,
        kind=asked.kind,
        body=asked.body,
        at=at,
        deadline=at + asking.deadline,
        session=asked.session,
        turn=asked.turn,
        call=asking.key or None,
        approvers=msgspec.json.encode(asking.approvers).decode(),
        words=asking.words,
        choices=msgspec.json.encode(asking.choices).decode(),
        allows=asking.allows,
        agent=asked.agent,
    )


def read(id: str) -> Transaction[Question]:
    """A question as it stands."""
    return (yield from one(Question, q.question(question=id)))


def find(id: str) -> Transaction[Question | None]:
    """The question with an id, if there is one."""
    return (yield from first(Question, q.question(question=id)))


def last(lane: Lane, person: PersonId) -> Transaction[Question | None]:
    """The last question to a person in a lane."""
    person = yield from actors.now(person)
    return (yield from first(Question, q.last_question(lane=(yield from lanes.now(lane)).key, person=person)))


def open_in(lane: Lane, person: PersonId, at: Moment) -> Transaction[list[Question]]:
    """Questions that a person may answer now in a lane, the oldest first."""
    asked = yield from each(Question, q.open_in_lane(lane=(yield from lanes.now(lane)).key, count=_MOST))
    return (yield from _answerable(asked, person, at))


def open_to(person: PersonId, lane: Lane, at: Moment) -> Transaction[list[tuple[Question, bool]]]:
    """Questions that a person may answer now, the oldest first, each with whether it is asked in a lane."""
    person, here = (yield from actors.now(person)), (yield from lanes.now(lane)).key
    asked = yield from each(Question, q.open_to_person(person=person, at=at, count=_MOST))
    asked += yield from each(Question, q.open_to_approvers(at=at, count=_MOST))
    found = {question.id: question for question in (yield from _answerable(asked, person, at))}
    return [(question, question.lane == here) for _, question in sorted(found.items())]


def of_message(address: Address, message: str) -> Transaction[Question | None]:
    """The question that a message shows."""
    for key in (yield from each(str, q.asked_by_message(message=message, address=address.key))):
        if id := shown_by(key):
            return (yield from find(id))
    return None


def under_way(address: Address, text: str) -> Transaction[Question | None]:
    """The question that is being sent to an address and offers a choice: an unknown message may be what shows it."""
    found: list[Question] = []
    for id in map(shown_by, (yield from each(str, q.asked_under_way(address=address.key)))):
        question = (yield from find(id)) if id else None
        found += [question] if question and question.choices and question.choose(text) is not None else []
    return found[0] if len(found) == 1 else None


def may_answer(question: Question, person: PersonId) -> Transaction[bool]:
    """Whether a person is asked: it is theirs, unless somebody else is to approve."""
    person = yield from actors.now(person)
    if not question.approvers:
        return question.person == person
    known = yield from persons.identities(person)
    return any(identity.key in question.approvers for identity in known)


def _answerable(asked: Sequence[Question], person: PersonId, at: Moment) -> Transaction[list[Question]]:
    found: list[Question] = []
    for question in asked:
        found += [question] if question.open(at) and (yield from may_answer(question, person)) else []
    return found


def answer(question: Question, answer: str, name: str, id: str, at: Moment) -> Transaction[bool]:
    """Answer a question; returns whether it was still to be answered. What is allowed for longer is kept under `id`."""
    settled = yield from _settle(question, QuestionState.ANSWERED, answer, name, at)
    if settled and question.allows and answer in (ALWAYS, FOR_THIS_SESSION):
        # It is the person of the turn whose agent may: an approver says it for them.
        session = question.session if answer == FOR_THIS_SESSION else None
        person = yield from actors.now(question.person)
        yield q.allow(id=id, person=person, agent=question.agent, what=question.allows, session=session, at=at)
    return settled


def _settle(question: Question, state: QuestionState, answer: str, by: str, at: Moment) -> Transaction[bool]:
    """Bring a question to its end, once; whoever waits for it is woken, and each copy says what became of it."""
    settled = yield from first(
        Question, q.settle_question(question=question.id, state=state, answer=answer, by=by, at=at)
    )
    if settled is None or settled.session is None:
        return settled is not None
    prefix = _prefix(settled)
    keys = {"first": prefix, "last": f"{prefix[:-1]}0"}
    # What nobody has seen nobody has to.
    yield q.withdraw_deliveries(at=at, **keys)
    for copy in (yield from each(Copy, q.copies_of_question(**keys))):
        key, text = f"{settled.session}/{settled.turn}/answered/{copy.id}", f"{settled.last}\n\n{settled.outcome}"
        yield q.amend_delivery(id=copy.id, key=key, text=text, at=at)
        yield Wake(Topic.DELIVERIES, account_key(copy.address.platform, copy.address.account))
    yield Wake(Topic.LOOK, settled.session)
    yield Wake(Topic.ASKED, settled.person)
    return True


def _prefix(question: Question) -> str:
    """The beginning of the keys of all messages that show a question."""
    return f"{question.session}/{question.turn}/{key_of(question.id)[:-1]}"


def shows(key: str) -> bool:
    """Whether the message with a key shows a question, which is a card in windows."""
    return shown_by(key) != ""


def key_of(id: str) -> str:
    """The key of the message that shows what a command asks."""
    return f"question/{id}/0"


def wait(held: Claim, id: str) -> Transaction[None]:
    """The turn that asks does nothing but wait: a process that ends now didn't end because of it."""
    yield from turns.check(held)
    yield q.wait_for_question(question=id, epoch=held.epoch)


def expire(at: Moment) -> Transaction[int]:
    """Close some questions whose time is over; returns how many."""
    over = yield from each(Question, q.questions_over(at=at, count=_MOST))
    for question in over:
        yield from _settle(question, QuestionState.EXPIRED, "", "", at)
    return len(over)


def finish(held: Claim, done: Finish, sequel: Sequel, at: Moment) -> Transaction[Finished]:
    """Finish a turn that has asked something: what nobody has answered is asked no more."""
    finished = yield from (sequel if done.kind is sequel.kind else turns).finish(held, done, at)
    for question in (yield from each(Question, q.questions_of_turn(session=held.session, turn=done.turns[0]))):
        yield from _settle(question, QuestionState.WITHDRAWN, "", "", at)
    return finished


def allowed(person: PersonId, agent: str, what: str, session: SessionId) -> Transaction[bool]:
    """Whether a person has allowed something to an agent already."""
    person = yield from actors.now(person)
    return bool((yield q.allowed(person=person, agent=agent, what=what, session=session)))


def permissions(person: PersonId) -> Transaction[list[Permission]]:
    """All that a person has allowed for longer than once."""
    return (yield from each(Permission, q.permissions(person=(yield from actors.now(person)), count=_MOST)))


def revoke(person: PersonId, id: str, at: Moment) -> Transaction[bool]:
    """Allow something no more; returns whether it was allowed."""
    return bool((yield q.end_permission(id=id, person=(yield from actors.now(person)), at=at)))


def decided(question: Question) -> str | None:
    """The answer as the agent is told it; None if there is none."""
    if question.state is not QuestionState.ANSWERED:
        return NO if NO in question.choices else None
    return YES if question.allows and question.answer in (ALWAYS, FOR_THIS_SESSION) else question.answer
