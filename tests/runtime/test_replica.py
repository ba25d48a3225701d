"""A replica: alive while it beats, and again under a new id when it was taken for dead."""

import itertools
from collections.abc import Callable
from typing import Any

from segue.changes.exchange import replicas
from segue.database.hints import Hints
from segue.database.sqlite import RunsIn, Sqlite
from segue.errors import Fenced
from segue.runtime.replica import Replica
from segue.runtime.retrying import Patient


class Slow:
    """A database that answers the first beats only after the lease is over."""

    def __init__(self, driver: Sqlite, times: int) -> None:
        self._driver = driver
        self._left = times
        self.listen = Hints().listen
        self.close = driver.close
        self.hint = driver.hint
        self.read = driver.read
        self.copies, self.scrub, self.damage = driver.copies, driver.scrub, driver.damage

    async def write(self, transaction: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if transaction is replicas.beat and self._left:
            self._left -= 1
            raise Fenced(f"replica {args[0]}")
        return await self._driver.write(transaction, *args, **kwargs)


async def test_a_replica_that_is_taken_for_dead_while_it_comes_alive_tries_again(tmp_path: Any) -> None:
    driver = await Sqlite.open(tmp_path / "segue.db", running=RunsIn.INLINE)
    numbers = itertools.count(1)
    replica = Replica(Patient(Slow(driver, times=2)), lambda: f"r{next(numbers)}", lease=60.0)
    await replica.join()
    assert replica.id == "r3"
    assert replica.left > 0
    assert (await driver.write(replicas.beat, "r3", 60.0)).dead == 0
    await driver.close()
