"""Commands that only look: /status, /usage, /who, /search, /tree, /why, /export."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from segue.changes.commands.consent import Consents
from segue.changes.commands.request import (
    MORE,
    UNTITLED,
    Answer,
    Request,
    around,
    bound,
    called,
    counted,
    label_of,
    listing,
    name,
    own,
    quoted,
    reader_of,
    short,
)
from segue.changes.exchange import metering, readers, traces, turns
from segue.changes.exchange.explanations import Errors, explain, moment
from segue.changes.places import addresses
from segue.changes.sessions import budgets, search, sessions, titles, transcripts, trees, usage
from segue.changes.sessions.usage import Spent
from segue.core.contracts.adapters import Adapter, IsMetered
from segue.core.contracts.database import Transaction
from segue.core.exports.jsonl import Form, export_of
from segue.core.exports.tree import Branch, draw, letter
from segue.core.limits.budgets import BudgetScope, day_of, told
from segue.core.moves import Resume
from segue.core.people import Standing
from segue.core.settings import GatewaySettings
from segue.core.transcripts import Role, Session
from segue.core.values import SessionId
from segue.errors import Refusal, Refused

_FOUND = 5
_LOOKED_AT = 50
_LINES = 50
_NAMED = 10
_NEWEST = 40
_FORMS = {"": Form.MARKDOWN, "md": Form.MARKDOWN, "markdown": Form.MARKDOWN, "jsonl": Form.JSONL, "json": Form.JSONL}


class ViewCommands:
    """Tells what is there."""

    def __init__(
        self,
        problems: Callable[[], Sequence[str]],
        settings: GatewaySettings,
        consents: Consents,
        adapters: Mapping[tuple[str, str], Adapter],
    ) -> None:
        self._problems = problems
        self._adapters = adapters
        self._settings = settings
        self._rules = settings.routing.rules
        self._consents = consents

    def search(self, request: Request) -> Transaction[Answer]:
        person = request.met.person.id
        if not request.rest:
            return Answer("Type the words to look for: /search WORDS.")
        found = yield from search.search(person, request.rest, _LOOKED_AT)
        shown = yield from readers.seen(request.reader, found)
        hits = {entry.tip.session: around(entry.text, request.rest) for entry in reversed(shown)}
        for title in (yield from titles.having(person, request.rest)):
            session = yield from titles.find(person, title)
            if session and (yield from readers.title(request.reader, session)) == title:
                hits.setdefault(session, "")
        listed = [*reversed(hits)][:_FOUND]
        for lane in request.shown_in:
            yield from sessions.keep_list(lane, person, "resume", listed, request.at)
        lines: list[str] = []
        for number, session in enumerate(listed, 1):
            words = f": {hits[session]}" if hits[session] else ""
            lines.append(f"{number}. {yield from called(request, session)}{words}")
        nothing = "Nothing found. What was said in the last seconds may be missing yet."
        how = "/resume N opens one of them." if lines else nothing
        return Answer(listing(lines, how, *([MORE] if len(shown) < len(found) else [])))

    def status(self, request: Request) -> Transaction[Answer]:
        session = yield from bound(request)
        waiting = (yield from turns.backlog(session.id)).count
        lanes = yield from sessions.lanes(session.id)
        said = yield from transcripts.count_said(session.id)
        title = yield from readers.title((yield from reader_of(request, session.id)), session.id)
        named = f"“{title}”" if title else UNTITLED
        places = f"It is open in {len(lanes)} places." if len(lanes) > 1 else "It is open here."
        queue = f"{counted(waiting, 'turn runs or waits', 'turns run or are waiting')}."
        return Answer(
            f"You are in {named}, begun {moment(session.began)}: {counted(said, 'message', 'messages')}. "
            f"{places} {queue if waiting else 'Nothing is waiting.'}{self._kept(request)}{self._trouble(request)}"
        )

    def _kept(self, request: Request) -> str:
        """How long the host keeps what is said here."""
        days = self._settings.kept_days(request.lane, request.arrival.place.kind)
        return f" It is forgotten {counted(days, 'day', 'days')} after its last message." if days else ""

    def _trouble(self, request: Request) -> str:
        """The gateway's troubles, which are the host's affair alone."""
        problems = self._problems() if request.private and request.standing is Standing.HOST else ()
        return "".join(f"\n\n{problem}" for problem in problems)

    def usage(self, request: Request) -> Transaction[Answer]:
        session = yield from bound(request)
        if not request.private:
            return Answer(f"What a session costs isn't for everybody here. {MORE}")
        spent = yield from usage.spent(session.id)
        lines = [_cost(each) for each in spent] or ["This session has cost nothing that the agent told of."]
        size = yield from usage.last_size(session.id)
        if size is not None:
            lines.append(f"The last request came to {size.tokens:,} tokens.")
        lines += yield from self._budgets(request, session.id)
        return Answer("\n".join([*lines, *(yield from self._metered(request))]))

    def _metered(self, request: Request) -> Transaction[list[str]]:
        """The month's messages of each account whose platform counts them, for the host."""
        lines: list[str] = []
        for (platform, account), adapter in self._adapters.items() if request.standing is Standing.HOST else ():
            if isinstance(adapter, IsMetered):
                free, zone = adapter.free_a_month, self._settings.zone
                found = yield from metering.metered(platform, account, free, zone, request.at)
                lines.append(found.warning if found.low else found.words)
        return lines

    def _budgets(self, request: Request, session: SessionId) -> Transaction[list[str]]:
        """The budgets of a session and of whoever asks; that of all is for the host."""
        day = day_of(request.at, self._settings.zone)
        found = yield from budgets.standing(session, request.met.person.id, day, self._settings.budget)
        host = request.standing is Standing.HOST
        return [told(*each) for each in found if host or each[0] is not BudgetScope.DAY]

    def who(self, request: Request) -> Transaction[Answer]:
        me = request.met.person
        people = yield from addresses.people(request.lane.address)
        names = sorted(name or "somebody without a name" for id, name in people.items() if id != me.id)[:_NAMED]
        others = f" Here have spoken, too: {', '.join(names)}." if names else ""
        return Answer(f"You are {me.name or 'somebody without a name'}, {request.standing} here.{others}")

    def tree(self, request: Request) -> Transaction[Answer]:
        session = yield from bound(request)
        reader = yield from reader_of(request, session.id)

        def shown(branch: Session) -> Transaction[bool]:
            return (yield from readers.sees(reader, branch))

        tree = yield from trees.tree((yield from trees.root(session, shown)), shown)
        letters = {letter(n): branch for n, branch in enumerate(tree)}
        if request.rest:
            return (yield from self._walk(request, letters.get(request.rest.casefold())))
        names: dict[SessionId, str] = {}
        for mark, branch in letters.items():
            title = (yield from readers.title(reader, branch.id)) or branch.label
            named = f"“{title}”" if title else (yield from label_of(request, branch.id)) or UNTITLED
            names[branch.id] = f"{mark}) {named}" if len(tree) > 1 else named
        names[session.id] += " (here)"
        if reader.places:
            # How an abandoned branch begins may have been said elsewhere.
            tree = tuple(replace(branch, abandoned=()) for branch in tree)
        left = sum(1 + len(branch.abandoned) for branch in tree) - _LINES
        lines = [*islice(draw(tree, lambda branch: names[branch.id]), _LINES)]
        lines += [f"… and {left} more lines"] if left > 0 else []
        asked = yield from self._asked(request, session)
        lines += ["", *asked, "", "/rewind N goes back to one of these."] if asked else []
        lines += ["/tree LETTER goes to a branch."] if len(tree) > 1 else []
        return Answer("\n".join([*lines, *([MORE] if reader.places else [])]))

    def _walk(self, request: Request, branch: Branch | None) -> Transaction[Answer]:
        if branch is None:
            return Answer("/tree shows no such branch. Type it alone to see the letters.")
        question = yield from self._consents.move(request, Resume(request.lane, branch.id))
        return question or Answer(f"You are in {yield from called(request, branch.id)}.")

    def _asked(self, request: Request, session: Session) -> Transaction[list[str]]:
        """The newest messages of people that are the session's own, each with its number."""
        newest = yield from transcripts.path(session.tip, lambda found: len(found) >= _NEWEST)
        said = [e for e in newest if e.tip.session == session.id and e.author.role is Role.PERSON and e.text]
        shown = yield from readers.seen((yield from reader_of(request, session.id)), said)
        # Not "N.": of that Markdown makes a list, and counts its items itself.
        return [f"{entry.tip.n}: {short(entry.text)}" for entry in shown[-_NAMED:]]

    def why(self, request: Request) -> Transaction[Answer]:
        trace = yield from traces.in_lane(request.lane, request.arrival.quotes)
        if trace is None:
            to = yield from quoted(request, self._rules)
            if to is None:
                return Answer("Nothing was said here yet.")
            trace = yield from traces.in_lane(to.lane, to.message)
        if trace is None:
            raise Refused(Refusal.NO_SUCH_MESSAGE)
        alone = request.private and request.standing is Standing.HOST
        return Answer("\n".join(explain(trace, Errors.TOLD if alone else Errors.NAMED)))

    def export(self, request: Request) -> Transaction[Answer]:
        session = yield from own(request)
        form = _FORMS.get(request.rest.casefold())
        if form is None:
            return Answer("Type /export, /export markdown or /export jsonl.")
        if not request.private:
            # It holds every branch, also those that were left before anybody here came to read along.
            return Answer(f"A whole session isn't for everybody here. {MORE}")
        return Answer(f"Here is {name(session)}.", file=export_of(session.id, form, _file_name(session)))


def _cost(spent: Spent) -> str:
    used = spent.usage
    reasoning = f" ({used.reasoning:,} of it reasoning)" if used.reasoning else ""
    cached = [f"{used.cache_read:,} read from the cache"] if used.cache_read else []
    cached += [f"{used.cache_write:,} written to it"] if used.cache_write else []
    cache = f" ({', '.join(cached)})" if cached else ""
    cost = f", ${used.cost:,.4f}" if used.cost is not None else ""
    return (
        f"{used.model}: {counted(spent.turns, 'turn', 'turns')}, {used.input:,} tokens in{cache}, "
        f"{used.output:,} out{reasoning}{cost}"
    )


def _file_name(session: Session) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^\w #.-]+", "_", session.title)[:60].strip(" .") or "session"
