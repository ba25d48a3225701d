"""Notes: the notebook that an agent keeps of a person, for that person's private sessions.

Law: a notebook is open only in a session that nobody but its person reads or ever spoke to, and never to a stranger:
else nothing of it is told, read or written. A note goes with every turn that it comes of.
"""

from segue.changes.exchange import children, readers
from segue.changes.exchange.children import Asker
from segue.changes.people import actors
from segue.changes.people.allowances import Allowing
from segue.changes.rows import each, first
from segue.core.contracts.database import Transaction
from segue.core.settings import GatewaySettings
from segue.core.turns import Turn
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.errors import Invalid

MOST = 8192
"""Bytes of a notebook."""


class Note(Value, frozen=True):
    """One note about a person."""

    id: str
    agent: str
    """The agent whose notebook it stands in."""
    text: str
    at: Moment


class NewNote(Value, frozen=True):
    """A note that an agent wants to write."""

    agent: str
    text: str
    instead_of: str
    """The id of the note that it takes the place of; empty if it is one more."""
    call: str
    """The same in every attempt at the turn."""
    id: str


def of(person: PersonId) -> Transaction[list[Note]]:
    """All notes about a person, the oldest first."""
    return (yield from each(Note, q.notes_of(person=(yield from actors.now(person)))))


def drop(id: str) -> Transaction[PersonId | None]:
    """Take a note out; returns whose it was."""
    yield q.drop_note_sources(note=id)
    return (yield from first(PersonId, q.drop_note(note=id)))


def untell(person: PersonId) -> Transaction[None]:
    """Let no session of a person go on with the notes that it was begun with."""
    yield q.drop_notes_told(person=(yield from actors.now(person)))


class Notebooks:
    """Opens notebooks, as the settings say who is a stranger."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._allowing = Allowing(settings)

    def told(self, session: SessionId, turn: Turn, agent: str | None) -> Transaction[tuple[str, ...] | None]:
        """The notes that an agent is told at the start of a session; None where there is no notebook."""
        person = PersonId(turn.person)
        if agent is None or not (yield from self.opens(session, turn.seq, person)):
            return None
        return tuple(note.text for note in (yield from of(person)) if note.agent == agent)

    def opens(self, session: SessionId, turn: int, person: PersonId) -> Transaction[bool]:
        """Whether a person's notebook is open in a turn: they alone read it, and are no stranger."""
        if not person or (yield q.ever_shared(session=session)):
            return False
        reader = yield from readers.of_turn(session, turn, person)
        return not reader.places and not (yield from self._allowing.strange(person))

    def opens_in(self, session: SessionId, owner: PersonId) -> Transaction[bool]:
        """Whether the notebook of a session's owner is open in it."""
        return (yield from self.opens(session, 0, owner))

    def read(self, asker: Asker, agent: str) -> Transaction[list[Note]]:
        """The notebook that an agent has of a turn's person."""
        if not (yield from self.opens(asker.session, asker.turn, asker.person)):
            fix = "Go on without it; in a private chat of a person who isn't a stranger there is one."
            raise Invalid("notes", "there is no notebook here", fix)
        return [note for note in (yield from of(asker.person)) if note.agent == agent]

    def write(self, asker: Asker, new: NewNote, at: Moment) -> Transaction[Note]:
        """Write a note, be it in the place of another; written again in another attempt, it is the same."""
        yield from children.hold(asker)
        known = yield from first(Note, q.note_of_call(call=new.call))
        if known is not None:
            return known
        if not new.text and not new.instead_of:
            raise Invalid("text", "it is blank", "Write the note.")
        person = yield from actors.hold(asker.person)
        notebook = {note.id: note for note in (yield from self.read(asker, new.agent))}
        if new.instead_of and notebook.pop(new.instead_of, None) is None:
            raise Invalid("instead_of", f'there is no note "{new.instead_of}"', "notes_read lists them with their ids.")
        left, size = MOST - sum(len(note.text.encode()) for note in notebook.values()), len(new.text.encode())
        if size > left:
            fix = "Write less, or put it in the place of a note that matters less: notes_read lists them."
            raise Invalid("text", f"it has {size:,} bytes, and the notebook has room for {max(left, 0):,}", fix)
        note = Note(new.id, new.agent, new.text, at)
        if new.text:
            yield q.add_note(id=new.id, person=person, agent=new.agent, call=new.call, text=new.text, at=at)
            if asker.held is not None:
                yield q.add_note_source(note=new.id, session=asker.session, turn=asker.turn)
        if new.instead_of:
            if new.text:
                yield q.inherit_note_sources(note=new.id, before=new.instead_of)
            yield from drop(new.instead_of)
        return note
