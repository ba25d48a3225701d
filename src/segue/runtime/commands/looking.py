"""Commands that only look: /status, /usage, /who, /search."""

from __future__ import annotations

from segue.core.contracts import Transaction
from segue.runtime.commands.asking import Answer, Request, Table, bound, called, name, short
from segue.store import search, sessions, turns, usage

_FOUND = 5


class Looking:
    """Tells what is there."""

    def __init__(self) -> None:
        self.table: Table = {
            "search": self._search,
            "status": self._status,
            "usage": self._usage,
            "who": self._who,
        }

    def _search(self, request: Request) -> Transaction[Answer]:
        person = request.met.person.id
        if not request.rest:
            return Answer("Type the words to look for: /search WORDS.")
        found = yield from search.search(person, request.rest, _FOUND)
        lines = []
        for entry in found:
            session = yield from called(entry.tip.session)
            lines.append(f"{session}: {short(entry.text)}")
        return Answer("\n".join(lines) or "Nothing found. What was said in the last seconds may be missing yet.")

    def _status(self, request: Request) -> Transaction[Answer]:
        session = yield from bound(request)
        waiting = yield from turns.waiting(session.id, 100)
        lanes = yield from sessions.lanes(session.id)
        places = f"It is open in {len(lanes)} places." if len(lanes) > 1 else "It is open here."
        return Answer(f"You are in {name(session)}. {places} {len(waiting) or 'Nothing'} waiting.")

    def _usage(self, request: Request) -> Transaction[Answer]:
        session = yield from bound(request)
        spent = yield from usage.spent(session.id)
        lines = [f"{s.usage.model}: {s.usage.input:,} in, {s.usage.output:,} out, {s.turns} turns" for s in spent]
        return Answer("\n".join(lines) or "This session has cost nothing that the agent told of.")

    def _who(self, request: Request) -> Transaction[Answer]:
        yield from ()
        who = request.met.person.name or "somebody without a name"
        return Answer(f"You are {who}, {request.standing} here.")
