"""Limits: one person has so much and no more, is told so once a minute, and keeps nobody else from anything."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from segue.adapters.http import Http
from segue.changes.people import grants, persons
from segue.changes.people.grants import Scope
from segue.core.contracts.agents import Work
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity
from segue.core.messages import Speaker, plain_text
from segue.core.people import UNBOUNDED, Allowance, Allowances, Limit
from segue.core.settings import GatewaySettings
from segue.core.values import Moment, PersonId, Secret
from segue.errors import Overloaded
from segue.runtime.gateway import Gateway
from segue.runtime.inbox import WAIT
from segue.testing import HandClock, Shelf, To
from segue.testing.agents import EchoAgent, Pause, ScriptedAgent
from segue.testing.asgi import Answer, post
from tests.adapters.platform import signed
from tests.changes.world import Engine, raw_sql
from tests.in_process import gateway_on
from tests.runtime.telemetry.test_metrics import figure
from tests.runtime.test_poison import arrival
from tests.stories.square import Square, both, recalls

SMALL = Allowances(
    person=Allowance(messages_a_minute=6, waiting=4, open_sessions=3, bytes=2_000, schedules=2),
    stranger=Allowance(3, 2, 2, 1_000, 1, 900.0, 1, 1),
)
SETTINGS = GatewaySettings(limits=SMALL)


def let_in(identity: Identity, at: Moment) -> Transaction[None]:
    met = yield from persons.meet(Speaker(identity), PersonId("nobody"), (), at)
    yield from grants.grant("elsewhere", met.person.id, Scope.DM, "test", met.person.id, at)


@both
async def test_who_writes_too_much_is_told_once_a_minute_and_heard_again_after_it(square: Square) -> None:
    eve = square.platform.person("Eve")
    hers = square.platform.dm(eve)
    async with square.open(SETTINGS) as gateway:
        for n in range(3):
            assert await square.says(f"message {n}", who=eve, where=hers) == f"You said: message {n}"
        assert await square.says("too much", who=eve, where=hers) == Limit.MESSAGES.value
        for n in range(3):
            eve.says(f"and more {n}", hers)
        for n in range(7):
            assert await square.says(f"the host's {n}") == f"You said: the host's {n}"
        await square.platform.settles()
        assert len(hers.replies) == 4
        account = {"platform": square.platform.name, "account": square.platform.account}
        assert figure(gateway.metrics, "segue_refusals_total", **account, limit="messages") == 4
        square.passes(60.0)
        assert await square.says("a minute later", who=eve, where=hers) == "You said: a minute later"


@both
async def test_commands_are_messages_and_whom_the_host_let_in_may_send_more(square: Square) -> None:
    eve = square.platform.person("Eve")
    hers = square.platform.dm(eve)
    async with square.open(SETTINGS):
        for _ in range(3):
            await square.says("/help", who=eve, where=hers)
        assert await square.says("/help", who=eve, where=hers) == Limit.MESSAGES.value
        await square.store.driver.write(let_in, eve.identity, square.clock())
        square.passes(60.0)
        for n in range(6):
            assert await square.says(f"known {n}", who=eve, where=hers) == f"You said: known {n}"
        assert await square.says("too much", who=eve, where=hers) == Limit.MESSAGES.value


@both
async def test_what_waits_is_limited_never_dropped_and_commands_still_work(square: Square) -> None:
    eve = square.platform.person("Eve")
    hers = square.platform.dm(eve)
    pause = Pause()

    def slow(work: Work) -> list[object]:
        return [pause, *recalls(work)]

    square.agent = ScriptedAgent(otherwise=slow)  # type: ignore[arg-type]
    async with square.open(SETTINGS):
        eve.says("first", hers)
        await pause.reached()
        square.passes(61.0)
        eve.says("second", hers)
        await square.platform.settles()
        square.passes(61.0)
        assert await square.says("third", who=eve, where=hers) == Limit.WAITING.value
        assert "/stop" in await square.says("/help", who=eve, where=hers)
        pause.over()
        await hers.reads("You said: first")
        await hers.reads("You said: second")


@both
async def test_bytes_are_limited_for_the_host_too(square: Square) -> None:
    async with square.open(SETTINGS):
        await square.says("x" * 1_500)
        assert await square.says("y" * 1_500) == Limit.BYTES.value
        assert await square.says("y" * 100) == "You said: " + "y" * 100


@both
async def test_all_strangers_of_an_account_together_have_so_many_bytes_a_day(square: Square) -> None:
    people = [square.platform.person(f"Eve {n}") for n in range(3)]
    limits = replace(SMALL, stranger=replace(SMALL.stranger, bytes=10_000), account_day=2_500)
    async with square.open(GatewaySettings(limits=limits)):
        for n, eve in enumerate(people[:2]):
            assert (
                await square.says("x" * 1_000, who=eve, where=square.platform.dm(eve)) == "You said: " + "x" * 1_000
            ), n
        last, theirs = people[2], square.platform.dm(people[2])
        assert await square.says("y" * 1_000, who=last, where=theirs) == Limit.ACCOUNT.value
        assert "/stop" in await square.says("/help", who=last, where=theirs)
        assert await square.says("z" * 1_000) == "You said: " + "z" * 1_000, "the host is none of them"
        square.passes(86_401.0)
        assert await square.says("tomorrow" * 100, who=last, where=theirs) == "You said: " + "tomorrow" * 100


@both
async def test_over_its_limit_the_longest_unused_session_is_closed_and_can_be_resumed(square: Square) -> None:
    eve = square.platform.person("Eve")
    hers = square.platform.dm(eve)
    async with square.open(SETTINGS):
        for n in range(3):
            await square.says(f"session {n}", who=eve, where=hers)
            square.passes(61.0)
            await square.says(f"/title talk {n}", who=eve, where=hers)
            await square.says("/new", who=eve, where=hers)
            square.passes(61.0)
        person = await square.store.person(eve.identity)

        async def closed() -> list[str]:
            return sorted(s.title for s in await square.store.sessions(person) if s.closed is not None)

        async with asyncio.timeout(90):
            while await closed() != ["talk 0", "talk 1"]:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
        assert "talk 0" in await square.says("/resume talk 0", who=eve, where=hers)
        square.passes(61.0)
        assert await square.says("again", who=eve, where=hers) == "You said: again"
        assert (await square.session(hers)).title == "talk 0"


@both
async def test_a_stranger_schedules_less_and_less_often(square: Square) -> None:
    eve = square.platform.person("Eve")
    hers = square.platform.dm(eve)
    async with square.open(SETTINGS):
        await square.says("hello", who=eve, where=hers)
        often = await square.says("/schedule every 5 minutes ping", who=eve, where=hers)
        assert "more often than every 15 minutes" in often
        square.passes(61.0)
        assert "Scheduled" in await square.says("/schedule every 30 minutes ping", who=eve, where=hers)
        assert "Cancel one first" in await square.says("/schedule every 30 minutes pong", who=eve, where=hers)
        await square.says("hello")
        assert "Scheduled" in await square.says("/schedule every 5 minutes ping")


@both
async def test_one_person_takes_a_quarter_of_the_slots_however_many_turns_hang(square: Square) -> None:
    hanging = Pause()

    def hang(work: Work) -> list[object]:
        return [hanging] if "hang" in plain_text(work.asked[-1].parts) else list(recalls(work))

    square.agent = ScriptedAgent(otherwise=hang)  # type: ignore[arg-type]
    platform = square.platform
    eve, bob = platform.person("Eve"), platform.person("Bob")
    async with square.open(GatewaySettings(slots=8, limits=UNBOUNDED)) as gateway:
        for n in range(20):
            eve.says(f"hang {n}", platform.group(f"club {n}"), to=To.AGENT)
        await platform.settles()
        await hanging.reached()
        assert await square.says("and I?", who=bob, where=platform.dm(bob)) == "You said: and I?"
        await running(gateway, 2)
        # Other hogs take all that isn't kept for the host, and the host is served all the same.
        for other in range(4):
            hog = platform.person(f"hog {other}")
            for n in range(4):
                hog.says(f"hang {n}", platform.group(f"sty {other} {n}"), to=To.AGENT)
        await platform.settles()
        assert await square.says("and the host?") == "You said: and the host?"
        await running(gateway, 6)
        hanging.over()


@both
async def test_while_all_slots_are_taken_whoever_waits_is_told_and_more_is_refused(square: Square) -> None:
    hanging = Pause()

    def hang(work: Work) -> list[object]:
        return [hanging, *recalls(work)] if "hang" in plain_text(work.asked[-1].parts) else list(recalls(work))

    square.agent = ScriptedAgent(otherwise=hang)  # type: ignore[arg-type]
    platform = square.platform
    cat, dan = platform.person("Cat"), platform.person("Dan")
    hers, his = platform.dm(cat), platform.dm(dan)
    engine = Engine.POSTGRES if square.where.startswith("postgresql://") else Engine.SQLITE
    async with square.open(GatewaySettings(slots=4, limits=UNBOUNDED, overload=3600.0)) as gateway:
        raw = await raw_sql(engine, square.where)
        for n in range(3):
            hog = platform.person(f"hog {n}")
            hog.says("hang", platform.dm(hog))
        await running(gateway, 3)
        cat.says("hello", hers)
        await platform.settles()
        assert hers.replies == [], "so far nobody has waited long"
        await raw("update sessions set due = due - 1800 where head < tail and holder is null")
        await behind(gateway, 1800.0)
        assert await square.says("and I?", who=dan, where=his) == WAIT
        dan.says("and now?", his)
        await platform.settles()
        assert his.replies == [WAIT], "once a minute"
        await raw("update sessions set due = due - 1801 where head < tail and holder is null")
        await behind(gateway, 3600.0)
        with pytest.raises(Overloaded):
            await gateway.accept(arrival(platform, 9, "one too many"))
        assert gateway.problems() == ["More comes in than can be done: messages are refused until answers catch up."]
        assert await square.says("and the host?") == "You said: and the host?"
        hanging.over()
        assert await square.hears(hers, 1) == ["You said: hello"]
        assert await square.hears(his, 2) == [WAIT, "You said: and I? + and now?"]
        await raw.close()


async def behind(gateway: Gateway, seconds: float) -> None:
    """Wait until sessions have waited for so long, and looks at the database leave it at that."""
    async with asyncio.timeout(90):
        while gateway._turns.lag < seconds:  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.01)


async def running(gateway: Gateway, count: int) -> None:
    """Wait until so many turns run, and no more."""
    async with asyncio.timeout(90):
        while gateway._turns.running != count:  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.01)


async def test_over_http_it_is_429_with_a_time_and_the_same_message_may_come_again(tmp_path: Path) -> None:
    http = Http("alpha", Secret("secret"), "http://127.0.0.1:9/", Shelf())
    clock = HandClock(time.time())
    async with gateway_on(tmp_path, EchoAgent(), http, limits=SMALL, clock=clock) as gateway:
        [(path, app)] = gateway.webhooks()

        async def says(number: int) -> Answer:
            said = {"id": f"m{number}", "chat": "c", "chat_kind": "dm", "person": {"id": "eve"}, "text": "/help"}
            body = json.dumps(said).encode()
            return await post(app, path, body, signed("secret", body, time.time()))

        assert [(await says(n)).status for n in range(3)] == [202, 202, 202]
        refused = await says(3)
        assert (refused.status, refused.headers["retry-after"]) == (429, "60")
        clock.passes(61.0)
        assert (await says(3)).status == 202
        assert (await says(3)).status == 200
    await http.close()
