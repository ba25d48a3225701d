"""Databases with so many sessions in them, made once a run."""

import random
from collections.abc import Callable
from pathlib import Path

from bench.ours import Segue
from bench.people import ACCOUNT
from bench.raw import HOST, Raw, RawStore, who
from bench.scale import Scale
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Speaker

UNDO = "undo"
"""The chat whose session has 1,000 messages."""
LONG = "long"
"""The chat whose session has 10,000 entries."""
LONG_SESSION = "long-session"
"""The chat of a gateway whose session is long."""
SPARE = "spare"
"""A chat that is bound to one session and then to another."""
_SPECIAL = {UNDO: 500, LONG: 5_000, SPARE: 1}


class Databases:
    """Where a run keeps its files."""

    def __init__(self, folder: Path, scale: Scale, tell: Callable[[str], None]) -> None:
        self.folder = folder
        self.scale = scale
        self._tell = tell

    async def segue(self, sessions: int) -> Path:
        """A database of Segue's with so many sessions, their entries indexed."""
        path = self.folder / f"segue-{sessions}.db"
        if not path.exists():
            self._tell(f"making a database with {sessions:,} sessions")
            store = await Segue.sqlite(path)
            dice = random.Random(sessions)
            await store.populate(range(sessions), self._exchanges(sessions), dice)
            for chat, exchanges in _SPECIAL.items():
                await store.populate([chat], exchanges, dice)
            await store.store.index()
            await store.close()
        return path

    def raw(self, sessions: int) -> Path:
        """The same in plain SQLite."""
        path = self.folder / f"raw-{sessions}.db"
        if not path.exists():
            store = RawStore(path)
            dice = random.Random(sessions)
            store.raw.populate([who(number) for number in range(sessions)], self._exchanges(sessions), dice)
            for chat, exchanges in _SPECIAL.items():
                store.raw.populate([(chat, HOST)], exchanges, dice)
            store.raw.index()
            store.close()
        return path

    async def long_session(self, entries: int) -> Path:
        """A database of Segue's with one session of so many entries, for a gateway over HTTP."""
        path = self.fresh(f"long-{entries}")
        store = await Segue.sqlite(path)
        place = Place(Address("http", ACCOUNT, chat=LONG_SESSION), Kind.DM)
        speaker = Speaker(Identity("http", ACCOUNT, LONG_SESSION), LONG_SESSION)
        await store.lengthen(place, speaker, entries, random.Random(entries))
        await store.close()
        return path

    def fresh(self, name: str) -> Path:
        """The path of a database that isn't there yet."""
        return self.folder / f"{name}-{random.randbytes(4).hex()}.db"

    def inside(self, name: str) -> Path:
        """A folder of somebody's own."""
        path = self.folder / name
        path.mkdir()
        return path

    def _exchanges(self, sessions: int) -> int:
        """Both sizes hold about as much text."""
        return self.scale.entries // 2 if sessions == self.scale.few else 1


def session_of(raw: Raw, chat: str) -> int:
    """The session that a chat speaks to in plain SQLite."""
    session = raw.find(chat)
    if session is None:
        raise LookupError(chat)
    return session
