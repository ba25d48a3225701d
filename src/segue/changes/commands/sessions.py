"""Commands that move the lane's binding: /new, /resume, /sessions, /branch, /title."""

from segue.changes.commands.consent import Consents
from segue.changes.commands.request import (
    MORE,
    UNTITLED,
    Answer,
    Request,
    bound,
    called,
    label_of,
    line_of,
    listing,
    own,
    reader_of,
    short,
)
from segue.changes.exchange import readers
from segue.changes.sessions import moves, readings, sessions, titles
from segue.core.contracts.database import Ids, Transaction
from segue.core.messages import Text
from segue.core.moves import Fork, Renew, Resume
from segue.core.titles import clean, parse
from segue.core.transcripts import Session
from segue.core.values import PersonId, SessionId
from segue.errors import Refused

_LISTED = 10
_LOOKED_AT = 50
_LISTED_HERE = 50

_NOTHING = frozenset({'""', "''", "“”"})
"""A name that is none: it takes the title away."""


class SessionCommands:
    """Moves the lane that a command was typed in."""

    def __init__(self, consents: Consents, ids: Ids) -> None:
        self._consents = consents
        self._ids = ids

    def new(self, request: Request) -> Transaction[Answer]:
        yield from self._consents.move(request, Renew(request.lane, SessionId(self._ids())))
        if request.rest:
            return Answer(ask=(Text(request.rest),))
        return Answer("A new session. The old one is kept: /resume lists it, /undo goes back.")

    def resume(self, request: Request) -> Transaction[Answer]:
        person, lane, rest = request.met.person.id, request.lane, request.rest
        if not rest:
            owned = yield from sessions.talks(person, _LISTED if request.private else _LOOKED_AT, None, 0.0)
            listed = sorted((yield from readers.seen(request.reader, owned)), key=_is_closed)
            nothing = f"You have no sessions here. {MORE}" if owned else "You have no sessions yet."
            more = len(listed) < len(owned)
            return (yield from self._list(request, listed[:_LISTED], "resume", nothing, more=more))
        if rest.isdecimal():
            session = yield from sessions.line(lane, person, "resume", line_of(rest))
        elif found := (yield from _named(person, rest)):
            session = found
        else:
            return (yield from _unknown(request, rest))
        return (yield from self._back(request, session))

    def sessions(self, request: Request) -> Transaction[Answer]:
        person, lane = request.met.person.id, request.lane
        word, rest = (*request.rest.split(maxsplit=1), "", "")[:2]
        if word.casefold() == "new":
            yield from self._consents.move(request, Renew(lane, SessionId(self._ids())))
            return Answer(ask=(Text(rest),)) if rest else Answer("A new session.")
        if word.casefold() == "close" and rest:
            by_line = rest.isdecimal()
            session = yield from (
                sessions.line(lane, person, "sessions", line_of(rest)) if by_line else _named(person, rest)
            )
            if session is None:
                return (yield from _unknown(request, rest))
            closed = yield from called(request, session)
            yield from moves.close(session, person, self._ids(), request.at, asked_in=lane)
            return Answer(f"Closed {closed}. /undo opens it again.")
        if word.isdecimal() and not rest:
            session = yield from sessions.line(lane, person, "sessions", line_of(word))
            return (yield from self._back(request, session))
        if word:
            return Answer("Type /sessions, /sessions new [TEXT], /sessions N or /sessions close N or NAME.")
        listed = yield from self._here(request)
        return (yield from self._list(request, listed, "sessions", "Nothing was said here yet."))

    def _back(self, request: Request, session: SessionId) -> Transaction[Answer]:
        """Go to a session that is there, perhaps after its owner's yes."""
        question = yield from self._consents.move(request, Resume(request.lane, session))
        return question or (yield from self._consents.back(request, session, request.lane))

    def _here(self, request: Request) -> Transaction[list[Session]]:
        """The sessions that this person may switch to here: those that everyone here has read whole, and their own."""
        listed: list[Session] = []
        for session in (yield from sessions.here(request.lane, _LISTED_HERE)):
            own = session.owner == request.met.person.id
            if own or (yield from readings.whole(request.lane.address, session.id)):
                listed += [session]
        return listed

    def branch(self, request: Request) -> Transaction[Answer]:
        source = yield from bound(request)
        title = request.rest or parse(source.title)[0]
        new = SessionId(self._ids())
        question = yield from self._consents.move(request, Fork(request.lane, source.id, new, title=title))
        return question or Answer(f"You go on in {yield from called(request, new)}; the original stays as it is.")

    def title(self, request: Request) -> Transaction[Answer]:
        session = yield from bound(request)
        if not request.rest:
            return Answer(session.title or "This session has no title. /title NAME gives it one.")
        session = yield from own(request)
        if request.rest in _NOTHING:
            yield from titles.untitle(session.id, request.met.person.id, request.at)
            return Answer("This session has no title now.")
        title = yield from titles.entitle(session.id, request.rest, request.met.person.id, request.at)
        return Answer(f"This session is called {title}.")

    def _list(
        self, request: Request, listed: list[Session], kind: str, nothing: str, *, more: bool = False
    ) -> Transaction[Answer]:
        """Show a numbered list and keep it, so that its numbers stay true."""
        ids = [session.id for session in listed]
        for lane in request.shown_in:
            yield from sessions.keep_list(lane, request.met.person.id, kind, ids, request.at)
        if not listed:
            return Answer(nothing)
        current = yield from sessions.bound(request.lane)
        lines: list[str] = []
        for number, session in enumerate(listed, 1):
            here = " (here)" if current and current.id == session.id else ""
            title = yield from readers.title((yield from reader_of(request, session.id)), session.id)
            label = yield from label_of(request, session.id)
            words = f"“{title}”{here}{': ' if label else ''}{label}" if title else f"{label or UNTITLED}{here}"
            more = more or not (label or request.private)
            if _is_closed(session) and (number == 1 or not _is_closed(listed[number - 2])):
                lines += [*([""] if lines else []), "Closed:", ""]
            lines.append(f"{number}. {words}")
        return Answer(listing(lines, f"/{kind} N opens one of them.", *([MORE] if more else [])))


def _is_closed(session: Session) -> bool:
    return session.closed is not None


def _unknown(request: Request, name: str) -> Transaction[Answer]:
    """The error for a session that isn't there, with the nearest title of those that may be shown here."""
    person = request.met.person.id
    near = yield from titles.nearest(person, name)
    session = (yield from titles.find(person, near)) if near else None
    # Named when others had left, it isn't theirs to know.
    shown = session is not None and (yield from readers.title(request.reader, session)) == near
    hint = f" Did you mean “{near}”?" if near and shown else ""
    return Answer(f"No session of yours is called “{short(clean(name))}”.{hint}")


def _named(person: PersonId, name: str) -> Transaction[SessionId | None]:
    """A person's own session by its id, as windows and scripts name it, or by its title."""
    try:
        return (yield from sessions.own(SessionId(name), person)).id
    except Refused:
        return (yield from titles.find(person, name))
