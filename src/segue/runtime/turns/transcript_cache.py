"""The cache of transcripts: the path of each session that was answered lately, kept in memory.

Law: entries never change, but some are hidden, shown again or forgotten. Then no path that leads through their session
counts any more, nor does what a turn began with that runs meanwhile. So a path that ends at a session's tip is right;
one that ends elsewhere shares its beginning with the right one, and only the rest is read. The sessions that were used
longest ago make room; the one that was used last stays, however long it is: its turn holds it in memory anyway.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from sys import getsizeof

from segue.changes.sessions import transcripts
from segue.core.messages import Aside, Notice, Summary, Text, encode_parts
from segue.core.transcripts import Entries, Entry, Path, Tip, back_past, covers_summary
from segue.core.turns import MOVES_TIP, Finish, Finished, Run, far_enough
from segue.core.values import Moment, SessionId
from segue.runtime.retrying import Patient

_MOST = 64 * 1024 * 1024
_BARE = 700
"""Bytes that an entry without words takes."""


class _Kept:
    """One session: its path, the entries that its agent is shown, and about how many bytes both take."""

    def __init__(self) -> None:
        self.path = Path()
        self.sessions = set[SessionId]()
        """Sessions of the entries on the path: its own, and those that it was forked from."""
        self.shown: tuple[Entries, Entries] | None = None
        self.size = 0


class TranscriptCache:
    """Transcripts for turns that are about to run; one more message costs what is new."""

    def __init__(self, store: Patient, most: int = _MOST) -> None:
        self._store = store
        self._most = most
        self._kept: OrderedDict[SessionId, _Kept] = OrderedDict()
        self._size = 0
        self._begun: set[SessionId] = set()
        """Sessions whose turns have begun with what still counts."""

    def clear(self) -> None:
        """Forget all paths: something in any of them may have been hidden, or forgotten."""
        self._begun.clear()
        self._kept.clear()
        self._size = 0

    def drop(self, session: SessionId) -> None:
        """Forget the paths through a session: something in it was hidden, or is shown again."""
        self._begun.clear()
        for id in [id for id, kept in self._kept.items() if session in kept.sessions]:
            self._size -= self._kept.pop(id).size

    async def path(self, run: Run) -> Path:
        """The path on which a turn begins: back to what its newest summary needs, or as far as it moves the tip."""
        session, tip, first = run.held.session, run.tip, run.turns[0]
        self._begun.add(session)
        if tip is None:
            return Path()
        if first.kind in MOVES_TIP and (enough := far_enough(first)):
            return Path(await self._store.read(transcripts.path, tip, enough))
        kept = self._kept.get(session)
        if kept is not None and kept.path[-1].tip == tip:
            self._kept.move_to_end(session)
            return kept.path
        found = await self._read(tip, kept.path if kept is not None else Path())
        if session not in self._begun:
            # Something was hidden while it was read.
            return await self.path(run)
        self._keep(session, found)
        return found

    def go_on(self, before: Path, run: Run, done: Finish, finished: Finished, at: Moment) -> None:
        """Take in what a finished turn wrote after the path on which it began."""
        if finished.hidden:
            self.drop(run.held.session)
        counts = run.held.session in self._begun
        self._begun.discard(run.held.session)
        if not counts or finished.before != (done.onto.tip if done.onto else run.tip):
            return
        added, parent = [], finished.before
        first = finished.tip.n - len(done.drafts) + 1 if finished.tip else 1
        for n, draft in enumerate(done.drafts, first):
            tip = Tip(run.held.session, n)
            said = at if draft.at is None else draft.at
            added.append(Entry(tip, parent, draft.author, draft.parts, said, run.name, draft.source))
            parent = tip
        path = Path(added, before)
        if path and path[-1].tip == finished.tip:
            self._keep(run.held.session, path)

    def shown(self, session: SessionId, seen: Entries, veil: Callable[[Entry], Entry]) -> Entries:
        """The same entries as an agent may know them; each is veiled once."""
        kept = self._kept.get(session)
        known = kept.shown if kept is not None else None
        if known is not None and seen.follows(known[0]):
            new, before = seen[len(known[0]) :], known[1]
        else:
            new, before = seen[:], Entries()
        shown = Entries([veil(entry) for entry in new], before)
        if kept is not None:
            kept.shown = seen, shown
            self._grow(kept, new)
        return shown

    async def _read(self, tip: Tip, known: Path) -> Path:
        """The path to a tip; what of it is known isn't read again."""
        if known:
            last, covers = back_past(known[-1].tip), covers_summary
            newest = await self._store.read(transcripts.path, tip, lambda n: last(n) or covers(n))
            for at, entry in enumerate(newest):
                if entry.tip == known[-1].tip:
                    return Path(newest[at + 1 :], known)
            for at in reversed(range(len(known))):
                if known[at].tip == newest[0].tip:
                    return Path([*known[:at], *newest])
            if (path := Path(newest)).whole:
                return path
        return Path(await self._store.read(transcripts.path, tip, covers_summary))

    def _keep(self, session: SessionId, path: Path) -> None:
        """Remember a path, unless it doesn't go back as far as an agent is told."""
        kept = self._kept.pop(session, None) or _Kept()
        if not path.whole:
            self._size -= kept.size
            return
        new: Sequence[Entry] = path
        if path.follows(kept.path):
            new = path[len(kept.path) :]
        else:
            self._size -= kept.size
            kept = _Kept()
        kept.path = path
        self._kept[session] = kept
        self._grow(kept, new)

    def _grow(self, kept: _Kept, new: Sequence[Entry]) -> None:
        """Count the bytes that new entries take in memory, about, and make room for them."""
        kept.sessions.update(entry.tip.session for entry in new)
        size = _BARE * len(new)
        for part in (part for entry in new for part in entry.parts):
            if isinstance(part, Text | Notice | Aside | Summary):
                size += getsizeof(part.text)
            else:
                size += len(encode_parts((part,)))
        kept.size += size
        self._size += size
        while self._size > self._most and len(self._kept) > 1:
            self._size -= self._kept.popitem(last=False)[1].size
