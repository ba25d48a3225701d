"""Reading: an agent sees which sessions its person has, and what was said in them."""

from typing import Annotated, Any

from msgspec import Meta

from segue.changes.exchange import children
from segue.changes.exchange.children import Child
from segue.core.prompt.envelopes import veiled
from segue.core.transcripts import Entry, Session
from segue.core.values import Value
from segue.runtime.retrying import Patient
from segue.runtime.tools.arguments import SESSION, named
from segue.runtime.tools.children import Label
from segue.runtime.tools.table import Calling, Offer
from segue.runtime.turns.prompt import Prompt

_CHILDREN, _OTHERS = 50, 20
_ENTRIES, _CHARACTERS = 50, 30_000


class SessionsListArguments(Value, frozen=True):
    """Arguments of sessions_list: none."""


class HistoryArguments(Value, frozen=True):
    """Arguments of sessions_history."""

    label: Label = ""
    session: Annotated[str, Meta(description=SESSION)] = ""


class Reading:
    """Shows the sessions of a turn's person."""

    def __init__(self, store: Patient, prompt: Prompt) -> None:
        self._store = store
        self._prompt = prompt

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The tools about it."""
        return (
            Offer(
                "sessions_list",
                "List the child sessions that you started, closed ones too, and the person's other sessions.",
                SessionsListArguments,
                self.list,
            ),
            Offer(
                "sessions_history",
                "Show the newest of what was said in a child session, or in another session of the same person.",
                HistoryArguments,
                self.history,
            ),
        )

    async def list(self, calling: Calling, _asked: SessionsListArguments) -> dict[str, Any]:
        """The sessions there are."""
        asker = calling.asker
        found = await self._store.read(children.children, asker, _CHILDREN)
        owned = await self._store.read(children.others, asker, _OTHERS)
        if asker.held is None:
            return {"sessions": [_other(session) for session in owned]}
        shown = {asker.session, *(child.id for child in found)}
        return {
            "this": asker.session,
            "children": [_child(child) for child in found],
            "others": [_other(session) for session in owned if session.id not in shown],
        }

    async def history(self, calling: Calling, asked: HistoryArguments) -> dict[str, Any]:
        """The transcript of a session."""
        named(asked.label, asked.session)
        session = await self._store.read(children.find, calling.asker, asked.label, asked.session)
        path = await self._store.read(children.history, calling.asker, session)
        veil = await self._prompt.veil()
        shown: list[dict[str, Any]] = []
        left = _CHARACTERS
        for entry in reversed(path[-_ENTRIES:]):
            left -= len(entry.text)
            if shown and left < 0:
                break
            if entry.text:
                shown.append(_entry(veiled(entry, veil)))
        return {"session": session, "label": asked.label, "entries": shown[::-1], "earlier": len(path) - len(shown)}


def _child(child: Child) -> dict[str, Any]:
    state = "closed" if child.closed else "working" if child.busy else "idle"
    told = {"session": child.id, "label": child.label, "mode": child.ending.value, "state": state}
    return told | ({"title": child.title} if child.title else {})


def _other(session: Session) -> dict[str, Any]:
    state = "closed" if session.closed is not None else "open"
    return {"session": session.id, "title": session.title, "state": state}


def _entry(entry: Entry) -> dict[str, Any]:
    named = {"name": entry.author.name} if entry.author.name else {}
    return {"by": entry.author.role.value, **named, "text": entry.text[:_CHARACTERS]}
