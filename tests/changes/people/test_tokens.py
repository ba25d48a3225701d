"""Tokens of people: what counts, for what and until when; and everything that ends one."""

import pytest

from segue.changes import audit
from segue.changes.audit import Event
from segue.changes.forgetting import erasure
from segue.changes.forgetting.erasure import Cause, Reason
from segue.changes.people import grants, persons, tokens
from segue.changes.people.access import Access
from segue.changes.people.grants import Scope
from segue.changes.people.tokens import Bearer, Token, TokenScope
from segue.core.lanes import Address, Identity, Kind, Person, Place, account_key
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.values import PersonId, SessionId
from segue.core.windows import ACCOUNT, EDITOR
from segue.errors import Invalid, Refusal, Refused
from segue.runtime.retrying import Patient
from segue.runtime.server.tokens import Tokens
from tests.changes.world import World, of_the_test

DAY = 86400.0
OPEN = GatewaySettings(accounts={("telegram", "bot"): AccountSettings(public=True)})
STILL = Access(OPEN, str).still


async def given(
    world: World, person: Person, words: str, scope: TokenScope = TokenScope.MCP, session: SessionId | None = None
) -> Token:
    """A token of a person's for ten days."""
    at = world.clock()
    token = Token(f"id-{words}", person.id, scope, session, f"for {words}", at, at + 10 * DAY, None, None)
    return await world.store.driver.write(tokens.create, token, tokens.digest(words), person.id, at)


async def shown(world: World, words: str, scope: TokenScope = TokenScope.MCP) -> PersonId | Refusal:
    found = await world.store.driver.read(tokens.person_of, words, scope, STILL, world.clock())
    return found.person.id if isinstance(found, Bearer) else found


async def test_a_token_counts_for_its_scope_until_its_end_and_is_kept_as_a_digest(world: World) -> None:
    ann = await world.person("ann")
    await given(world, ann, "secret")
    assert await shown(world, "secret") == ann.id
    assert await shown(world, "Secret") is Refusal.BEARER_UNKNOWN
    assert await shown(world, "secret", TokenScope.API) is Refusal.BEARER_ELSEWHERE
    assert "secret" not in str([row[:2] for row in await world.raw("select digest, person from tokens")])
    world.clock.passes(10 * DAY)
    assert await shown(world, "secret") is Refusal.BEARER_ENDED
    await world.store.driver.write(tokens.forget, world.clock.passes(29 * DAY))
    assert len(of_the_test(await world.store.driver.read(tokens.listed))) == 1
    await world.store.driver.write(tokens.forget, world.clock.passes(2 * DAY))
    assert of_the_test(await world.store.driver.read(tokens.listed)) == []


async def test_all_that_ends_a_token(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    write = world.store.driver.write
    first, second = await given(world, bob, "one"), await given(world, bob, "two")
    await write(tokens.revoke, first.id, ann.id, world.clock.passes(1))
    assert (await shown(world, "one"), await shown(world, "two")) == (Refusal.BEARER_REVOKED, bob.id)
    with pytest.raises(Invalid, match="none goes by"):
        await write(tokens.revoke, "nothing", ann.id, world.clock())
    await write(grants.block, bob.id, ann.id, world.clock())
    assert await shown(world, "two") is Refusal.BEARER_BLOCKED
    await write(grants.unblock, bob.id, ann.id, world.clock())
    await write(grants.revoke_all, bob.id, ann.id, STILL, world.clock())
    assert await shown(world, "two") is Refusal.BEARER_REVOKED
    facts = await world.store.driver.read(audit.newest, 100, bob.id)
    events = [(noted.fact.event, noted.fact.detail) for noted in facts]
    assert events[0] == (Event.REVOKED, f"token {second.id}, mcp")
    assert events[-1] == (Event.BEARER, f"{first.id}, mcp")


@pytest.mark.parametrize(
    ("account", "way"),
    [
        (AccountSettings(public=True), "public"),
        (AccountSettings(allow=frozenset({"ann"})), "named"),
        (AccountSettings(), "granted"),
        (AccountSettings(allow=frozenset({"bob"}), allow_groups=frozenset({"club"})), ""),
    ],
)
async def test_a_token_counts_while_its_person_may_talk_in_some_way(
    world: World, account: AccountSettings, way: str
) -> None:
    ann = await world.person("ann")
    await given(world, ann, "hers")
    if way == "granted":
        key = account_key("telegram", "bot")
        await world.store.driver.write(grants.grant, key, ann.id, Scope.DM, "test", ann.id, world.clock())
    # An editor's own account is open to whoever has a token: that is no way in of its own.
    await world.store.driver.write(persons.give, Identity(EDITOR, ACCOUNT, ann.id), ann.id, world.clock())
    accounts = {("telegram", "bot"): account, (EDITOR, ACCOUNT): AccountSettings(public=True)}
    still = Access(GatewaySettings(accounts=accounts), world.ids).still
    found = await world.store.driver.read(tokens.person_of, "hers", TokenScope.MCP, still, world.clock())
    assert isinstance(found, Bearer) if way else found is Refusal.BEARER_BLOCKED
    place = Place(Address(EDITOR, ACCOUNT, chat="window"), Kind.DM)
    assert await world.store.driver.read(still, ann.id, place) is bool(way)


async def test_who_is_forgotten_has_no_token_left_and_a_forgotten_session_none_of_its_own(world: World) -> None:
    ann = await world.person("ann")
    session = await world.renew(await world.dm(ann), ann, "hello")
    await given(world, ann, "hers")
    await given(world, ann, "its", session=session)
    reason = Reason(ann.id, Cause.HOST, world.clock.passes(1))
    await world.store.driver.write(erasure.session, session, reason)
    assert (await shown(world, "its"), await shown(world, "hers")) == (Refusal.BEARER_REVOKED, ann.id)
    await world.store.driver.write(erasure.person_end, ann.id, reason)
    assert await shown(world, "hers") is Refusal.BEARER_REVOKED
    assert {token.name for token in of_the_test(await world.store.driver.read(tokens.listed))} == {""}


async def test_a_token_follows_its_person_through_a_merge_and_back(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await given(world, bob, "bobs")
    merge = await world.store.link(ann, bob)
    assert await shown(world, "bobs") == ann.id
    assert [token.id for token in await world.store.driver.read(tokens.of, ann.id)] == ["id-bobs"]
    await world.store.unlink(merge)
    assert await shown(world, "bobs") == bob.id


async def test_tokens_that_dont_count_are_written_down_and_limited_and_one_that_counts_always_does(
    world: World,
) -> None:
    ann = await world.person("ann")
    await given(world, ann, "right")
    server = Tokens(Patient(world.store.driver), STILL, world.clock)
    for _ in range(5):
        with pytest.raises(Refused, match="isn't known here"):
            await server.person_of("guess", TokenScope.MCP, "10.0.0.9")
    with pytest.raises(Refused, match="Too many tokens"):
        await server.person_of("guess", TokenScope.MCP, "10.0.0.9")
    assert (await server.person_of("right", TokenScope.MCP, "10.0.0.9")).person.id == ann.id
    with pytest.raises(Refused, match="for something else"):
        await server.person_of("right", TokenScope.ACP, "10.0.0.8")
    facts = await world.store.driver.read(audit.newest, 100)
    refused = [(noted.fact.person, noted.count) for noted in facts if noted.fact.event is Event.REFUSED]
    assert refused == [(ann.id, 1), ("", 5)]
    [token] = of_the_test(await world.store.driver.read(tokens.listed))
    assert token.used == world.clock()
    world.clock.passes(600.0)
    with pytest.raises(Refused, match="isn't known here"):
        await server.person_of("guess", TokenScope.MCP, "10.0.0.9")
