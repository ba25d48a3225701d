"""An inbox and a file store in memory. They behave like the gateway's on disk."""

import hashlib
from collections.abc import AsyncIterator

from segue.core.contracts.adapters import Accepted, Arrived, Letter, StatusReport, Unfetched
from segue.core.messages import Arrival, File, plain_text
from segue.errors import Invalid, StoreError
from segue.testing.waits import Changes


class Inbox:
    """Accepts each arrival once; pass `inbox.accept` to an adapter."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        """Arrivals that are new."""
        self.duplicates: list[Arrival] = []
        self.letters: list[Letter] = []
        self.reports: list[StatusReport] = []
        self.refusals = 0
        """The number of next calls that fail with a `StoreError`."""
        self.strangers: set[str] = set()
        """The names of people who aren't admitted."""
        self.refused: list[Arrival] = []
        """The messages of strangers, whose files weren't fetched."""
        self._seen: set[str] = set()
        self._changes = Changes()

    async def accept(self, arrived: Arrived) -> Accepted:
        """Store an arrival.

        Any of its keys identifies a duplicate. Files are fetched only for a new arrival of an admitted person.
        """
        if self.refusals:
            self.refusals -= 1
            raise StoreError("There is no room on the disk.")
        if isinstance(arrived, Unfetched):
            first = arrived.arrival
            let_in = self._seen.isdisjoint(first.keys) and first.speaker.name not in self.strangers
            arrived = await arrived.fetch() if let_in else first
        try:
            return self._keep(arrived)
        finally:
            self._changes.tell()

    def _keep(self, arrived: Arrival | Letter | StatusReport) -> Accepted:
        if isinstance(arrived, StatusReport):
            self.reports.append(arrived)
            return Accepted.NEW
        if isinstance(arrived, Letter):
            self.letters.append(arrived)
            return Accepted.DEAD
        new = self._seen.isdisjoint(arrived.keys)
        self._seen.update(arrived.keys)
        if new and arrived.speaker.name in self.strangers:
            self.refused.append(arrived)
            return Accepted.NEW
        (self.arrivals if new else self.duplicates).append(arrived)
        return Accepted.NEW if new else Accepted.DUPLICATE

    @property
    def said(self) -> list[Arrival]:
        """The messages, without updates that only name a place."""
        return [arrival for arrival in self.arrivals if arrival.heard.parts]

    @property
    def texts(self) -> list[str]:
        """The texts of the messages, in the order in which they arrived."""
        return [plain_text(arrival.heard.parts) for arrival in self.said]

    async def refuses(self) -> Arrival:
        """Wait for a stranger's message."""
        return await self._changes.until(
            lambda: self.refused[-1] if self.refused else None, lambda: "nothing of a stranger's was told"
        )

    async def gets(self, text: str) -> Arrival:
        """Wait for the newest arrival with this text."""
        return await self._changes.until(
            lambda: next((a for a in reversed(self.arrivals) if plain_text(a.heard.parts) == text), None),
            lambda: f"{text!r} never arrived; there are {self.texts!r}",
        )


class Shelf:
    """Stores files for the length of a test."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        """The content of each file, by its path."""

    async def keep(self, name: str, media: str, chunks: AsyncIterator[bytes]) -> File:
        """Store a file."""
        content = b"".join([chunk async for chunk in chunks])
        where = f"files/{hashlib.sha256(content).hexdigest()}"
        self.kept[where] = content
        return File(name, media, where, len(content))

    async def read(self, file: File) -> bytes:
        """Return the content of a stored file."""
        if file.where not in self.kept:
            raise Invalid("file", f"{file.name} isn't one that is kept here", "Keep it first.")
        return self.kept[file.where]

    async def stream(self, file: File) -> AsyncIterator[bytes]:
        """Stream the content of a stored file, in one piece."""
        yield await self.read(file)
