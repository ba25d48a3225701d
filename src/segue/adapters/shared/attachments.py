"""Files that come and go with messages, and how long what failed to come is waited for."""

from collections.abc import AsyncIterator, Awaitable, Callable

from segue.adapters.shared.downloads import Limits, NotFetched, fetching
from segue.adapters.shared.lookups import Recent
from segue.core.contracts.adapters import Files
from segue.core.messages import File
from segue.errors import Disconnected, Invalid, SendError, SendLater, SendNever

Opened = Callable[[bytes], Awaitable[bytes]]
_TRIES = 3
BEGINNING = 1000
"""Characters of a message that are shown with an answer to it."""
Found = bytes | str | tuple[str, Limits]
"""The content of a file; or its address, with limits where those of the account don't fit."""


class Tries:
    """Failures, by what failed: what may yet come is waited for, but not for ever."""

    def __init__(self) -> None:
        self._failed: Recent[str, int] = Recent()

    def lasts(self, what: str, error: SendError) -> bool:
        """Count one more failure; whether it is to be lived with. A platform that asks for patience hasn't failed."""
        return not (isinstance(error, SendLater) and error.seconds is not None) and self.over(what)

    def over(self, what: str) -> bool:
        """Count one more failure; whether it has failed too often to be waited for."""
        self._failed[what] = self._failed.get(what, 0) + 1
        return self._failed[what] >= _TRIES

    async def file(self, name: str, where: str, fetched: Awaitable[File]) -> File | str:
        """A file that comes with a message; a remark that says why it isn't there, if it can't be had."""
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
    """Files that come with the messages of one account: each is fetched and kept, or a remark says why it isn't."""

    def __init__(self, files: Files, limits: Limits = Limits()) -> None:  # noqa: B008 -- frozen
        self._files = files
        self._limits = limits
        self._tries = Tries()

    async def file(
        self, named: File, id: str, find: Callable[[], Awaitable[Found]], opened: Opened | None = None
    ) -> File | str:
        """A file by its id; `find` tells what is in it, or where that can be fetched, or raises `NotFetched`.

        Where files are encrypted, `opened` makes what was sent of what was fetched, or raises `NotFetched`, too.
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
    """The bytes of a file that goes out; raises `SendNever` if it is gone."""
    try:
        return await files.read(file)
    except Invalid as error:
        raise SendNever(str(error)) from error


async def whole(content: bytes) -> AsyncIterator[bytes]:
    """A file that is there already, for `Files.keep`."""
    yield content
