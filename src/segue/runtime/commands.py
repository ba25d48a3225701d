"""Commands: what people type, run inside the transaction that takes it in, so that it happens and is answered once."""

from __future__ import annotations

from collections.abc import Callable

from segue.core import commands
from segue.core.access import Action, Standing, authorize
from segue.core.commands import Command
from segue.core.contracts import Ids, Transaction
from segue.core.lanes import Lane
from segue.core.messages import Arrival
from segue.core.moves import Actor, Renew
from segue.core.transcripts import Session
from segue.core.values import Moment, SessionId, Value
from segue.errors import Invalid, Refusal, Refused
from segue.runtime.settings import GatewaySettings
from segue.store import moves, sessions, titles, turns
from segue.store.persons import Met


class Request(Value, frozen=True):
    """A command as it came."""

    command: Command
    arrival: Arrival
    met: Met
    lane: Lane
    standing: Standing
    trace: str
    at: Moment


class Answer(Value, frozen=True):
    """What a command says, and the session whose running turn must look up."""

    text: str
    look: str = ""


class Commands:
    """Runs commands by their table."""

    def __init__(self, settings: GatewaySettings, ids: Ids) -> None:
        self._limits = settings.routing.limits
        self._ids = ids
        self._table: dict[str, Callable[[Request], Transaction[Answer]]] = {
            "help": self._help,
            "new": self._new,
            "status": self._status,
            "stop": self._stop,
            "title": self._title,
            "who": self._who,
        }

    def run(self, request: Request) -> Transaction[Answer]:
        """Run a command; a refusal is an answer."""
        run = self._table.get(request.command.name)
        if run is None:
            return Answer(f"/{request.command.name} isn't there yet. /help lists what is.")
        try:
            authorize((yield from self._standing(request)), Action(request.command.name))
            return (yield from run(request))
        except (Refused, Invalid) as error:
            return Answer(str(error))

    def _standing(self, request: Request) -> Transaction[Standing]:
        """What the person is to the session here: its owner, or as they came in."""
        if request.standing is not Standing.PARTICIPANT:
            return request.standing
        session = yield from sessions.bound(request.lane)
        owns = session is None or session.owner == request.met.person.id
        return Standing.OWNER if owns else Standing.PARTICIPANT

    def _help(self, _request: Request) -> Transaction[Answer]:
        yield from ()
        known = [spec for spec in commands.SPECS if spec.name in self._table]
        return Answer("\n".join(f"/{spec.name} {spec.usage}".rstrip() + f": {spec.does}" for spec in known))

    def _new(self, request: Request) -> Transaction[Answer]:
        move = Renew(request.lane, SessionId(self._ids()))
        actor = Actor(request.met.person.id)
        yield from moves.make(move, actor, self._limits, self._ids(), request.at)
        return Answer("A new session. The old one is kept: /resume lists it.")

    def _stop(self, request: Request) -> Transaction[Answer]:
        session = yield from self._bound(request)
        if not (yield from turns.stop(session.id, request.met.person.id)):
            return Answer("Nothing of yours is running.")
        return Answer("", look=session.id)

    def _title(self, request: Request) -> Transaction[Answer]:
        session = yield from self._bound(request)
        if not request.command.rest:
            return Answer(session.title or "This session has no title. /title NAME gives it one.")
        title = yield from titles.entitle(session.id, request.command.rest, request.met.person.id, request.at)
        return Answer(f"This session is called {title}.")

    def _status(self, request: Request) -> Transaction[Answer]:
        session = yield from self._bound(request)
        waiting = yield from turns.waiting(session.id, 100)
        title = session.title or "an untitled session"
        return Answer(f"You are in {title}. {len(waiting)} waiting.")

    def _who(self, request: Request) -> Transaction[Answer]:
        name = request.met.person.name or "somebody without a name"
        standing = yield from self._standing(request)
        return Answer(f"You are {name}, {standing} here.")

    def _bound(self, request: Request) -> Transaction[Session]:
        session = yield from sessions.bound(request.lane)
        if session is None:
            raise Refused(Refusal.NOTHING_BOUND)
        return session
