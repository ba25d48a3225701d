"""Notes: an agent reads and writes the notebook that it keeps of its person."""

from typing import Annotated, Any

from msgspec import Meta

from segue.changes.people.notes import MOST, NewNote, Note, Notebooks
from segue.core.contracts.database import Clock, Ids
from segue.core.settings import GatewaySettings
from segue.core.values import Value
from segue.runtime.retrying import Patient
from segue.runtime.tools.table import Calling, Offer


class NotesReadArguments(Value, frozen=True):
    """Arguments of notes_read: none."""


class NotesWriteArguments(Value, frozen=True):
    """Arguments of notes_write."""

    text: Annotated[str, Meta(max_length=MOST, description="the note; empty to take out the one it is instead of.")]
    instead_of: Annotated[str, Meta(description="the id of the note whose place it takes; none for one more.")] = ""


class NoteTools:
    """Keeps the notebook of a turn's person."""

    def __init__(self, store: Patient, settings: GatewaySettings, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._notebooks = Notebooks(settings)
        self._clock = clock
        self._ids = ids

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The tools about it."""
        return (
            Offer("notes_read", "Read your notebook about this person, as it is now.", NotesReadArguments, self.read),
            Offer(
                "notes_write",
                "Write a note about this person, for later sessions with them; or put it in the place of an older one.",
                NotesWriteArguments,
                self.write,
            ),
        )

    async def read(self, calling: Calling, _asked: NotesReadArguments) -> dict[str, Any]:
        """The notebook."""
        found = await self._store.read(self._notebooks.read, calling.asker, calling.agent)
        used = sum(len(note.text.encode()) for note in found)
        return {"notes": [_told(note) for note in found], "bytes_left": MOST - used}

    async def write(self, calling: Calling, asked: NotesWriteArguments) -> dict[str, Any]:
        """Write a note."""
        new = NewNote(calling.agent, asked.text.strip(), asked.instead_of, calling.key, self._ids())
        return _told(await self._store.write(self._notebooks.write, calling.asker, new, self._clock()))


def _told(note: Note) -> dict[str, Any]:
    return {"id": note.id, "text": note.text}
