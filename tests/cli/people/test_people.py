"""`segue people`: who may talk, and how it is taken back."""

import time

import pytest

from segue.changes.people import browsers, grants
from segue.changes.people.browsers import Keys
from segue.changes.people.grants import Scope
from segue.core.lanes import Address, Identity, Kind, Person, Place
from segue.core.moves import Renew
from segue.store import Store
from tests.cli.conftest import Home

EVE = Identity("http", "alpha", "eve")
CONFIG = """
owners = ["http.alpha/u1"]
[http.alpha]
secret = "cmd:false"
callback = "http://127.0.0.1:9/out"
{more}
"""


async def let_in(store: Store, host: Person) -> Person:
    """Eve was let in by the host, and said something."""
    eve = await store.person(EVE, "Eve")
    await store.driver.write(grants.grant, "http/alpha", eve.id, Scope.DM, "pairing", host.id, time.time())
    lane = await store.lane(Place(Address("http", "alpha", chat="c1"), Kind.DM), eve)
    await store.move(Renew(lane, session := store.new_session_id()), eve)
    await store.say(session, eve, "my secret recipe")
    return eve


@pytest.fixture
def eve(home: Home) -> Person:
    (home.path / "segue.toml").write_text(CONFIG.format(more=""))
    return home.do(let_in)


def test_who_may_talk_is_listed_with_since_when_and_by_what(home: Home, eve: Person) -> None:
    listed = {person["name"]: person for person in home.json("people", "list")}
    assert listed["Ada"]["by"] == "host"
    assert (listed["Eve"]["by"], listed["Eve"]["identities"]) == ("let in", ["http.alpha/eve"])
    assert "let in" in home.segue("people", "list").stdout
    shown = home.segue("people", "show", "http.alpha/eve").stdout
    assert "dm, by pairing" in shown
    assert "Sessions: 1." in shown
    assert "recipe" not in shown
    assert eve.id in shown


@pytest.mark.parametrize("named", ["Eve", "eve", "http.alpha/eve"])
def test_what_a_person_said_is_read_by_people_read_alone_and_that_is_written_down(
    home: Home, eve: Person, named: str
) -> None:
    assert "my secret recipe" in home.segue("people", "read", named).stdout
    [fact, *_] = home.json("audit")
    assert (fact["fact"]["event"], fact["fact"]["person"], fact["by_name"]) == ("read", eve.id, "Ada")


def test_a_grant_is_revoked_once(home: Home, eve: Person) -> None:
    assert home.segue("people", "revoke", eve.id).stdout.startswith("Revoked: http.alpha, dm")
    assert home.segue("people", "revoke", eve.id).stdout.startswith("Nothing was granted to them.")
    assert [person["name"] for person in home.json("people", "list")] == ["Ada"]
    assert {person["by"] for person in home.json("people", "list", "--all")} == {"host", "stranger"}


def test_a_person_is_blocked_and_let_talk_again(home: Home, eve: Person) -> None:
    assert home.segue("people", "block", eve.id).stdout == "They may talk nowhere now.\n"
    assert home.segue("people", "block", eve.id).stdout == "That was so already.\n"
    assert [person["name"] for person in home.json("people", "list")] == ["Ada"]
    assert home.segue("people", "block", eve.id, "--undo").stdout.startswith("They may talk again")
    assert [fact["fact"]["event"] for fact in home.json("audit")][:2] == ["unblocked", "blocked"]


def test_a_link_is_parted(home: Home, eve: Person) -> None:
    async def link(store: Store, _: Person) -> Person:
        bob = await store.person(Identity("telegram", "bot", "bob"), "Bob")
        await store.link(eve, bob)
        return bob

    home.do(link)
    assert "by a code" in home.segue("people", "show", "http.alpha/eve").stdout
    assert home.segue("people", "unlink", "http.alpha/eve").stdout.startswith("Parted: ")
    assert home.segue("people", "unlink", "http.alpha/eve").exit_code == 2
    assert len(home.json("people", "list", "--all")) == 3


def test_who_isnt_known_or_not_alone_in_their_name_is_asked_back(home: Home, eve: Person) -> None:
    async def another(store: Store, _: Person) -> None:
        await store.person(Identity("telegram", "bot", "eve"), "Eve")

    assert 'nobody goes by "Mallory"' in home.segue("people", "show", "Mallory").stderr
    home.do(another)
    assert '2 people are called "Eve"' in home.segue("people", "show", "Eve").stderr


def test_keys_are_replaced_and_browsers_signed_out(home: Home) -> None:
    async def keys(store: Store, _: Person) -> Keys:
        await store.driver.write(browsers.begin, "ab" * 32)
        return await store.driver.read(browsers.keys)

    before = home.do(keys)
    assert home.segue("people", "signout", "b1").exit_code == 0
    assert home.do(keys) == Keys(before.key, frozenset({"b1"}))
    assert "signed out" in home.segue("people", "signout").stdout
    after = home.do(keys)
    assert after.key != before.key
    assert home.segue("people", "rotate").exit_code == 0
    assert home.do(keys).key != after.key
    events = [fact["fact"]["event"] for fact in home.json("audit")]
    assert events == ["rotated", "signed out", "rotated", "signed out", "rotated", "signed out"]


@pytest.mark.usefixtures("eve")
def test_a_person_is_forgotten_with_all_that_they_said(home: Home) -> None:
    refused = home.segue("people", "forget", "http.alpha/eve", said="n\n")
    assert refused.exit_code == 1
    assert "This deletes 1 session of http.alpha/eve" in refused.stdout
    done = home.segue("people", "forget", "http.alpha/eve", "--yes").stdout
    assert done.startswith("Forgotten: 1 session or exchange, their name")
    assert "copies and backups of the database file" in done
    for word in (b"recipe", b"Eve"):
        for part in ("segue.db", "segue.db-wal"):
            assert not (home.path / part).exists() or word not in (home.path / part).read_bytes()
