"""Access: who comes in, as whom, and what those hear who don't."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import msgspec
import pytest

from segue.changes.accept import Handled, Queued
from segue.changes.commands.consent import LEFT, Consents
from segue.changes.commands.people import (
    ALREADY,
    ASKED,
    CONFIRM,
    GIVEN,
    HOST_ASKED,
    IN_PRIVATE,
    LINKED,
    PAIRED,
    SHOWN,
    TOLD,
    WELCOME,
    LinkCommand,
)
from segue.changes.commands.request import Answer, Request
from segue.changes.people import grants
from segue.changes.people.access import Access, Pass, Refuse, Verdict
from segue.changes.people.persons import Met
from segue.changes.places.addresses import Homes
from segue.core.commands import Command, Unknown
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Identity, Kind, Lane, Place
from segue.core.messages import Arrival, Speaker, Text
from segue.core.people import Standing
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.values import Moment
from segue.errors import Refusal
from tests.changes.world import Engine, World

HOST, HOST_TOO = Identity("telegram", "bot", "host"), Identity("slack", "team", "H1")
SETTINGS = GatewaySettings(
    hosts=(HOST, HOST_TOO),
    accounts={
        ("telegram", "bot"): AccountSettings(allow=frozenset({"ann"}), allow_groups=frozenset({"club"})),
        ("slack", "team"): AccountSettings(allow=frozenset({"U7"})),
        ("web", "open"): AccountSettings(public=True),
    },
)


class Door:
    """A gateway's door, without the gateway behind it."""

    def __init__(self, world: World, settings: GatewaySettings) -> None:
        self.world = world
        self._dice = 0
        self.access = Access(settings, world.ids, self._randomness)
        consents = Consents(settings.routing.limits, Homes(settings.accounts), world.ids)
        link = LinkCommand(settings, consents, world.ids, self._randomness).link
        self.commands = {"link": link, "yes": consents.yes, "no": consents.no}

    def _randomness(self, size: int) -> bytes:
        self._dice += 1
        return self._dice.to_bytes(size)

    async def knock(self, arrival: Arrival) -> tuple[Verdict, str]:
        """Somebody says something: whether they come in, and what they hear."""
        verdicts: list[Verdict] = []
        answers: list[str] = []

        def judge(
            came: Arrival, command: Command | Unknown | None, met: Met, lane: Lane, at: Moment
        ) -> Transaction[Verdict]:
            verdict = yield from self.access.judge(came, command, met, lane, at)
            verdicts.append(verdict)
            answers.append(verdict.notice or "" if isinstance(verdict, Refuse) else "")
            return verdict

        def run(request: Request) -> Transaction[Answer]:
            if request.command.name in self.commands:
                answer = yield from self.commands[request.command.name](request)
                answers.append(answer.text)
            return Answer()

        self.world.clock.passes(1)
        door = self.world.door(judge, run)
        taken = await self.world.store.driver.write(door.accept, arrival, self.world.fresh(arrival), None)
        assert isinstance(taken, Queued | Handled)
        return verdicts[-1], answers[-1]

    async def say(self, user: str, text: str = "hello", chat: str = "", **more: str) -> tuple[Verdict, str]:
        return await self.knock(said(user, text, chat, **more))

    async def standing(self, user: str, text: str = "hello", chat: str = "", **more: str) -> Standing:
        verdict, _ = await self.say(user, text, chat, **more)
        assert isinstance(verdict, Pass)
        return verdict.standing

    async def hears(self, user: str, text: str = "hello", chat: str = "", **more: str) -> str:
        return (await self.say(user, text, chat, **more))[1]

    async def joins(self, user: str, code: str, **more: str) -> str:
        """Somebody types a code and says yes to what they are asked; returns what they hear then."""
        assert (await self.hears(user, f"/link {code}", **more)).startswith("That code is of ")
        return await self.hears(user, "/yes", **more)

    async def told(self, user: str, account: str = "telegram.bot") -> list[str]:
        """All that was sent to somebody in private without being an answer."""
        key = said(user, "", account=account).place.address.key
        return [
            text for (text, address) in await self.world.raw("select text, address from deliveries") if address == key
        ]

    async def code(self, user: str, text: str = "hello", **more: str) -> str:
        """The code in what somebody hears."""
        return (await self.hears(user, text, **more)).partition("/link ")[2].split()[0]


_numbers = count()


def said(user: str, text: str, chat: str = "", account: str = "telegram.bot", edits: str = "") -> Arrival:
    """What somebody says: in private, unless a chat is named."""
    platform, _, name = account.partition(".")
    place = Place(Address(platform, name, chat=chat or f"with {user}"), Kind.GROUP if chat else Kind.DM)
    speaker = Speaker(Identity(platform, name, user), user.title())
    return Arrival(place, f"m{next(_numbers)}", speaker, (Text(text),), 0.0, edits=edits)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = await World.open(Engine.SQLITE, tmp_path / "segue.db")
    yield made
    await made.close()


@pytest.fixture
def door(world: World) -> Door:
    return Door(world, SETTINGS)


async def test_the_host_comes_in_everywhere(door: Door) -> None:
    assert await door.standing("host") is Standing.HOST
    assert await door.standing("host", chat="elsewhere") is Standing.HOST
    assert await door.standing("H1", account="slack.team") is Standing.HOST


async def test_who_is_named_comes_in_in_private_alone(door: Door) -> None:
    assert await door.standing("ann") is Standing.PARTICIPANT
    assert await door.say("ann", chat="elsewhere") == (Refuse(), "")


async def test_a_group_that_is_named_lets_everybody_in_there_alone(door: Door) -> None:
    assert await door.standing("eve", chat="club") is Standing.PARTICIPANT
    assert isinstance((await door.say("eve"))[0], Refuse)
    assert await door.say("eve", chat="elsewhere") == (Refuse(), "")


async def test_a_name_on_one_account_is_none_on_another(door: Door) -> None:
    assert isinstance((await door.say("ann", account="slack.team"))[0], Refuse)
    assert isinstance((await door.say("U7"))[0], Refuse)


async def test_an_account_without_settings_lets_only_the_host_in(world: World) -> None:
    door = Door(world, GatewaySettings(hosts=(HOST,)))
    assert await door.standing("host") is Standing.HOST
    assert isinstance((await door.say("ann"))[0], Refuse)


async def test_a_public_account_lets_everybody_in_and_makes_nobody_the_host(door: Door) -> None:
    assert await door.standing("eve", account="web.open") is Standing.PARTICIPANT
    assert await door.standing("eve", account="web.open", chat="room") is Standing.PARTICIPANT
    assert (await door.say("eve", "/home", account="web.open"))[0] == Refuse(Refusal.NOT_ALLOWED.value)
    assert await door.standing("eve", "/title x", account="web.open") is Standing.OWNER


async def test_an_account_and_a_place_limit_the_commands_of_strangers(world: World) -> None:
    public = AccountSettings(public=True, allow=frozenset({"ann"}), commands=("new", "help", "agent"))
    accounts = {("telegram", "bot"): public}
    of_lanes = {"telegram.bot:lobby": ("new", "title")}
    door = Door(world, GatewaySettings(hosts=(HOST,), accounts=accounts, commands_of_lanes=of_lanes))
    refused = Refuse(Refusal.NOT_ALLOWED.value)
    for user, line, chat, goes in (
        ("eve", "hello", "", True),
        ("eve", "/new", "", True),
        ("eve", "/reset", "", True),
        ("eve", "/title x", "", False),
        ("eve", "/schedule in 2h x", "", False),
        ("eve", "/yes", "", True),
        ("eve", "/new", "lobby", True),
        ("eve", "/help", "lobby", False),
        ("eve", "/title x", "lobby", False),
        ("ann", "/title x", "", True),
        ("host", "/title x", "lobby", True),
    ):
        verdict, _ = await door.say(user, line, chat)
        assert (verdict != refused) is goes, (user, line, chat)


async def test_a_name_that_looks_like_the_hosts_is_no_name_of_the_hosts(door: Door) -> None:
    impostor = said("eve", "hello")
    speaker = Speaker(impostor.speaker.identity, "host")
    arrival = Arrival(impostor.place, impostor.message, speaker, impostor.parts, 0.0)
    assert isinstance((await door.knock(arrival))[0], Refuse)


async def test_an_alias_counts_as_a_name(door: Door) -> None:
    known = said("+4915", "hello")
    for alias, standing in (("ann", Standing.PARTICIPANT), ("host", Standing.HOST)):
        speaker = Speaker(Identity("telegram", "bot", f"uuid of {alias}"), "", (alias,))
        arrival = Arrival(known.place, f"by {alias}", speaker, known.parts, 0.0)
        verdict, _ = await door.knock(arrival)
        assert isinstance(verdict, Pass)
        assert verdict.standing is standing
    assert await door.world.count("persons") == 2
    host = await door.world.store.person(HOST_TOO)
    assert HOST in await door.world.store.identities(host), "whichever of their names they were met by"


async def test_in_a_shared_thread_the_one_who_began_owns_it(door: Door, world: World) -> None:
    place = Place(Address("telegram", "bot", chat="club", thread="t1"), Kind.GROUP)

    async def says(user: str, text: str) -> Verdict:
        speaker = Speaker(Identity("telegram", "bot", user), user)
        arrival = Arrival(place, f"m{next(_numbers)}", speaker, (Text(text),), 0.0)
        return (await door.knock(arrival))[0]

    assert await says("ann", "hello") == Pass(Standing.PARTICIPANT)
    assert await says("ann", "/title x") == Pass(Standing.OWNER)
    assert await says("bob", "hello") == Pass(Standing.PARTICIPANT)
    assert await says("bob", "/new") == Pass(Standing.PARTICIPANT)
    assert await says("bob", "/title x") == Refuse(Refusal.NOT_ALLOWED.value)
    assert await says("host", "/title x") == Pass(Standing.HOST, SETTINGS.limits.host)


@pytest.mark.parametrize(
    "text", ["hello", "/new", "/title x", "/search x", "/link", "/link ABCD", "/help", "/nonsense"]
)
async def test_a_stranger_in_a_group_hears_nothing_whatever_they_say(door: Door, text: str) -> None:
    assert await door.say("eve", text, chat="elsewhere") == (Refuse(), "")


@pytest.mark.parametrize("text", ["hello", "/new", "/title x", "/search x", "/link", "/help", "/nonsense"])
async def test_a_stranger_in_private_hears_the_same_whatever_they_say(door: Door, world: World, text: str) -> None:
    heard = await door.hears("eve", text)
    assert heard.startswith("I only talk to people whom my host knows.")
    assert await door.say("eve", text) == (Refuse(), ""), "once in ten minutes"
    assert await world.count("sessions") == 0
    world.clock.passes(600)
    assert (await door.hears("eve", text)).startswith("I only talk")


async def test_an_edit_doesnt_slip_in(door: Door) -> None:
    assert await door.say("eve", "hello", chat="elsewhere", edits="m1") == (Refuse(), "")


async def test_where_nobody_could_use_a_code_none_is_given(world: World) -> None:
    door = Door(world, GatewaySettings())
    assert await door.say("eve") == (Refuse(), "")
    assert await world.count("codes") == 0


async def test_the_host_lets_a_stranger_in_by_their_code(door: Door, world: World) -> None:
    code = await door.code("eve")
    assert await door.hears("host", f"/link {code.lower()}") == PAIRED.format(name="Eve")
    assert await door.standing("eve") is Standing.OWNER
    assert await door.say("eve", chat="elsewhere") == (Refuse(), ""), "in private alone"
    assert isinstance((await door.say("eve", account="slack.team"))[0], Refuse)
    sent = await world.raw("select text, address from deliveries")
    assert sent[-1] == (WELCOME, said("eve", "").place.address.key)


async def test_a_code_of_a_stranger_works_once_and_for_the_host_alone(door: Door) -> None:
    code = await door.code("eve")
    assert await door.hears("ann", f"/link {code}") == Refusal.WRONG_CODE.value
    assert await door.hears("eve", f"/link {code}") == Refusal.WRONG_CODE.value
    assert await door.hears("H1", f"/link {code}", account="slack.team") == PAIRED.format(name="Eve")
    assert await door.hears("host", f"/link {code}") == Refusal.WRONG_CODE.value


async def test_what_was_revoked_makes_a_stranger_of_them_again(door: Door, world: World) -> None:
    await door.hears("host", f"/link {await door.code('eve')}")
    assert await door.standing("eve") is Standing.OWNER
    eve = await world.person("eve")
    await world.store.driver.write(grants.revoke, "telegram/bot", eve.id, grants.Scope.DM, eve.id, world.clock())
    assert isinstance((await door.say("eve"))[0], Refuse)


async def test_the_host_joins_another_account_by_a_code_of_their_own(door: Door, world: World) -> None:
    code = await door.code("host", "/link")
    assert await door.joins("eve", code) == CONFIRM
    assert isinstance((await door.say("eve", "/home"))[0], Refuse), "not before the host's own yes"
    assert await door.told("host") == [HOST_ASKED.format(other="Eve (telegram.bot/eve)")]
    assert await door.hears("host", "/yes") == LINKED
    assert (await door.told("eve"))[-1] == LINKED
    assert await door.standing("eve", "/home") is Standing.HOST
    assert await door.standing("eve", "/home", chat="elsewhere") is Standing.HOST
    assert await door.hears("eve", f"/link {code}") == Refusal.WRONG_CODE.value


async def test_nobody_becomes_the_host_by_getting_them_to_type_a_code(door: Door, world: World) -> None:
    code = await door.code("ann", "/link")
    assert await door.hears("host", f"/link {code}") == Refusal.WRONG_CODE.value
    assert await world.count("merges") == 0
    assert await door.standing("ann", "/title x") is Standing.OWNER


async def test_who_is_known_takes_their_welcome_along_in_private(door: Door, world: World) -> None:
    code = await door.code("ann", "/link")
    assert await door.hears("U9", f"/link {code}", account="slack.team") == ASKED.format(other="Ann (telegram.bot/ann)")
    assert await world.count("merges") == 0
    assert await door.hears("U9", "/yes", account="slack.team") == LINKED
    assert await door.told("ann") == [TOLD.format(other="U9 (slack.team/U9)")]
    assert await door.standing("U9", account="slack.team") is Standing.OWNER
    assert await door.say("U9", account="slack.team", chat="elsewhere") == (Refuse(), "")
    ann = await world.store.person(Identity("telegram", "bot", "ann"))
    assert Identity("slack", "team", "U9") in await world.store.identities(ann)
    again = await door.code("ann", "/link")
    assert await door.hears("U9", f"/link {again}", account="slack.team") == ALREADY


@pytest.mark.parametrize("first", ["ann", "U9"])
async def test_who_is_parted_again_is_a_stranger_again(door: Door, world: World, first: str) -> None:
    await door.say(first, account="telegram.bot" if first == "ann" else "slack.team")
    code = await door.code("ann", "/link")
    await door.joins("U9", code, account="slack.team")
    assert await door.standing("U9", account="slack.team") is Standing.OWNER
    [merge] = await world.store.merges(await world.store.person(Identity("slack", "team", "U9")))
    await world.store.unlink(merge)
    assert isinstance((await door.say("U9", account="slack.team"))[0], Refuse)


async def test_who_is_known_nowhere_but_in_public_isnt_let_in_elsewhere_by_a_code(door: Door, world: World) -> None:
    code = await door.code("eve", "/link", account="web.open")
    assert await door.joins("eve", code) == LINKED
    assert isinstance((await door.say("eve"))[0], Refuse)
    assert await world.count("merges") == 1


async def test_a_code_isnt_shown_where_others_read_it(door: Door, world: World) -> None:
    assert await door.hears("host", "/link", chat="club") == IN_PRIVATE
    assert await door.hears("ann", "/link", chat="club") == IN_PRIVATE
    assert await world.count("codes") == 0


async def test_a_start_link_makes_nobody_anybody(door: Door, world: World) -> None:
    for user, typed in (("eve", "ann"), ("ann", "host"), ("host", "bob")):
        code = await door.code(typed, "/link" if typed != "bob" else "hello")
        assert await door.hears(user, f"/start {code}") == Refusal.WRONG_CODE.value
        assert await door.hears(user, "/yes") != LINKED
    assert await world.count("merges") == 0


@pytest.mark.parametrize(("user", "heard"), [("ann", SHOWN), ("host", SHOWN), ("eve", "")])
async def test_a_code_that_others_could_read_is_used_up_whoever_showed_it(door: Door, user: str, heard: str) -> None:
    code = await door.code("ann", "/link")
    chat = "club" if user != "eve" else "elsewhere"
    assert await door.hears(user, f"/link {code}", chat=chat) == heard
    assert await door.hears("U7", f"/link {code}", account="slack.team") == Refusal.WRONG_CODE.value


async def test_a_code_of_the_hosts_typed_in_a_group_makes_nobody_the_host(door: Door, world: World) -> None:
    code = await door.code("host", "/link")
    assert await door.hears("ann", f"/link {code}", chat="club") == SHOWN
    assert await door.hears("ann", f"/link {code}") == Refusal.WRONG_CODE.value
    assert await world.count("merges") == 0


async def test_who_says_no_or_nothing_stays_who_they_are(door: Door, world: World) -> None:
    code = await door.code("ann", "/link")
    await door.hears("U7", f"/link {code}", account="slack.team")
    assert await door.hears("U7", "/no", account="slack.team") == LEFT
    assert await door.hears("U7", f"/link {code}", account="slack.team") == Refusal.WRONG_CODE.value, "it works once"
    again = await door.code("ann", "/link")
    await door.hears("U7", f"/link {again}", account="slack.team")
    world.clock.passes(301)
    assert await door.hears("U7", "/yes", account="slack.team") != LINKED
    assert await world.count("merges") == 0


async def test_the_hosts_no_keeps_everybody_else_from_being_the_host(door: Door, world: World) -> None:
    await door.joins("ann", await door.code("host", "/link"))
    assert await door.hears("host", "/no") == LEFT
    assert await door.hears("host", "/yes") != LINKED
    assert await world.count("merges") == 0
    await door.joins("ann", await door.code("host", "/link"))
    assert await door.hears("ann", "/yes") != LINKED, "nobody says it for the host"
    assert await door.hears("H1", "/yes", account="slack.team") != LINKED, "nor in another place than the code's"
    assert await world.count("merges") == 0


@pytest.mark.parametrize("wrong", ["CCCC-CCCC", "nonsense", "x" * 5000, "\U0001f600", "used", "old", "a stranger's"])
async def test_all_codes_that_dont_work_sound_the_same(door: Door, world: World, wrong: str) -> None:
    if wrong == "used":
        wrong = await door.code("host", "/link")
        await door.hears("bob", f"/link {wrong}")
        await door.hears("bob", "/no")
    elif wrong == "old":
        wrong = await door.code("host", "/link")
        world.clock.passes(600)
    elif wrong == "a stranger's":
        wrong = await door.code("bob")
    assert await door.hears("eve", f"/link {wrong}") == Refusal.WRONG_CODE.value


async def test_guessing_has_an_end(door: Door, world: World) -> None:
    code = await door.code("host", "/link")
    for user in ("eve", "ann"):
        for number in range(5):
            assert await door.hears(user, f"/link guess{number}") == Refusal.WRONG_CODE.value
    assert await door.hears("eve", f"/link {code}") == "", "a stranger hears nothing more"
    assert await door.hears("ann", f"/link {code}") == Refusal.TOO_MANY_TRIES.value
    assert await world.count("merges") == 0


async def test_a_code_reads_as_it_was_promised(door: Door) -> None:
    heard = await door.hears("ann", "/link")
    assert heard == GIVEN.format(code=heard.partition("/link ")[2].split()[0])


async def test_the_hosts_identities_are_one_person_from_the_first_word(door: Door, world: World) -> None:
    await door.say("host")
    await door.say("H1", account="slack.team")
    assert await world.count("persons") == 1
    host = await world.store.person(HOST)
    assert set(await world.store.identities(host)) == {HOST, HOST_TOO}


async def test_who_was_somebody_else_before_the_settings_said_so_is_the_host_from_the_start_on(world: World) -> None:
    before = Door(world, GatewaySettings(hosts=(HOST,), accounts={("slack", "team"): AccountSettings(public=True)}))
    await before.say("host")
    await before.say("H1", account="slack.team")
    assert await world.count("persons") == 2
    door = Door(world, SETTINGS)
    await world.store.driver.write(grants.unite, SETTINGS.hosts, ["merge"], world.clock.passes(1))
    assert (await world.store.person(HOST)).id == (await world.store.person(HOST_TOO)).id
    assert await world.count("merges") == 1
    assert await door.standing("H1", "/home", account="slack.team") is Standing.HOST


async def test_whoever_is_blocked_is_refused_whatever_else_lets_them_in(door: Door, world: World) -> None:
    assert await door.standing("ann") is Standing.PARTICIPANT
    ann = await world.store.person(Identity("telegram", "bot", "ann"))
    await world.store.driver.write(grants.block, ann.id, ann.id, world.clock())
    for text in ("hello", "/link", "/new"):
        assert await door.say("ann", text) == (Refuse(), "")
    assert await door.say("ann", chat="club") == (Refuse(), "")
    await world.store.driver.write(grants.unblock, ann.id, ann.id, world.clock())
    assert await door.standing("ann") is Standing.PARTICIPANT


@pytest.mark.parametrize("lifted", [False, True], ids=["blocked", "let in again"])
async def test_a_block_outlives_a_merge(door: Door, world: World, *, lifted: bool) -> None:
    await door.say("ann")
    await door.say("U7", account="slack.team")
    ann = await world.store.person(Identity("telegram", "bot", "ann"))
    other = await world.store.person(Identity("slack", "team", "U7"))
    await world.store.driver.write(grants.block, other.id, ann.id, world.clock())
    if lifted:
        await world.store.driver.write(grants.unblock, other.id, ann.id, world.clock())
    await world.store.link(ann, other)
    assert (await door.say("ann") == (Refuse(), "")) is not lifted


@pytest.mark.parametrize(
    ("user", "account", "chat", "may"),
    [
        ("host", "telegram.bot", "elsewhere", True),
        ("ann", "telegram.bot", "", True),
        ("ann", "telegram.bot", "club", True),
        ("ann", "telegram.bot", "elsewhere", False),
        ("eve", "web.open", "", True),
        ("eve", "telegram.bot", "", False),
    ],
)
async def test_work_that_is_due_passes_the_same_gate(
    door: Door, world: World, user: str, account: str, chat: str, *, may: bool
) -> None:
    arrival = said(user, "hello", chat, account)
    await door.knock(arrival)
    person = await world.store.person(arrival.speaker.identity)
    assert await world.store.driver.read(door.access.still, person.id, arrival.place) is may
    if user == "ann":
        await world.store.driver.write(grants.block, person.id, person.id, world.clock())
        assert not await world.store.driver.read(door.access.still, person.id, arrival.place)


async def test_what_a_grant_let_run_stops_with_it(door: Door, world: World) -> None:
    await door.hears("host", f"/link {await door.code('eve')}")
    eve, place = await world.person("eve"), said("eve", "").place
    assert await world.store.driver.read(door.access.still, eve.id, place)
    await world.store.driver.write(grants.revoke_all, eve.id, eve.id, Access(SETTINGS, world.ids).still, world.clock())
    assert not await world.store.driver.read(door.access.still, eve.id, place)


async def test_a_thread_that_is_a_chat_itself_belongs_to_the_group_around_it(door: Door) -> None:
    thread = Address("telegram", "bot", chat="t9", thread="t9")
    for parent in ("club", "elsewhere"):
        place = Place(thread, Kind.GROUP, parent=Address("telegram", "bot", chat=parent))
        verdict, _ = await door.knock(msgspec.structs.replace(said("eve", "hello", "t9"), place=place))
        assert isinstance(verdict, Pass) is (parent == "club")
