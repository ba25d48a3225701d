"""Commands: what people type, run inside the transaction that takes it in, so that it happens and is answered once."""

from __future__ import annotations

from collections.abc import Callable

from segue.core import commands
from segue.core.access import Standing
from segue.core.commands import Command
from segue.core.contracts import Ids, Transaction
from segue.core.lanes import Lane
from segue.core.messages import Arrival, Parts, Text
from segue.core.moves import Actor, Consent, Fork, Move, Renew, Resume
from segue.core.titles import parse
from segue.core.transcripts import Session
from segue.core.values import Moment, SessionId, Value
from segue.errors import Invalid, Refusal, Refused
from segue.runtime.linking import Linking
from segue.runtime.settings import GatewaySettings
from segue.store import moves, search, sessions, titles, transcripts, turns, usage
from segue.store.persons import Met

_LISTED = 10
_FOUND = 5
_SHORT = 60


class Request(Value, frozen=True):
    """A command as it came."""

    command: Command
    arrival: Arrival
    met: Met
    lane: Lane
    standing: Standing
    trace: str
    at: Moment

    @property
    def rest(self) -> str:
        """What was typed after the command."""
        return self.command.rest


class Answer(Value, frozen=True):
    """What a command says, the session whose running turn must look up, and what is to be asked now."""

    text: str = ""
    look: str = ""
    ask: Parts = ()


class Commands:
    """Runs commands by their table."""

    def __init__(self, settings: GatewaySettings, ids: Ids) -> None:
        self._limits = settings.routing.limits
        self._ids = ids
        self._linking = Linking(settings, ids)
        self._table: dict[str, Callable[[Request], Transaction[Answer]]] = {
            "branch": self._branch,
            "help": self._help,
            "link": self._link,
            "new": self._new,
            "resume": self._resume,
            "retry": self._retry,
            "search": self._search,
            "sessions": self._sessions,
            "status": self._status,
            "stop": self._stop,
            "title": self._title,
            "undo": self._undo,
            "usage": self._usage,
            "who": self._who,
        }

    @property
    def known(self) -> list[commands.Spec]:
        """What can be typed."""
        return [spec for spec in commands.SPECS if spec.name in self._table]

    def run(self, request: Request) -> Transaction[Answer]:
        """Run a command that its person may run; a refusal is an answer."""
        run = self._table.get(request.command.name)
        if run is None:
            return Answer(f"/{request.command.name} isn't there yet. /help lists what is.")
        try:
            return (yield from run(request))
        except (Refused, Invalid) as error:
            return Answer(str(error))

    def _help(self, request: Request) -> Transaction[Answer]:
        yield from ()
        asked = commands.BY_NAME.get(request.rest.lstrip("/").casefold())
        if asked is not None and asked in self.known:
            also = f" Also: {', '.join(f'/{alias}' for alias in asked.aliases)}." if asked.aliases else ""
            return Answer(_line(asked) + also)
        return Answer("\n".join(map(_line, self.known)))

    def _new(self, request: Request) -> Transaction[Answer]:
        yield from self._move(request, Renew(request.lane, SessionId(self._ids())))
        if request.rest:
            return Answer(ask=(Text(request.rest),))
        return Answer("A new session. The old one is kept: /resume lists it, /undo goes back.")

    def _resume(self, request: Request) -> Transaction[Answer]:
        person, lane, rest = request.met.person.id, request.lane, request.rest
        if not rest:
            listed = yield from sessions.owned(person, _LISTED, None, 0.0)
            return (yield from self._list(request, listed, "resume", "You have no sessions yet."))
        if rest.isdecimal():
            session = yield from sessions.line(lane, person, "resume", int(rest))
        elif found := (yield from titles.find(person, rest)):
            session = found
        else:
            near = yield from titles.nearest(person, rest)
            name, _ = parse(rest)
            return Answer(f"No session of yours is called “{name}”." + (f" Did you mean “{near}”?" if near else ""))
        yield from self._move(request, Resume(lane, session))
        return Answer(f"Back in {yield from self._called(session)}.")

    def _sessions(self, request: Request) -> Transaction[Answer]:
        person, lane = request.met.person.id, request.lane
        word, _, rest = request.rest.partition(" ")
        if word == "new":
            yield from self._move(request, Renew(lane, SessionId(self._ids())))
            return Answer(ask=(Text(rest.strip()),)) if rest.strip() else Answer("A new session.")
        if word == "close" and rest.strip().isdecimal():
            session = yield from sessions.line(lane, person, "sessions", int(rest))
            name = yield from self._called(session)
            yield from moves.close(session, Actor(person), self._ids(), request.at)
            return Answer(f"Closed {name}.")
        if word.isdecimal():
            session = yield from sessions.line(lane, person, "sessions", int(word))
            yield from self._move(request, Resume(lane, session))
            return Answer(f"Back in {yield from self._called(session)}.")
        if word:
            return Answer("Type /sessions, /sessions new [TEXT], /sessions N or /sessions close N.")
        listed = yield from sessions.here(lane, 50)
        return (yield from self._list(request, listed, "sessions", "Nothing was said here yet."))

    def _branch(self, request: Request) -> Transaction[Answer]:
        bound = yield from self._bound(request)
        title = request.rest or parse(bound.title)[0]
        new = SessionId(self._ids())
        fork = Fork(request.lane, bound.id, new, title=title, consent=Consent.GIVEN)
        yield from self._move(request, fork)
        called = yield from self._called(new)
        return Answer(f"You go on in {called}; the original stays as it is.")

    def _undo(self, request: Request) -> Transaction[Answer]:
        """Take back the newest of this lane's last move and its session's last exchange; a number counts exchanges."""
        person, at = request.met.person.id, request.at
        if request.rest:
            count = int(request.rest) if request.rest.isdecimal() else 0
            bound = yield from self._still(request)
            yield from transcripts.undo(bound.id, count, person, at)
            return Answer(f"Took back the last {count} exchanges." if count > 1 else "Took back the last exchange.")
        move = yield from moves.last_move(request.lane)
        session = yield from sessions.bound(request.lane)
        said = (yield from transcripts.entry(session.tip)) if session else None
        if move is not None and (said is None or move.at >= said.at):
            yield from moves.undo(move.id, Actor(person), self._limits, self._ids(), at)
            return Answer(f"Took back the last move: {move.kind}.")
        bound = yield from self._still(request)
        yield from transcripts.undo(bound.id, 1, person, at)
        return Answer("Took back the last exchange.")

    def _retry(self, request: Request) -> Transaction[Answer]:
        bound = yield from self._still(request)
        asked = yield from transcripts.retry(bound.id, request.met.person.id, request.at)
        return Answer(ask=tuple(part for entry in asked for part in entry.parts))

    def _search(self, request: Request) -> Transaction[Answer]:
        person = request.met.person.id
        if not request.rest:
            return Answer("Type the words to look for: /search WORDS.")
        found = yield from search.search(person, request.rest, _FOUND)
        lines = []
        for entry in found:
            called = yield from self._called(entry.tip.session)
            lines.append(f"{called}: {_short(entry.text)}")
        return Answer("\n".join(lines) or "Nothing found. What was said in the last seconds may be missing yet.")

    def _stop(self, request: Request) -> Transaction[Answer]:
        session = yield from self._bound(request)
        if not (yield from turns.stop(session.id, request.met.person.id)):
            return Answer("Nothing of yours is running.")
        return Answer(look=session.id)

    def _title(self, request: Request) -> Transaction[Answer]:
        session = yield from self._bound(request)
        if not request.rest:
            return Answer(session.title or "This session has no title. /title NAME gives it one.")
        title = yield from titles.entitle(session.id, request.rest, request.met.person.id, request.at)
        return Answer(f"This session is called {title}.")

    def _status(self, request: Request) -> Transaction[Answer]:
        session = yield from self._bound(request)
        waiting = yield from turns.waiting(session.id, 100)
        lanes = yield from sessions.lanes(session.id)
        places = f"It is open in {len(lanes)} places." if len(lanes) > 1 else "It is open here."
        return Answer(f"You are in {_name(session)}. {places} {len(waiting) or 'Nothing'} waiting.")

    def _usage(self, request: Request) -> Transaction[Answer]:
        session = yield from self._bound(request)
        spent = yield from usage.spent(session.id)
        lines = [f"{s.usage.model}: {s.usage.input:,} in, {s.usage.output:,} out, {s.turns} turns" for s in spent]
        return Answer("\n".join(lines) or "This session has cost nothing that the agent told of.")

    def _who(self, request: Request) -> Transaction[Answer]:
        yield from ()
        name = request.met.person.name or "somebody without a name"
        return Answer(f"You are {name}, {request.standing} here.")

    def _link(self, request: Request) -> Transaction[Answer]:
        text = yield from self._linking.link(request.arrival, request.met, request.standing, request.rest, request.at)
        return Answer(text)

    def _move(self, request: Request, move: Move) -> Transaction[None]:
        yield from moves.make(move, Actor(request.met.person.id), self._limits, self._ids(), request.at)

    def _list(self, request: Request, listed: list[Session], kind: str, nothing: str) -> Transaction[Answer]:
        """Show a numbered list and keep it, so that its numbers stay true."""
        if not listed:
            return Answer(nothing)
        ids = [session.id for session in listed]
        yield from sessions.keep_list(request.lane, request.met.person.id, kind, ids, request.at)
        bound = yield from sessions.bound(request.lane)
        lines = []
        for number, session in enumerate(listed, 1):
            here = " (here)" if bound and bound.id == session.id else ""
            last = yield from transcripts.entry(session.tip)
            lines.append(f"{number}. {_name(session)}{here}" + (f": {_short(last.text)}" if last else ""))
        return Answer("\n".join([*lines, f"/{kind} N opens one of them."]))

    def _bound(self, request: Request) -> Transaction[Session]:
        session = yield from sessions.bound(request.lane)
        if session is None:
            raise Refused(Refusal.NOTHING_BOUND)
        return session

    def _still(self, request: Request) -> Transaction[Session]:
        """The session here, if no turn of it runs or waits."""
        session = yield from self._bound(request)
        if (yield from turns.waiting(session.id, 1)):
            raise Refused(Refusal.BUSY)
        return session

    def _called(self, session: SessionId) -> Transaction[str]:
        title = yield from titles.of(session)
        return f"“{title}”" if title else "an untitled session"


def _line(spec: commands.Spec) -> str:
    return f"/{spec.name} {spec.usage}".rstrip() + f": {spec.does}"


def _name(session: Session) -> str:
    return f"“{session.title}”" if session.title else "an untitled session"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHORT else f"{flat[: _SHORT - 1]}…"
