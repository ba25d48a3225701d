"""The contract of a file store: the bytes of files that came or went with messages, and results of scheduled work.

A path says what a file is: `files/AB/DIGEST` is named by the SHA-256 of its content, `scheduled/ID/TIME.md` is the
result of one run.
"""

import re
from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from segue.core.contracts.adapters import Files
from segue.core.messages import File
from segue.core.values import Moment
from segue.errors import Invalid

FILES = "files"
RESULTS = "scheduled"
_BY_DIGEST = re.compile(rf"{FILES}/[0-9a-f]{{2}}/[0-9a-f]{{64}}")
_RESULT = re.compile(rf"{RESULTS}/[0-9A-Za-z_-]{{1,64}}/[0-9A-Za-z+-]{{1,40}}\.md")


def is_kept(where: str) -> bool:
    """Whether a path is that of a file that was kept under its digest."""
    return _BY_DIGEST.fullmatch(where) is not None


def is_stored(where: str) -> bool:
    """Whether a path is one that a file store uses: of a file, or of a result."""
    return is_kept(where) or _RESULT.fullmatch(where) is not None


def path_of(digest: str) -> str:
    """The path of the content with this digest."""
    return f"{FILES}/{digest[:2]}/{digest}"


def not_kept(name: str) -> Invalid:
    """The error for a file that a store doesn't have."""
    return Invalid("file", f"{name} isn't one that is kept here", "Keep it first.")


def damaged(where: str) -> Invalid:
    """The error for content that isn't what its path says."""
    return Invalid("file", f"its content isn't that of {where}", "Bring it back from a backup.")


@runtime_checkable
class FileStore(Files, Protocol):
    """Stores files by their paths, in a data folder or in a database.

    Law: a file is there whole or not at all, and never changes. Its age counts from when it was kept last.
    """

    async def put(self, where: str, chunks: AsyncIterator[bytes]) -> None:
        """Make a file durable under its path; raises `Invalid` if its content has another digest than its path."""
        ...

    def content(self, where: str) -> AsyncIterator[bytes]:
        """The content of a file or a result, a piece at a time; raises `Invalid` if it isn't here."""
        ...

    async def find_size(self, where: str) -> int | None:
        """How many bytes a file has; None if it isn't here."""
        ...

    async def list_kept(self, folder: str, since: Moment, until: Moment) -> list[str]:
        """The paths in a folder of files that were last kept after one moment and up to another."""
        ...

    async def delete(self, where: str, until: Moment) -> bool:
        """Delete a file unless it was kept again since then; returns whether this deleted it."""
        ...

    async def delete_halves(self, until: Moment) -> int:
        """Delete what was begun by then and never became a whole file; returns how many."""
        ...

    async def read_mark(self) -> Moment:
        """The moment up to which every file was found named; 0 if nobody has looked."""
        ...

    async def keep_mark(self, until: Moment) -> None:
        """Remember that moment."""
        ...

    async def now(self) -> Moment:
        """The time by the clock that says how old files are."""
        ...

    def locate(self, file: File) -> str:
        """Words that tell the host where a file is."""
        ...
