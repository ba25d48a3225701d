"""The store: Segue's public Python API without a gateway. `open_store` opens it."""

import asyncio
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
    """Return an id maker: its ids sort by time and can't be guessed."""
    return make_ids(clock, os.urandom)


def _counted(count: int) -> int:
    """Return a count after checking its range."""
    if count < 1:
        raise Invalid("count", f"{count} is no number of things", "Give a whole number above 0.")
    return count


class Store:
    """Sessions, lanes, bindings and transcripts in one database.

    Every method is one transaction. When it returns, its changes are durable; when it raises, nothing changed.
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
        """Finish the queued work and close the database."""
        await self.driver.close()

    # Persons and places

    async def person(self, identity: Identity, name: str = "", aliases: Sequence[str] = ()) -> Person:
        """Return the person of an identity.

        Creates the person the first time. Links two persons if their ids turn out to belong to one.
        """
        speaker = Speaker(identity, name, tuple(aliases))
        fresh = tuple(self._ids() for _ in aliases)
        met = await self.driver.write(persons.meet, speaker, PersonId(self._ids()), fresh, self._clock())
        return met.person

    async def identities(self, person: Person) -> list[Identity]:
        """List the identities that platforms know a person by."""
        return await self.driver.read(persons.identities, person.id)

    async def link(self, one: Person, two: Person) -> persons.Merge:
        """Link two persons as one.

        The older person stays and gets the sessions, titles and lanes of both.
        """
        return await self.driver.write(persons.link, one.id, two.id, "link", one.id, self._ids(), self._clock())

    async def unlink(self, merge: persons.Merge) -> None:
        """Undo a link between two persons. Each gets back the sessions and lanes they began."""
        await self.driver.write(persons.part, merge.id, merge.kept, self._ids(), self._clock())

    async def merges(self, person: Person) -> list[persons.Merge]:
        """List the links into a person that are in force."""
        return await self.driver.read(persons.merges, person.id)

    async def lane(self, place: Place, person: Person, rules: Rules | None = None, aliases: Sequence[str] = ()) -> Lane:
        """Return a person's lane at a place; `aliases` are other ids of the same chat."""
        fresh = self._ids(), self._clock()
        return await self.driver.write(addresses.lane, place, aliases, person.id, rules or Rules(), *fresh)

    async def set_home(self, place: Place, by: Person) -> None:
        """Set the home of the place's account."""
        await self.driver.write(addresses.set_home, place, by.id, self._ids(), self._clock())

    async def homes(self) -> list[addresses.Home]:
        """List every home."""
        return await self.driver.read(addresses.homes)

    async def home(self, platform: str, account: str) -> addresses.Home | None:
        """Find the home of an account."""
        return await self.driver.read(addresses.home, platform, account)

    # Moves of bindings

    def new_session_id(self) -> SessionId:
        """Return a new id for a move that begins a session."""
        return SessionId(self._ids())

    async def move(self, move: Move, by: Person) -> moves.Moving:
        """Make a move, or raise `Refused` and change nothing."""
        return await self.driver.write(moves.make, move, by.id, self._limits, self._ids(), self._clock())

    async def undo_move(self, move: str, by: Person) -> moves.Moving:
        """Undo a move."""
        return await self.driver.write(moves.undo, move, by.id, self._limits, self._ids(), self._clock())

    async def last_move(self, lane: Lane) -> moves.Last | None:
        """Find a lane's newest move that wasn't undone."""
        return await self.driver.read(moves.last_move, lane)

    async def bound(self, lane: Lane) -> Session | None:
        """Find the session that a lane is bound to."""
        return await self.driver.read(sessions.bound, lane)

    async def lanes_of(self, session: SessionId) -> list[Lane]:
        """List the lanes bound to a session now, newest first."""
        return await self.driver.read(sessions.lanes, session)

    async def lanes(self, after: Lane | None = None, count: int = 100) -> list[LaneStanding]:
        """List lanes by their keys, with their sessions.

        To get the next page, pass the last lane as `after`.
        """
        return await self.driver.read(sessions.all_lanes, after.key if after else "", _counted(count))

    async def history(self, of: Lane | SessionId, count: int = 100) -> list[Binding]:
        """List the bindings of a lane or a session, newest first."""
        return await self.driver.read(sessions.history, of, _counted(count))

    # Sessions

    async def session(self, id: SessionId, by: Person) -> Session:
        """Find one of a person's own sessions. Other people's sessions count as missing."""
        return await self.driver.read(sessions.own, id, by.id)

    async def sessions(
        self, owner: Person, count: int = 20, before: Session | None = None, since: Moment = 0.0
    ) -> list[Session]:
        """List a person's sessions, last used first, without empty ones.

        To get the next page, pass the last session as `before`.
        """
        return await self.driver.read(sessions.owned, owner.id, _counted(count), before, since)

    async def sessions_here(self, lane: Lane, count: int = 100) -> list[Session]:
        """List the open sessions that a lane has spoken to, oldest first."""
        return await self.driver.read(sessions.here, lane, _counted(count))

    async def show_list(self, lane: Lane, person: Person, shown: Iterable[Session], kind: str = "resume") -> None:
        """Remember the numbered list that a person sees, so that its numbers keep their meaning."""
        ids = [session.id for session in shown]
        await self.driver.write(sessions.keep_list, lane, person.id, kind, ids, self._clock())

    async def line(self, lane: Lane, person: Person, number: int, kind: str = "resume") -> SessionId:
        """Find the session at a line of the list that the person saw last."""
        return await self.driver.read(sessions.line, lane, person.id, kind, number)

    async def close_session(self, id: SessionId, by: Person) -> None:
        """Close a session: it accepts no more turns, and its transcript stays."""
        await self.driver.write(moves.close, id, by.id, self._ids(), self._clock())

    async def reopen_session(self, id: SessionId, by: Person) -> None:
        """Reopen a closed session. No lane is bound to it until somebody resumes it."""
        await self.driver.write(moves.reopen, id, by.id, self._limits)

    async def set_title(self, id: SessionId, title: str, by: Person) -> Title:
        """Name a session. A name that its owner has used before gets the next number."""
        return await self.driver.write(titles.entitle, id, title, by.id, self._clock())

    async def find(self, title: str, by: Person) -> SessionId:
        """Find the person's own session by title.

        A plain title finds the newest session of its lineage; `NAME #2` finds that one.
        """
        found = await self.driver.read(titles.find, by.id, title)
        if found is None:
            raise Refused(Refusal.NOT_FOUND)
        return found

    async def nearest_title(self, title: str, by: Person) -> str | None:
        """Find the person's own title that is most similar to this one."""
        return await self.driver.read(titles.nearest, by.id, title)

    async def children(self, parent: SessionId) -> list[Session]:
        """List the live children that a session spawned, labelled ones first."""
        return await self.driver.read(sessions.children, parent)

    async def child(self, parent: SessionId, label: str) -> SessionId:
        """Find the live child of a session by its label."""
        return await self.driver.read(sessions.child, parent, label)

    async def branches(self, id: SessionId) -> list[Session]:
        """List the sessions that were forked or spawned from this one."""
        return await self.driver.read(sessions.branches, id)

    # Transcripts

    async def say(self, id: SessionId, author: Author | Person, *said: str | Parts) -> Tip | None:
        """Add entries at the tip, one for each text or list of parts."""
        if isinstance(author, Person):
            author = Author(Role.PERSON, author.id, author.name)
        drafts = [Draft(author, (Text(parts),) if isinstance(parts, str) else parts) for parts in said]
        return await self.driver.write(transcripts.append, id, drafts, self._clock())

    async def path(self, of: SessionId | Tip) -> list[Entry]:
        """Return the transcript up to a session's tip or up to an entry, oldest entry first."""
        if isinstance(of, Tip):
            return await self.driver.read(transcripts.path, of)
        return await self.driver.read(transcripts.current_path, of)

    async def visible(self, id: SessionId) -> list[Entry]:
        """Return the entries that a model reads: the newest summary and the entries it doesn't replace."""
        return visible(await self.driver.read(transcripts.recent_path, id))

    async def undo(self, id: SessionId, by: Person, count: int = 1) -> Tip | None:
        """Undo the last exchanges; return the new tip."""
        return await self.driver.write(transcripts.undo, id, count, by.id, self._clock())

    async def retry(self, id: SessionId, by: Person) -> list[Entry]:
        """Undo the last exchange and return its question, to ask it again."""
        return await self.driver.write(transcripts.retry, id, by.id, self._clock())

    async def rewind(self, id: SessionId, to: Tip, by: Person) -> Tip | None:
        """Move the tip back to an entry. Later entries stay on a branch of their own."""
        return await self.driver.write(transcripts.rewind, id, to, by.id, self._clock())

    async def compress(self, id: SessionId, summary: str, upto: Tip, by: Person) -> Tip | None:
        """Replace all entries up to one by a summary, for models. Nothing is deleted."""
        return await self.driver.write(transcripts.compress, id, summary, upto, by.id, self._clock())

    async def usage(self, id: SessionId) -> list[usage.Spent]:
        """Return the cost of a session, by model."""
        return await self.driver.read(usage.spent, id)

    async def tip_changes(self, id: SessionId, count: int = 100) -> list[TipChange]:
        """List the moves of a session's tip, newest first, without those that new entries made."""
        return await self.driver.read(transcripts.tip_changes, id, _counted(count))

    async def receipt(self, address: Address, message: str) -> Receipt | None:
        """Find the receipt of a message that Segue sent."""
        return await self.driver.read(deliveries.receipt, address, message)

    async def search(self, words: str, by: Person, count: int = 20) -> list[Entry]:
        """Search a person's own sessions.

        Returns the newest entries that contain all the words; the last word may be a prefix.
        """
        return await self.driver.read(search.search, by.id, words, _counted(count))

    async def index(self) -> int:
        """Index every entry that search can't find yet. The gateway does this in the background."""
        total = 0
        while batches := await self.driver.read(search.unindexed, _INDEXED):
            await self.driver.write(search.index, batches)
            total += sum(batch.upto - batch.after for batch in batches)
        return total

    async def entries(self, id: SessionId) -> AsyncIterator[Entry]:
        """Return every entry of a session on all its branches, in order."""
        n = 0
        while found := await self.driver.read(sessions.entries_since, id, n, _EXPORT):
            for entry in found:
                yield entry
            n = found[-1].tip.n

    async def export(self, id: SessionId, by: Person, form: Form = Form.JSONL) -> str:
        """Export one of a person's own sessions.

        JSONL has the whole session; Markdown has the conversation up to its tip.
        """
        whole = await self.driver.read(exports.transcript, id, by.id)
        return await asyncio.to_thread(to_markdown if form is Form.MARKDOWN else to_jsonl, whole)

    async def import_session(self, text: str, by: Person) -> SessionId:
        """Import a session for a person, from either form of an export."""
        markdown = text.removeprefix("\ufeff").startswith(START)
        transcript = from_markdown(text) if markdown else from_jsonl(text)
        fresh = self.new_session_id(), self._clock()
        brought = await self.driver.write(exports.bring, transcript, by.id, *fresh)
        return brought.session


async def open_store(
    where: str | Path, *, clock: Clock = time.time, ids: Ids | None = None, limits: Limits | None = None
) -> Store:
    """Open a store; create or migrate its database first. `async with` closes it."""
    return Store(await open_driver(where), clock, ids, limits)


async def open_driver(where: str | Path) -> Driver:
    """Open the database behind a store."""
    address = str(where)
    if address.startswith(("postgresql://", "postgres://")):
        try:
            # The one import inside a function: PostgreSQL's library is an extra.
            postgres = import_module("segue.database.postgres")
        except ModuleNotFoundError as error:
            raise NotInstalled("store", "asyncpg", "postgres") from error
        opened: Driver = await postgres.Postgres.open(address)
        return opened
    return await Sqlite.open(Path(where))
