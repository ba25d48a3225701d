"""The command that takes words on purpose: /forget."""

import msgspec

from segue.changes.commands.consent import COMMANDS, Consents
from segue.changes.commands.request import Answer, Request, bound, counted, line_of, name, quoted
from segue.changes.exchange import questions, quotes
from segue.changes.exchange.questions import Posed
from segue.changes.forgetting import erasure, extent
from segue.changes.forgetting.erasure import Cause, Reason
from segue.changes.forgetting.extent import Extent
from segue.changes.sessions import sessions
from segue.core.contracts.database import Ids, Transaction
from segue.core.lanes import Rules
from segue.core.questions import Question
from segue.core.transcripts import Tip
from segue.core.values import SessionId
from segue.errors import Refusal, Refused

FORGET = "forget"
"""The kind of question whether something is to be forgotten."""
SESSION = "session"
_USAGE = "Reply with /forget to a message, or type /forget N as /tree numbers it, or /forget session."

_asked = msgspec.json.Decoder(tuple[SessionId, int])


class ForgetCommand:
    """Asks once, says what goes, and takes it."""

    def __init__(self, consents: Consents, rules: Rules, ids: Ids) -> None:
        self._rules = rules
        self._ids = ids
        consents.kinds[FORGET] = self._agreed

    def forget(self, request: Request) -> Transaction[Answer]:
        target = yield from self._target(request)
        if target is None:
            return Answer(_USAGE)
        going = yield from self._going(request, target)
        body = msgspec.json.encode((target.session, target.n)).decode()
        text = f"{yield from _told(target, going)} Nothing brings it back. Type /yes within five minutes to have it "
        asked = Posed.by_command(self._ids(), FORGET, body, f"{text}forgotten, /no to keep it.")
        yield from questions.ask(request.lane, request.met.person.id, asked, request.at)
        return Answer(asked.asking.words, choices=COMMANDS, question=asked.id)

    def _target(self, request: Request) -> Transaction[Tip | None]:
        """The entry whose exchange is meant; 0 of a session is the session."""
        rest = request.rest.casefold()
        if rest == SESSION:
            return Tip((yield from bound(request)).id, 0)
        if rest:
            return Tip((yield from bound(request)).id, line_of(rest)) if rest.isdecimal() else None
        to = yield from quoted(request, self._rules)
        if to is None:
            return None
        entry = yield from quotes.entry(to.address, to.message)
        if entry is None:
            raise Refused(Refusal.NO_SUCH_MESSAGE)
        return entry

    def _going(self, request: Request, target: Tip) -> Transaction[Extent]:
        """All that goes, if whoever asks wrote it or owns its session."""
        me = request.met.person.id
        session = yield from sessions.known(target.session)
        if not target.n:
            if session.owner != me:
                raise Refused(Refusal.NOT_ALLOWED)
            return (yield from extent.of_session(target.session))
        found = yield from extent.of_exchange(target.session, target.n)
        if session.owner != me and me not in {entry.person for entry in found.entries.values()}:
            raise Refused(Refusal.NO_SUCH_MESSAGE)
        return found

    def _agreed(self, request: Request, question: Question) -> Transaction[Answer]:
        session, n = _asked.decode(question.body)
        target = Tip(session, n)
        yield from self._going(request, target)
        address = request.arrival.place.address.key
        reason = Reason(request.met.person.id, Cause.ASKED, request.at, address, (request.arrival.message,))
        if n:
            yield from erasure.exchange(target, reason)
        else:
            yield from erasure.session(session, reason)
        # The receipt follows once nothing is left.
        return Answer()


def _told(target: Tip, going: Extent) -> Transaction[str]:
    """The extent in words."""
    things = [counted(going.said, "message", "messages")]
    things += [counted(going.calls, "tool call", "tool calls")] if going.calls else []
    things += [counted(going.summaries, "summary", "summaries")] if going.summaries else []
    things += [counted(len(going.notes), "note", "notes")] if going.notes else []
    things += [counted(len(going.files), "file", "files")] if going.files else []
    if target.n:
        return f"This deletes the exchange: {', '.join(things)}."
    session = yield from sessions.known(target.session)
    children = len(going.sessions) - 1
    things += [counted(children, "child session", "child sessions")] if children else []
    return f"This deletes {name(session)} whole: {', '.join(things)}."
