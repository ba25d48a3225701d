"""Threads on platforms: those that Segue opens, for handoffs and for children, and their titles."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from itertools import count

from segue.changes.sessions import titles
from segue.core.accounts import Health, Reach
from segue.core.contracts.adapters import OpensThreads, RenamesThreads
from segue.core.lanes import Address
from segue.core.values import SessionId
from segue.errors import SendError, SendLater, SendUnsure
from segue.runtime.parts import Ground

log = logging.getLogger(__name__)

_CALL = 30.0
"""Seconds that one call may take."""
_PAUSE = 0.5


async def open_thread(
    adapter: OpensThreads, around: Address, named: tuple[str, str], ground: Ground, patience: float, tries: int = 0
) -> Address:
    """A new thread by its title and key, asked for again while the platform can't: the same key is the same thread.

    Law: a call lasts no longer than its replica is known to live, and all of them within `patience` seconds and so many
    tries, if there is a number of them. Raises `SendNever` if the platform opens none, else what came of the last call.
    """
    said: SendLater | SendUnsure | None = None
    try:
        async with asyncio.timeout(patience):
            for number in count(1):
                try:
                    async with ground.replica.calling(_CALL):
                        with ground.failures.adapter_call(around.platform, around.account, "opening a thread"):
                            return await adapter.open_thread(around, *named)
                except (SendLater, SendUnsure) as error:
                    said = error
                except TimeoutError:
                    said = SendUnsure("it didn't answer in time")
                if number == tries:
                    break
                await asyncio.sleep(
                    said.seconds if isinstance(said, SendLater) and said.seconds is not None else _PAUSE
                )
    except TimeoutError:
        log.info("%s.%s opened no thread in time", around.platform, around.account)
    raise said or SendUnsure("it didn't answer in time")


class ThreadTitles:
    """Keeps threads called like the sessions that they speak to, where their platform shows a title.

    Nobody waits for a title: one that can't be told now is told when it next changes.
    """

    def __init__(self, ground: Ground, health: Callable[[], Mapping[str, Health]]) -> None:
        self._store = ground.store
        self._failures = ground.failures
        self._health = health
        self._adapters = {key: one for key, one in ground.adapters.items() if isinstance(one, RenamesThreads)}

    async def tell(self, session: SessionId) -> None:
        """Tell the platforms what a session is called; each is told by the replica that is connected to it."""
        if not any(self._is_here(*account) for account in self._adapters):
            return
        title, threads = await self._store.read(titles.threads, session)
        for thread in threads if title else ():
            adapter = self._adapters.get((thread.platform, thread.account))
            if adapter is None or not self._is_here(thread.platform, thread.account):
                continue
            try:
                async with asyncio.timeout(_CALL):
                    with self._failures.adapter_call(thread.platform, thread.account, "renaming a thread"):
                        await adapter.rename(thread, title)
            except (SendError, TimeoutError) as error:
                log.info("a thread keeps its title: %s", str(error) or "no answer came in time")

    def _is_here(self, platform: str, account: str) -> bool:
        health = self._health().get(f"{platform}.{account}")
        return health is not None and health.reach is Reach.CONNECTED
