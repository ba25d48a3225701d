"""Threads that Segue opens on platforms, for handoffs and for children."""

import asyncio
import logging
from itertools import count

from segue.core.contracts.adapters import OpensThreads
from segue.core.lanes import Address
from segue.errors import SendLater, SendNever, SendUnsure
from segue.runtime.replica import Replica

log = logging.getLogger(__name__)

_CALL = 30.0
"""Seconds that one call may take."""
_PAUSE = 0.5


async def open_thread(
    adapter: OpensThreads, around: Address, named: tuple[str, str], replica: Replica, patience: float, tries: int = 0
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
                    async with replica.calling(_CALL):
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
    except SendNever:
        raise
    except Exception as error:  # the adapter isn't ours: a bug of its own must not keep the conversation
        log.exception(
            "%s.%s can't open a thread, in a way that its adapter doesn't name", around.platform, around.account
        )
        raise SendNever("its adapter failed, as the log says") from error
    raise said or SendUnsure("it didn't answer in time")
