"""Edits and deletions by authors: text that waits is replaced or withdrawn; later one is an entry, one hides it."""

from enum import Enum

from segue.changes.exchange import turns
from segue.changes.places.lanes import after
from segue.changes.rows import each, first
from segue.changes.sessions import deletions, transcripts
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Person
from segue.core.messages import Arrival, Notice, encode_parts
from segue.core.transcripts import Author, Draft, Role, Source
from segue.core.turns import Ask, TurnKind
from segue.core.values import Moment, SessionId, Value
from segue.database.statements import q


class Became(Value, frozen=True):
    """The turn that a message became."""

    session: SessionId
    seq: int
    kind: TurnKind
    answered: int
    """The turn that answered it: its own, or one that it went along with."""


class Edited(Enum):
    """Outcomes of an edit."""

    WAITING = "the text that still waits was replaced"
    SAID = "the message was answered before, or is now, and the edit stands after it"
    UNKNOWN = "nobody knows the message"


class Deleted(Enum):
    """Outcomes of a deletion."""

    WAITING = "the text that still waited is withdrawn"
    SAID = "the message was answered before, or is now, and is hidden from then on"
    UNKNOWN = "nobody knows the message, or somebody else said it"


def edit(arrival: Arrival, address: Address, person: Person, id: str, at: Moment) -> Transaction[Edited]:
    """Change what a person said before."""
    edited = yield from turn_of(arrival.edits, address, person)
    if edited is None:
        return Edited.UNKNOWN
    session, seq = edited.session, edited.seq
    yield q.lock_session(session=session)
    if (yield q.replace_waiting(session=session, seq=seq, parts=encode_parts(arrival.parts))):
        return Edited.WAITING
    parts = (Notice("edits what they said before:"), *arrival.parts)
    identity = arrival.speaker.identity.key
    if (yield q.any_runs(session=session)):
        # It takes its place in the queue: what it changes may not be in the transcript yet, and whoever was there and
        # waits for an answer isn't told what was said since.
        call = f"edit/{edited.answered}/{id}"
        ask = Ask(session, TurnKind.EDIT, call, parts, person.id, person.name, route=address.key, identity=identity)
        yield from turns.ask(ask, at)
    else:
        author = Author(Role.PERSON, person.id, person.name)
        draft = Draft(author, parts, Source(identity, address.key))
        yield from transcripts.append(session, [draft], at, edited.answered)
    return Edited.SAID


def of_words(arrival: Arrival, address: Address, person: Person) -> Transaction[bool]:
    """Whether an edit changes words that its person said to the agent, rather than a command or words for others."""
    edited = yield from turn_of(arrival.edits, address, person)
    return edited is not None and edited.kind is TurnKind.ARRIVAL


def delete(message: str, address: Address, person: Person, at: Moment) -> Transaction[Deleted]:
    """Take back what a person said: text that still waits is withdrawn, what was said is hidden."""
    said = yield from turn_of(message, address, person)
    if said is None or said.kind is not TurnKind.ARRIVAL:
        return Deleted.UNKNOWN
    session, seq = said.session, said.seq
    yield q.lock_session(session=session)
    if (yield q.withdraw_waiting(session=session, seq=seq, at=at)):
        return Deleted.WAITING
    if (yield q.turn_runs(session=session, seq=seq)):
        yield q.delete_running(session=session, seq=seq, at=at)
        return Deleted.SAID
    shown = yield from deletions.entries(session, seq, said.answered)
    yield from deletions.delete(session, shown, person.id, at)
    return Deleted.SAID if shown else Deleted.UNKNOWN


def turn_of(message: str, address: Address, person: Person) -> Transaction[Became | None]:
    """The turn that a person's own message became, in whichever thread, under whichever id its chat had then."""
    for within in (yield from _chats(address)):
        found = yield from first(Became, q.turn_of_message(message=message, person=person.id, **within))
        if found is not None:
            return found
    return None


def author(message: str, address: Address) -> Transaction[Person | None]:
    """The person who said something to the agent, by its message there."""
    for within in (yield from _chats(address)):
        if found := (yield from first(Person, q.author_of_message(message=message, **within))):
            return found
    return None


def _chats(address: Address) -> Transaction[list[dict[str, str]]]:
    """The keys of all that is in a chat, under each of its ids."""
    chat = address.outside.key
    aliases = yield from each(str, q.aliases_of(address=chat))
    return [{"chat": there, "after": after(there)} for there in (chat, *aliases)]
