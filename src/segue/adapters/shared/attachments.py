"""Fetches the files of messages, and limits the retries for missing ones."""

from collections.abc import AsyncIterator, Awaitable, Callable

from segue.adapters.shared.downloads import Limits, NotFetched, fetching
from segue.adapters.shared.lookups import Recent
from segue.core.contracts.adapters import Files
from segue.core.messages import File
from segue.errors import Disconnected, Invalid, SendError, SendLater, SendNever

Opened = Callable[[bytes], Awaitable[bytes]]
_TRIES = 3
BEGINNING = 1000
"""The length of the excerpt of a message that is shown with a reply to it, in characters."""
Found = bytes | str | tuple[str, Limits]
"""The content of a file, its address, or its address with limits of its own."""


class Tries:
    """Counts failures by key, so that retries end."""

    def __init__(self) -> None:
        self._failed: Recent[str, int] = Recent()

    def lasts(self, what: str, error: SendError) -> bool:
        """Count one more failure; return whether it is permanent.

        A rate limit with a time to wait doesn't count as a failure.
        """
        return not (isinstance(error, SendLater) and error.seconds is not None) and self.over(what)

    def over(self, what: str) -> bool:
        """Count one more failure; return whether there were too many."""
        self._failed[what] = self._failed.get(what, 0) + 1
        return self._failed[what] >= _TRIES

    async def file(self, name: str, where: str, fetched: Awaitable[File]) -> File | str:
        """Fetch a file of a message. If it can't be fetched, return a remark with the reason."""
        try:
            return await fetched
        except NotFetched as error:
            why = str(error)
        except (Disconnected, SendError) as error:
            if not isinstance(error, SendNever) and not self.over(where):
                raise Disconnected(str(error)) from error
            why = "The platform doesn't give it."
        return f"{name} wasn't taken in. {why}"


class Attachments:
    """Fetches and stores the files of messages to one account.

    A remark with the reason replaces a file that can't be fetched.
    """

    def __init__(self, files: Files, limits: Limits = Limits()) -> None:  # noqa: B008 -- frozen
        self._files = files
        self._limits = limits
        self._tries = Tries()

    async def file(
        self, named: File, id: str, find: Callable[[], Awaitable[Found]], opened: Opened | None = None
    ) -> File | str:
        """Fetch a file by its id.

        `find` returns the file's content or address, or raises `NotFetched`. Where files are encrypted, `opened`
        decrypts the fetched content, and may raise `NotFetched` too.
        """
        return await self._tries.file(named.name, id, self._kept(named, find, opened))

    async def _kept(self, named: File, find: Callable[[], Awaitable[Found]], opened: Opened | None) -> File:
        self._check(named.size)
        found = await find()
        if isinstance(found, bytes):
            self._check(len(found))
            return await self._files.keep(named.name, named.media, whole(found))
        url, limits = (found, self._limits) if isinstance(found, str) else found
        async with fetching(url, limits) as chunks:
            sent = chunks if opened is None else whole(await opened(b"".join([chunk async for chunk in chunks])))
            return await self._files.keep(named.name, named.media, sent)

    def _check(self, size: int) -> None:
        if size > self._limits.largest:
            raise NotFetched(f"It is larger than {self._limits.largest // 1024 // 1024} MB.")


async def content_of(files: Files, file: File) -> bytes:
    """Return the bytes of an outgoing file; raise `SendNever` if the file is missing."""
    try:
        return await files.read(file)
    except Invalid as error:
        raise SendNever(str(error)) from error


async def whole(content: bytes) -> AsyncIterator[bytes]:
    """Stream content that is in memory already, for `Files.keep`."""
    yield content
