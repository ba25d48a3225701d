"""Questions: what a person was asked and hasn't answered; one at a time in a lane, each with its time."""

from enum import StrEnum

from segue.changes.people import actors
from segue.changes.places import lanes
from segue.changes.rows import first
from segue.core.contracts.database import Transaction
from segue.core.lanes import Lane
from segue.core.values import Moment, PersonId, Value
from segue.database.statements import q

LINK = "link"
"""The kind of question whether two persons are one: the only one that a stranger is asked."""
LIFETIME = 300.0
"""Seconds for which a question stays open."""


class QuestionReply(StrEnum):
    """What became of a question."""

    YES = "yes"
    NO = "no"
    EXPIRED = "expired"
    REPLACED = "replaced"
    """Something else was asked meanwhile."""


class Question(Value, frozen=True):
    """What a person was asked last in a lane."""

    id: str
    kind: str
    body: str
    deadline: Moment
    answer: QuestionReply | None = None

    def open(self, at: Moment) -> bool:
        """Whether an answer still counts."""
        return self.answer is None and at <= self.deadline

    def expired(self, at: Moment) -> bool:
        """Whether it went without an answer for too long."""
        return self.answer is QuestionReply.EXPIRED or (self.answer is None and at > self.deadline)


def ask(lane: Lane, person: PersonId, kind: str, body: str, id: str, at: Moment) -> Transaction[None]:
    """Ask a person something in a lane; what they were asked there before is asked no more."""
    person = yield from actors.hold(person)
    key = (yield from lanes.now(lane)).key
    yield q.end_questions(lane=key, person=person, answer=QuestionReply.REPLACED, at=at)
    yield q.add_question(question=id, lane=key, person=person, kind=kind, body=body, at=at, deadline=at + LIFETIME)


def last(lane: Lane, person: PersonId) -> Transaction[Question | None]:
    """What a person was asked last in a lane."""
    person = yield from actors.now(person)
    return (yield from first(Question, q.last_question(lane=(yield from lanes.now(lane)).key, person=person)))


def answer(question: Question, reply: QuestionReply, at: Moment) -> Transaction[bool]:
    """Answer a question; returns whether it was still to be answered."""
    return bool((yield q.answer_question(question=question.id, answer=reply, at=at)))


def expire(at: Moment) -> Transaction[None]:
    """Close questions whose time is over."""
    yield q.expire_questions(at=at)
