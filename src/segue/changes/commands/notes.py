"""The command about what agents noted of a person: /notes."""

from segue.changes.commands.request import MORE, Answer, Request, counted, line_of, listing
from segue.changes.forgetting import erasure
from segue.changes.forgetting.erasure import Cause, Reason
from segue.changes.people import notes
from segue.changes.people.notes import Note
from segue.core.contracts.database import Transaction
from segue.core.turns import DEFAULT_AGENT

_CLEAR = "clear"
_NONE = "No agent has noted anything about you."
_USAGE = "Type /notes to read them, /notes clear N to take one out, or /notes clear to take out all."


class NotesCommand:
    """Shows what agents noted about whoever asks, and takes it out."""

    def notes(self, request: Request) -> Transaction[Answer]:
        person = request.met.person.id
        if not request.private:
            return Answer(f"Notes about you aren't for everybody here. {MORE}")
        found = yield from notes.of(person)
        word, _, number = request.rest.casefold().partition(" ")
        if word not in ("", _CLEAR) or (number and not number.isdecimal()):
            return Answer(_USAGE)
        if not found:
            return Answer(_NONE)
        if not word:
            return Answer(_listed(found))
        gone = found if not number else found[line_of(number) - 1 : line_of(number)] if line_of(number) else []
        if not gone:
            return Answer(f"/notes shows no note {number}. {_USAGE}")
        yield from erasure.noted([note.id for note in gone], Reason(person, Cause.ASKED, request.at))
        return Answer(f"Taken out for good: {counted(len(gone), 'note', 'notes')}.")


def _listed(found: list[Note]) -> str:
    """Notes by their numbers, each with its agent where there are several."""
    several = len({note.agent for note in found}) > 1
    lines = [
        f"{n}. {note.text}" + (f" ({note.agent or DEFAULT_AGENT})" if several else "")
        for n, note in enumerate(found, 1)
    ]
    return listing(lines, "Your agent reads these when a private session of yours begins. " + _USAGE)
