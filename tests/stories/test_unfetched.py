"""Files stay on their platform until whoever sent them may speak, and the message is for the agent."""

from segue.changes import audit
from segue.changes.people import grants, persons
from segue.changes.people.grants import Scope
from segue.core.contracts.agents import Work
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity, account_key
from segue.core.messages import File, Speaker
from segue.core.people import Allowance, Allowances
from segue.core.settings import GatewaySettings, Mentions
from segue.core.values import Moment, PersonId
from segue.runtime.gateway import Gateway
from segue.testing import To
from segue.testing.agents import ScriptedAgent, Step
from tests.runtime.telemetry.test_metrics import figure
from tests.stories.square import Square, both, everywhere


def names_files(work: Work) -> list[Step]:
    """Say which files came, and whether they are there."""
    files = [part for draft in work.asked for part in draft.parts if isinstance(part, File)]
    return ["Got " + ", ".join(f"{file.name} of {file.size}" if file.where else "nothing" for file in files)]


def let_in(identity: Identity, at: Moment) -> Transaction[PersonId]:
    met = yield from persons.meet(Speaker(identity), PersonId("new"), (), at)
    account = account_key(identity.platform, identity.account)
    yield from grants.grant(account, met.person.id, Scope.DM, "test", met.person.id, at)
    return met.person.id


def left(square: Square, gateway: Gateway) -> float | None:
    account = {"platform": square.platform.name, "account": square.platform.account}
    return figure(gateway.metrics, "segue_files_left_total", **account)


@everywhere
async def test_a_stranger_s_file_is_neither_fetched_nor_kept_until_they_are_let_in(square: Square) -> None:
    square.public, square.agent = False, ScriptedAgent(otherwise=names_files)
    platform, eve = square.platform, square.platform.person("Eve")
    hers = platform.dm(eve)
    async with square.open() as gateway:
        eve.attaches("virus.exe", b"her bytes", hers, to=To.AGENT)
        assert (await square.hears(hers, 1))[0].startswith("I only talk to people whom my host knows.")
        assert (platform.shelf.kept, left(square, gateway)) == ({}, 1)
        [fact] = await square.store.driver.read(audit.newest, 1)
        assert (fact.fact.event, fact.fact.detail) == (audit.Event.REFUSED, "stranger")
        person = await square.store.driver.write(let_in, eve.identity, square.clock())
        eve.attaches("cat.png", b"her bytes", hers, to=To.AGENT)
        assert (await square.hears(hers, 2))[1] == "Got cat.png of 9"
        assert list(platform.shelf.kept.values()) == [b"her bytes"]
        # Nobody remembers that they might.
        await square.store.driver.write(grants.revoke_all, person, person, gateway._access.still, square.clock())
        platform.shelf.kept.clear()
        eve.attaches("dog.png", b"more of her bytes", hers, to=To.AGENT)
        await platform.settles()
        assert (platform.shelf.kept, left(square, gateway)) == ({}, 2)


@both
async def test_the_pictures_of_people_among_themselves_are_not_fetched(square: Square) -> None:
    square.agent = ScriptedAgent(otherwise=names_files)
    club = square.platform.group()
    async with square.open(mentions=Mentions.NEEDED) as gateway:
        square.ann.attaches("for-ben.png", b"private", club)
        square.ann.attaches("for-all.png", b"public", club, "look", to=To.AGENT)
        assert (await square.hears(club, 1))[0] == "Got for-all.png of 6"
        assert list(square.platform.shelf.kept.values()) == [b"public"]
        assert left(square, gateway) == 1


@both
async def test_what_is_over_a_limit_is_not_fetched(square: Square) -> None:
    square.agent, eve = ScriptedAgent(otherwise=names_files), square.platform.person("Eve")
    hers, few = square.platform.dm(eve), Allowance(messages_a_minute=1)
    async with square.open(GatewaySettings(limits=Allowances(person=few, stranger=few))):
        eve.attaches("one.png", b"one", hers)
        await square.hears(hers, 1)
        eve.attaches("two.png", b"two", hers)
        await square.hears(hers, 2)
        assert list(square.platform.shelf.kept.values()) == [b"one"]
