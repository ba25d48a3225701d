"""The store: Segue's public Python API, without a gateway. `open_store` opens one."""

import os
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Self

from segue.changes.exchange import deliveries
from segue.changes.people import persons
from segue.changes.places import addresses
from segue.changes.sessions import exports, moves, search, sessions, titles, transcripts, usage
from segue.core.bindings import Binding, LaneStanding, TipChange
from segue.core.contracts.database import Clock, Driver, Ids
from segue.core.exports.jsonl import Form, from_jsonl, to_jsonl
from segue.core.exports.markdown import START, from_markdown, to_markdown
from segue.core.lanes import Address, Identity, Lane, Person, Place, Rules
from segue.core.messages import Parts, Receipt, Speaker, Text
from segue.core.moves import Limits, Move
from segue.core.titles import Title
from segue.core.transcripts import Author, Draft, Entry, Role, Session, Tip, visible
from segue.core.values import Moment, PersonId, SessionId, make_ids
from segue.database.sqlite import Sqlite
from segue.errors import Invalid, NotInstalled, Refusal, Refused

_EXPORT = 500
_INDEXED = 64


def fresh_ids(clock: Clock) -> Ids:
    """Ids that sort by the clock and can't be guessed."""
    return make_ids(clock, os.urandom)


def _counted(count: int) -> int:
    """A count, checked."""
    if count < 1:
        raise Invalid("count", f"{count} is no number of things", "Give a whole number above 0.")
    return count


class Store:
    """Sessions, lanes, bindings and transcripts in one database.

    Every method is one transaction: when it returns, what it did is durable; when it raises, nothing changed.
    """

    def __init__(
        self, driver: Driver, clock: Clock = time.time, ids: Ids | None = None, limits: Limits | None = None
    ) -> None:
        self.driver = driver
        self._clock = clock
        self._ids = ids or fresh_ids(clock)
        self._limits = limits or Limits()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what was accepted and let go of the database."""
        await self.driver.close()

    # Persons and places

    async def person(self, identity: Identity, name: str = "", aliases: Sequence[str] = ()) -> Person:
        """The person of an identity; a new one the first time, a merge when two of the ids were two persons."""
        speaker = Speaker(identity, name, tuple(aliases))
        fresh = tuple(self._ids() for _ in aliases)
        met = await self.driver.write(persons.meet, speaker, PersonId(self._ids()), fresh, self._clock())
        return met.person

    async def identities(self, person: Person) -> list[Identity]:
        """Every way in which platforms know a person."""
        return await self.driver.read(persons.identities, person.id)

    async def link(self, one: Person, two: Person) -> persons.Merge:
        """Two persons are one: the older stays, with the sessions, titles and lanes of both."""
        return await self.driver.write(persons.link, one.id, two.id, "link", one.id, self._ids(), self._clock())

    async def unlink(self, merge: persons.Merge) -> None:
        """Undo a merge: what each of the two began is theirs again."""
        await self.driver.write(persons.part, merge.id, merge.kept, self._ids(), self._clock())

    async def merges(self, person: Person) -> list[persons.Merge]:
        """The merges that hold into a person."""
        return await self.driver.read(persons.merges, person.id)

    async def lane(self, place: Place, person: Person, rules: Rules | None = None, aliases: Sequence[str] = ()) -> Lane:
        """The lane that a person speaks in at a place; `aliases` are other ids of the same chat."""
        fresh = self._ids(), self._clock()
        return await self.driver.write(addresses.lane, place, aliases, person.id, rules or Rules(), *fresh)

    async def set_home(self, place: Place, by: Person) -> None:
        """Name the home of an account."""
        await self.driver.write(addresses.set_home, place, by.id, self._ids(), self._clock())

    async def homes(self) -> list[addresses.Home]:
        """Every home."""
        return await self.driver.read(addresses.homes)

    async def home(self, platform: str, account: str) -> addresses.Home | None:
        """The home of an account."""
        return await self.driver.read(addresses.home, platform, account)

    # Moves of bindings

    def new_session_id(self) -> SessionId:
        """An id for a move that begins a session."""
        return SessionId(self._ids())

    async def move(self, move: Move, by: Person) -> moves.Moving:
        """Make a move, or raise `Refused` and change nothing."""
        return await self.driver.write(moves.make, move, by.id, self._limits, self._ids(), self._clock())

    async def undo_move(self, move: str, by: Person) -> moves.Moving:
        """Take a move back."""
        return await self.driver.write(moves.undo, move, by.id, self._limits, self._ids(), self._clock())

    async def last_move(self, lane: Lane) -> moves.Last | None:
        """The newest move of a lane that wasn't taken back."""
        return await self.driver.read(moves.last_move, lane)

    async def bound(self, lane: Lane) -> Session | None:
        """The session that a lane speaks to."""
        return await self.driver.read(sessions.bound, lane)

    async def lanes_of(self, session: SessionId) -> list[Lane]:
        """The lanes that speak to a session now, the newest first."""
        return await self.driver.read(sessions.lanes, session)

    async def lanes(self, after: Lane | None = None, count: int = 100) -> list[LaneStanding]:
        """Lanes by their keys, with what they speak to; the last of a page is before the next one."""
        return await self.driver.read(sessions.all_lanes, after.key if after else "", _counted(count))

    async def history(self, of: Lane | SessionId, count: int = 100) -> list[Binding]:
        """The bindings that a lane or a session has had, newest first."""
        return await self.driver.read(sessions.history, of, _counted(count))

    # Sessions

    async def session(self, id: SessionId, by: Person) -> Session:
        """One of a person's own sessions; somebody else's is as if it weren't there."""
        return await self.driver.read(sessions.own, id, by.id)

    async def sessions(
        self, owner: Person, count: int = 20, before: Session | None = None, since: Moment = 0.0
    ) -> list[Session]:
        """A person's sessions, last used first; empty ones aren't listed. The last of a page is before the next one."""
        return await self.driver.read(sessions.owned, owner.id, _counted(count), before, since)

    async def sessions_here(self, lane: Lane, count: int = 100) -> list[Session]:
        """The open sessions that a lane has spoken to, in the order in which they came."""
        return await self.driver.read(sessions.here, lane, _counted(count))

    async def show_list(self, lane: Lane, person: Person, shown: Iterable[Session], kind: str = "resume") -> None:
        """Remember the numbered list that a person sees, so that its numbers stay true."""
        ids = [session.id for session in shown]
        await self.driver.write(sessions.keep_list, lane, person.id, kind, ids, self._clock())

    async def line(self, lane: Lane, person: Person, number: int, kind: str = "resume") -> SessionId:
        """The session on a line of the list that the person was shown last."""
        return await self.driver.read(sessions.line, lane, person.id, kind, number)

    async def close_session(self, id: SessionId, by: Person) -> None:
        """Close a session: it takes no more turns, its transcript stays."""
        await self.driver.write(moves.close, id, by.id, self._ids(), self._clock())

    async def reopen_session(self, id: SessionId, by: Person) -> None:
        """Let a closed session go on; nothing speaks to it until it is resumed."""
        await self.driver.write(moves.reopen, id, by.id, self._limits)

    async def set_title(self, id: SessionId, title: str, by: Person) -> Title:
        """Name a session; a name that its owner has used takes the next number."""
        return await self.driver.write(titles.entitle, id, title, by.id, self._clock())

    async def find(self, title: str, by: Person) -> SessionId:
        """The person's own session that goes by a title: the newest of its lineage, or `NAME #2`."""
        found = await self.driver.read(titles.find, by.id, title)
        if found is None:
            raise Refused(Refusal.NOT_FOUND)
        return found

    async def nearest_title(self, title: str, by: Person) -> str | None:
        """The person's own title that looks most like this one."""
        return await self.driver.read(titles.nearest, by.id, title)

    async def children(self, parent: SessionId) -> list[Session]:
        """The live children that a session has spawned, those with a label first."""
        return await self.driver.read(sessions.children, parent)

    async def child(self, parent: SessionId, label: str) -> SessionId:
        """The live child of a session that goes by a label."""
        return await self.driver.read(sessions.child, parent, label)

    async def branches(self, id: SessionId) -> list[Session]:
        """The sessions that were forked or spawned from one."""
        return await self.driver.read(sessions.branches, id)

    # Transcripts

    async def say(self, id: SessionId, author: Author | Person, *said: str | Parts) -> Tip | None:
        """Add entries at the tip, one for each thing said."""
        if isinstance(author, Person):
            author = Author(Role.PERSON, author.id, author.name)
        drafts = [Draft(author, (Text(parts),) if isinstance(parts, str) else parts) for parts in said]
        return await self.driver.write(transcripts.append, id, drafts, self._clock())

    async def path(self, of: SessionId | Tip) -> list[Entry]:
        """The transcript up to a session's tip, or up to an entry, oldest entry first."""
        if isinstance(of, Tip):
            return await self.driver.read(transcripts.path, of)
        return await self.driver.read(transcripts.current_path, of)

    async def visible(self, id: SessionId) -> list[Entry]:
        """The entries of a session for a model: its newest summary and those that it doesn't stand for."""
        return visible(await self.driver.read(transcripts.recent_path, id))

    async def undo(self, id: SessionId, by: Person, count: int = 1) -> Tip | None:
        """Take the last exchanges back; returns the new tip."""
        return await self.driver.write(transcripts.undo, id, count, by.id, self._clock())

    async def retry(self, id: SessionId, by: Person) -> list[Entry]:
        """Take the last exchange back and return what was asked in it, to be asked again."""
        return await self.driver.write(transcripts.retry, id, by.id, self._clock())

    async def rewind(self, id: SessionId, to: Tip, by: Person) -> Tip | None:
        """Go back to an entry; what came after it stays, on a branch of its own."""
        return await self.driver.write(transcripts.rewind, id, to, by.id, self._clock())

    async def compress(self, id: SessionId, summary: str, upto: Tip, by: Person) -> Tip | None:
        """Let a summary stand for all entries up to one; nothing is deleted."""
        return await self.driver.write(transcripts.compress, id, summary, upto, by.id, self._clock())

    async def usage(self, id: SessionId) -> list[usage.Spent]:
        """The cost of a session, by model."""
        return await self.driver.read(usage.spent, id)

    async def tip_changes(self, id: SessionId, count: int = 100) -> list[TipChange]:
        """The moves of a session's tip other than by new entries, newest first."""
        return await self.driver.read(transcripts.tip_changes, id, _counted(count))

    async def receipt(self, address: Address, message: str) -> Receipt | None:
        """The receipt of a message, if Segue sent it."""
        return await self.driver.read(deliveries.receipt, address, message)

    async def search(self, words: str, by: Person, count: int = 20) -> list[Entry]:
        """The newest entries of a person's own sessions that have all these words, the last as a beginning."""
        return await self.driver.read(search.search, by.id, words, _counted(count))

    async def index(self) -> int:
        """Make every entry findable that isn't yet; the gateway does this in the background."""
        total = 0
        while batches := await self.driver.read(search.unindexed, _INDEXED):
            await self.driver.write(search.index, batches)
            total += sum(batch.upto - batch.after for batch in batches)
        return total

    async def entries(self, id: SessionId) -> AsyncIterator[Entry]:
        """Every entry that a session ever wrote, on whichever branch, in order."""
        n = 0
        while found := await self.driver.read(sessions.entries_since, id, n, _EXPORT):
            for entry in found:
                yield entry
            n = found[-1].tip.n

    async def export(self, id: SessionId, by: Person, form: Form = Form.JSONL) -> str:
        """One of a person's own sessions as text: whole as JSONL, or what was said up to its tip as Markdown."""
        whole = await self.driver.read(exports.transcript, id, by.id)
        return to_markdown(whole) if form is Form.MARKDOWN else to_jsonl(whole)

    async def import_session(self, text: str, by: Person) -> SessionId:
        """A new session of a person's own, made of an export in either form."""
        markdown = text.removeprefix("\ufeff").startswith(START)
        transcript = from_markdown(text) if markdown else from_jsonl(text)
        fresh = self.new_session_id(), self._clock()
        brought = await self.driver.write(exports.bring, transcript, by.id, *fresh)
        return brought.session


async def open_store(
    where: str | Path, *, clock: Clock = time.time, ids: Ids | None = None, limits: Limits | None = None
) -> Store:
    """Open a store, its database made or brought up to date; `async with` closes it again."""
    return Store(await open_driver(where), clock, ids, limits)


async def open_driver(where: str | Path) -> Driver:
    """Open the database behind a store."""
    address = str(where)
    if address.startswith(("postgresql://", "postgres://")):
        try:
            # The one import that hides: PostgreSQL's library is an extra.
            postgres = import_module("segue.database.postgres")
        except ModuleNotFoundError as error:
            raise NotInstalled("store", "asyncpg", "postgres") from error
        opened: Driver = await postgres.Postgres.open(address)
        return opened
    return await Sqlite.open(Path(where))
