"""The extent of a forgetting: everything in the database that holds the words of an exchange or of a session.

Law: an exchange is what one turn wrote, every turn that asked the same again or edited it, and every turn that it asked
of other sessions. Summaries go that stand for any of it, and citations of it, whoever wrote them. Nothing is changed
here.
"""

from collections.abc import Iterable

from segue.changes.rows import each, first
from segue.core.contracts.database import Transaction
from segue.core.messages import Citation, File, Part, Parts, Stone, Summary, ToolCall
from segue.core.transcripts import Role, Tip
from segue.core.values import PersonId, SessionId, Value
from segue.database.statements import q
from segue.errors import Refusal, Refused

_NEAR = 64
_LAST = 2**31 - 1
_TELLING = 12
"""Characters of a text that say which text it is a piece of."""


class Erasable(Value, frozen=True):
    """An entry as it is about to go."""

    seq: int
    tip: Tip
    turn: int
    role: Role
    person: PersonId
    parts: Parts
    indexed: bool
    owner: PersonId
    """Under whom its words were made findable."""


class TurnId(Value, frozen=True):
    """A turn of a session."""

    session: SessionId
    turn: int


class TurnWords(Value, frozen=True):
    """The words of a turn, the message that it came as, and where."""

    parts: Parts
    message: str
    route: str
    answered: int


class SentWords(Value, frozen=True):
    """Words that were sent, and the message as which they were."""

    text: str
    message: str
    address: str
    file: File | None


class TimeRun(Value, frozen=True):
    """A time of scheduled work, which may have left a file."""

    schedule: str
    due: float
    zone: str


class Extent:
    """All that is to go."""

    def __init__(self) -> None:
        self.sessions: list[SessionId] = []
        """Sessions that go whole."""
        self.turns: dict[TurnId, TurnWords | None] = {}
        self.entries: dict[Tip, Erasable] = {}
        self.citing: dict[Tip, Erasable] = {}
        """Entries that stay, but for what they cite."""
        self.citing_turns: dict[TurnId, Parts] = {}
        self.parts: list[Part] = []
        """All that goes, as parts: tool calls, files, words."""
        self.texts: set[str] = set()
        """The words that go."""
        self.messages: set[tuple[str, str]] = set()
        """Messages on platforms: the address, and the platform's id there."""
        self.models: set[str] = set()
        self.work: list[TimeRun] = []
        self.notes: set[str] = set()
        """Notes about people, by their ids."""

    @property
    def held(self) -> set[SessionId]:
        """The sessions that anything goes from."""
        turns = {turn.session for turn in (*self.turns, *self.citing_turns)}
        return turns | {tip.session for tip in (*self.entries, *self.citing)} | set(self.sessions)

    @property
    def files(self) -> set[str]:
        """Where the files are kept that go with it."""
        return {part.where for part in self.parts if isinstance(part, File)}

    @property
    def calls(self) -> int:
        """How many tool calls go."""
        return len({part.id for part in self.parts if isinstance(part, ToolCall)})

    @property
    def said(self) -> int:
        """How many messages of people and the agent go."""
        return sum(entry.role is not Role.GATEWAY and not _is_stone(entry.parts) for entry in self.entries.values())

    @property
    def summaries(self) -> int:
        """How many summaries go."""
        return sum(isinstance(part, Summary) for entry in self.entries.values() for part in entry.parts)

    def take(self, parts: Parts) -> None:
        """Note the words and files of some parts."""
        self.parts += parts
        texts = (getattr(part, field, "") for part in parts for field in ("text", "task"))
        self.texts |= {flat for text in texts if (flat := _flat(text))}


def nothing() -> Transaction[Extent]:
    """The extent of nothing."""
    yield from ()
    return Extent()


def of_notes(notes: Iterable[str]) -> Transaction[Extent]:
    """The extent of some notes."""
    extent = yield from nothing()
    extent.notes |= set(notes)
    return extent


def of_exchange(session: SessionId, n: int) -> Transaction[Extent]:
    """The extent of the exchange that an entry is a part of."""
    asked = yield from first(Erasable, q.erasable_entry(session=session, n=n))
    if asked is None:
        raise Refused(Refusal.NO_SUCH_MESSAGE)
    extent = Extent()
    if asked.turn:
        yield from _take_turns(extent, [TurnId(session, asked.turn)])
    else:
        first_n, last_n = max(1, n - _NEAR), n + _NEAR
        near = yield from each(Erasable, q.erasable_between(session=session, first=first_n, last=last_n))
        yield from _take_entries(extent, _unnumbered(near, n))
    return (yield from _whole(extent))


def of_turn(session: SessionId, turn: int) -> Transaction[Extent]:
    """The extent of a turn, answered or not."""
    extent = Extent()
    yield from _take_turns(extent, [TurnId(session, turn)])
    return (yield from _whole(extent))


def of_session(session: SessionId) -> Transaction[Extent]:
    """The extent of a session with the children that it spawned."""
    extent = Extent()
    extent.sessions = yield from each(SessionId, q.spawned_from(session=session))
    for each_session in extent.sessions:
        extent.notes |= set((yield from each(str, q.notes_of_session(session=each_session))))
        turns = yield from each(int, q.turns_of_session(session=each_session))
        yield from _take_turns(extent, [TurnId(each_session, turn) for turn in turns])
        yield from _take_entries(
            extent, (yield from each(Erasable, q.erasable_between(session=each_session, first=1, last=_LAST)))
        )
    return (yield from _whole(extent))


def _whole(extent: Extent) -> Transaction[Extent]:
    for turn in list(extent.turns):
        yield from _take_sent(extent, turn)
        extent.models |= set((yield from each(str, q.models_told(session=turn.session, turn=turn.turn))))
        extent.work += yield from each(TimeRun, q.runs_of_turn(session=turn.session, turn=turn.turn))
        extent.notes |= set((yield from each(str, q.notes_of_turn(session=turn.session, turn=turn.turn))))
    yield from _take_summaries(extent)
    yield from _take_citations(extent)
    return extent


def _take_turns(extent: Extent, waiting: list[TurnId]) -> Transaction[None]:
    """Take turns, with all that asks the same again, edits it, or was asked because of it."""
    while waiting:
        found = waiting.pop()
        if found in extent.turns:
            continue
        session, turn = found.session, found.turn
        words = yield from first(TurnWords, q.turn_words(session=session, turn=turn))
        extent.turns[found] = words
        if words is not None:
            extent.take(words.parts)
            if words.message:
                extent.messages.add((words.route, words.message))
        for parts in (yield from each(tuple[Part, ...], q.journal_words(session=session, turn=turn))):
            extent.take(parts)
        waiting += yield from each(TurnId, q.turns_asked_by(session=session, turn=turn))
        if session in extent.sessions:
            continue  # All its turns and entries go, and are looked up once.
        together = yield from each(int, q.turns_of_exchange(session=session, turn=words.answered if words else turn))
        calls = {"first": f"edit/{turn}/", "last": f"edit/{turn}0"}
        edited = yield from each(int, q.turns_of_edits(session=session, **calls))
        waiting += [TurnId(session, n) for n in (*together, *edited)]
        written = yield from each(Erasable, q.erasable_turn(session=session, turn=turn))
        yield from _take_entries(extent, written)
        for entry in written:
            if entry.role is Role.PERSON and not _is_stone(entry.parts):
                again = yield from each(int, q.turns_alike(session=session, n=entry.tip.n))
                waiting += [TurnId(session, n) for n in again]


def _take_entries(extent: Extent, entries: Iterable[Erasable]) -> Transaction[None]:
    yield from ()
    for entry in entries:
        if entry.tip not in extent.entries:
            extent.entries[entry.tip] = entry
            extent.take(entry.parts)


def _take_sent(extent: Extent, turn: TurnId) -> Transaction[None]:
    """Take what a turn had sent."""
    first_key, last_key = f"{turn.session}/{turn.turn}/", f"{turn.session}/{turn.turn}0"
    for sent in (yield from each(SentWords, q.delivery_words(first=first_key, last=last_key))):
        extent.texts |= {flat for flat in [_flat(sent.text)] if flat}
        extent.parts += [sent.file] if sent.file else []
        if sent.message:
            extent.messages.add((sent.address, sent.message))


def _take_summaries(extent: Extent) -> Transaction[None]:
    """Take every summary that stands for an entry that goes: in its session, and in all that grew out of it."""
    grown: set[SessionId] = set()
    for session in {tip.session for tip in extent.entries}:
        grown |= set((yield from each(SessionId, q.grown_from(session=session))))
    for session in sorted(grown):
        for entry in (yield from each(Erasable, q.erasable_summaries(session=session))):
            for part in entry.parts:
                if entry.tip in extent.entries or not isinstance(part, Summary):
                    continue
                covered = yield from each(Tip, q.way_to(session=part.session, n=part.n))
                if not extent.entries.keys().isdisjoint(covered):
                    yield from _take_entries(extent, [entry])


def _take_citations(extent: Extent) -> Transaction[None]:
    """Take what cites words that go: where a message that goes was answered, and in its people's own sessions."""
    found: list[Erasable] = []
    for _, message in sorted(extent.messages):
        for turn in (yield from each(TurnId, q.turns_citing(message=message))):
            answered = yield from _take_citing_turn(extent, turn)
            found += yield from each(Erasable, q.erasable_turn(session=turn.session, turn=answered))
    for owner in sorted({entry.owner for entry in extent.entries.values()}):
        found += yield from each(Erasable, q.erasable_citing(owner=owner))
    for entry in found:
        if entry.tip not in extent.entries and uncited(entry.parts, extent.texts, Stone(0.0)) != entry.parts:
            extent.citing[entry.tip] = entry
            session = entry.tip.session
            for turn_n in (yield from each(int, q.turns_of_exchange(session=session, turn=entry.turn))):
                yield from _take_citing_turn(extent, TurnId(session, turn_n))


def _take_citing_turn(extent: Extent, turn: TurnId) -> Transaction[int]:
    """Take what a turn cites of words that go; returns the turn that answered it."""
    words = yield from first(TurnWords, q.turn_words(session=turn.session, turn=turn.turn))
    if words is None:
        return turn.turn
    if turn not in extent.turns and uncited(words.parts, extent.texts, Stone(0.0)) != words.parts:
        extent.citing_turns[turn] = words.parts
    return words.answered


def uncited(parts: Parts, gone: set[str], stone: Stone) -> Parts:
    """Parts with a stone for each citation of words that are gone."""
    return tuple(stone if isinstance(part, Citation) and _cites(part, gone) else part for part in parts)


def _cites(part: Citation, gone: set[str]) -> bool:
    """Whether a citation is of these words, whole or cut short."""
    text = _flat(part.text).removesuffix("…").rstrip()
    return any(text == one or (min(len(text), len(one)) >= _TELLING and (text in one or one in text)) for one in gone)


def _unnumbered(near: list[Erasable], n: int) -> list[Erasable]:
    """The exchange around an entry that no turn wrote: from a person's words to the next person's."""
    starts = [
        entry.tip.n
        for entry, before in zip(near, [None, *near], strict=False)
        if entry.role is Role.PERSON and (before is None or before.role is not Role.PERSON)
    ]
    begin = max((at for at in starts if at <= n), default=n)
    end = min((at for at in starts if at > n), default=_LAST)
    return [entry for entry in near if begin <= entry.tip.n < end and not entry.turn]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _is_stone(parts: Parts) -> bool:
    return bool(parts) and all(isinstance(part, Stone) for part in parts)
