"""A window's view of its session: which entries it shows, and what it must be sent next."""

from collections.abc import Iterable, Sequence

from segue.changes.exchange import turns
from segue.changes.sessions import pages
from segue.core.contracts.database import Driver
from segue.core.lanes import Address
from segue.core.messages import Aside, File, Parts, plain_text
from segue.core.transcripts import Entry, Role, Session, Tip
from segue.core.values import SessionId
from segue.runtime.windows.frames import (
    MOST,
    EarlierFrame,
    EntriesFrame,
    OpenRequest,
    ShownAnswer,
    ShownEntry,
    ShownSession,
    TranscriptFrame,
)

_SHORT = 80
MOST_SESSIONS = 200
"""Sessions of which a window remembers what it showed: an answer in an older one is told again."""


class WindowView:
    """The entries of one session that stand in a window."""

    def __init__(self, driver: Driver, asked: OpenRequest, me: frozenset[str], here: Address) -> None:
        self._driver = driver
        self._me = me
        """Ids of the window's person: theirs, and those of persons that turned out to be them."""
        self._here = here.key
        self._page = min(max(asked.page, 1), MOST)
        self._whole = asked.whole
        self.session: SessionId | None = None
        self.answered = 0
        """The newest turn whose answer is shown."""
        self._told: dict[str, int] = {}
        """The last entry that was shown here of each of the sessions that were shown last."""
        self._shows_nothing = True
        """Nothing of the session was sent yet."""
        self._named: ShownSession | None = None
        self.tip: Tip | None = None
        """The last entry that is shown."""
        self._earlier: Tip | None = None
        """The last entry that was left out."""

    def turn_to(self, session: SessionId | None) -> bool:
        """Look at a session; returns whether it is another one than before."""
        if session == self.session:
            return False
        self.session, self._shows_nothing, self.answered = session, True, 0
        return True

    def forget(self) -> None:
        """Show the session anew: something of it was forgotten."""
        self._shows_nothing = True

    async def update(self, session: Session | None) -> TranscriptFrame | EntriesFrame | None:
        """New entries of the session that is looked at; its last page, if they don't follow those shown."""
        named = shown(session) if session else None
        tip = session.tip if session else None
        new = None if self._shows_nothing else await self._driver.read(pages.since, tip, self.tip, MOST)
        known, self._named, self.tip = self._named, named, tip
        if new is None:
            page = await self._driver.read(pages.newest, tip, self._page)
            self._shows_nothing, self._earlier = False, _before(page)
            self._tell(page)
            return TranscriptFrame(named, await self._entries(page), self._earlier)
        self._tell(new)
        return EntriesFrame(named, await self._entries(new)) if new or named != known else None

    async def earlier(self, cursor: Tip) -> EarlierFrame | None:
        """The page before what is shown; None if the cursor isn't the one that the window was given last."""
        if cursor != self._earlier:
            return None
        page = await self._driver.read(pages.newest, cursor, self._page)
        self._earlier = _before(page)
        return EarlierFrame(await self._entries(page), self._earlier)

    def shows(self, session: str, n: int) -> bool:
        """Whether an entry was shown here, as far as that is remembered."""
        return n <= self._told.get(session, 0)

    def mine(self, person: str) -> bool:
        """Whether somebody is the window's person."""
        return person in self._me

    async def _entries(self, path: Sequence[Entry]) -> tuple[ShownEntry, ...]:
        """The entries of a path that people see: not those for the agent alone."""
        told = [entry for entry in path if not all(isinstance(part, Aside) for part in entry.parts)]
        failed = await self._driver.read(turns.failures, [e for e in told if e.author.role is Role.GATEWAY])
        return tuple(self._entry(entry, failed=entry.tip in failed) for entry in told)

    def _entry(self, entry: Entry, *, failed: bool) -> ShownEntry:
        by = entry.author
        mine = by.role is Role.PERSON and self.mine(by.person)
        here = entry.source.address == self._here
        parts = tuple(part for part in entry.parts if not isinstance(part, Aside)) if self._whole else ()
        return ShownEntry(
            entry.tip, by.role, by.name, entry.text, entry.at, _files(entry.parts), mine, failed, here, parts
        )

    def _tell(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._told[entry.tip.session] = max(self._told.pop(entry.tip.session, 0), entry.tip.n)
            if entry.tip.session == self.session:
                self.answered = max(self.answered, entry.turn)
        for session in list(self._told)[:-MOST_SESSIONS]:
            del self._told[session]


def shown(session: Session) -> ShownSession:
    """A session as windows name it."""
    return ShownSession(session.id, session.title)


def listed(session: Session, text: str) -> ShownSession:
    """A session with some of its words, as a list has it."""
    return ShownSession(session.id, session.title, text[:_SHORT], session.closed is not None, session.used)


def answer(parts: Parts) -> ShownAnswer:
    """One thing that was said, as scripts print it."""
    return ShownAnswer(plain_text(parts), _files(parts))


def _before(page: Sequence[Entry]) -> Tip | None:
    return page[0].parent if page else None


def _files(parts: Iterable[object]) -> tuple[File, ...]:
    return tuple(part for part in parts if isinstance(part, File))
