import time

from segue.changes.people import grants
from segue.changes.people.grants import Scope
from segue.core.lanes import Identity, Person
from segue.store import Store
from tests.cli.conftest import Home


async def let_in(store: Store, host: Person) -> None:
    eve = await store.person(Identity("telegram", "bot", "7"), "Eve\x1b[2J")
    await store.driver.write(grants.grant, "telegram/bot", eve.id, Scope.DM, "pairing", host.id, time.time())


def test_the_audit_names_who_was_let_in_by_whom(home: Home) -> None:
    assert home.segue("audit").stdout == "Nothing has happened yet.\n"
    home.do(let_in)
    [line] = home.segue("audit").stdout.splitlines()
    assert "let in" in line
    assert "telegram.bot" in line
    assert line.endswith("dm, pairing, by Ada")
    assert "\x1b" not in line
    [fact] = home.json("audit")
    assert (fact["fact"]["event"], fact["by_name"]) == ("let in", "Ada")
