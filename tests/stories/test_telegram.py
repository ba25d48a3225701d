"""Conversations on Telegram, end to end: a real gateway, and crabline for Telegram."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue import open_store
from segue.adapters.telegram import Telegram
from segue.cli.codes import qr
from segue.core.contracts import Agent
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.secret import Secret
from segue.runtime.gateway import Gateway
from segue.runtime.linking import LINKED
from segue.runtime.settings import AccountSettings, GatewaySettings, Mentions
from segue.testing import EchoAgent, Pause, ScriptedAgent, Shelf
from tests.cli.screens import terminal
from tests.contracts.test_telegram import BRISK
from tests.served import PATIENCE, Served
from tests.servers.crabline import BOT, TOKEN, Between, free_port, refusal, telegram

ANN, BEN = Address("telegram", "bot", "", "501"), Address("telegram", "bot", "", "502")


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[tuple[Between, str]]:
    async with telegram(tmp_path) as (between, url):
        yield between, url


@asynccontextmanager
async def running(path: Path, url: str, agent: Agent, mentions: Mentions = Mentions.OPTIONAL) -> AsyncIterator[Gateway]:
    """A gateway on Telegram alone."""
    account = AccountSettings(public=True, mentions=mentions)
    settings = GatewaySettings(accounts={("telegram", "bot"): account}, poll=0.05, grace=0.1)
    adapter = Telegram("bot", Secret(TOKEN), Shelf(), url, pace=BRISK)
    async with await open_store(path / "segue.db") as store, Gateway(store, agent, [adapter], settings) as gateway:
        yield gateway
    await adapter.close()


@asynccontextmanager
async def serving(home: Path, url: str, webhook: str = "", who: str = "public = true") -> AsyncIterator[Served]:
    """`segue serve` with the built-in agent on Telegram."""
    (home / "token").write_text(TOKEN)
    called = f'webhook = "{webhook}"\n' if webhook else ""
    file = f'[telegram.bot]\ntoken = "file:token"\napi = "{url}"\n{who}\n{called}'
    (home / "segue.toml").write_text(file)
    gateway = Served(home)
    gateway.url = webhook
    try:
        await gateway.start()
        yield gateway
    finally:
        await gateway.end()


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not so():  # noqa: ASYNC110 -- neither the process nor its log tells when
            await asyncio.sleep(0.01)


def texts(between: Between, at: Address) -> list[str]:
    return [seen.text for seen in between.read(at)]


def lines(between: Between, at: Address) -> list[str]:
    """What was said, whether in one message or in several: what waits together is answered together."""
    return "\n\n".join(texts(between, at)).split("\n\n")


async def test_what_is_said_is_answered_and_the_menu_is_there(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    async with running(tmp_path, url, EchoAgent()) as gateway:
        await between.says("501", "hello")
        await between.shows(ANN, "hello")
        await between.says("501", "/status")
        await until(lambda: len(texts(between, ANN)) == 2)
        known = [spec.name for spec in gateway.commands]
    menu = next(json.loads(body["commands"]) for method, body in between.calls if method == "setMyCommands")
    assert [entry["command"] for entry in menu] == known
    assert "sendChatAction" in [method for method, _ in between.calls]


async def test_a_reply_grows_in_one_message(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    pause = Pause()
    async with running(tmp_path, url, ScriptedAgent(["Once ", pause, "**upon** a time"])):
        await between.says("501", "tell me")
        await pause.reached()
        await between.shows(ANN, "Once")
        pause.over()
        await between.shows(ANN, "Once upon a time")
    assert len(texts(between, ANN)) == 1


async def test_a_topic_is_a_conversation_of_its_own(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    forum = await between.forum()
    adapter = Telegram("bot", Secret(TOKEN), Shelf(), url, pace=BRISK)
    general = Address("telegram", "bot", "", forum)
    topics = [await adapter.open_thread(general, title, title) for title in ("Plans", "Cake")]
    private = await adapter.open_thread(ANN, "Plans", "private")
    await adapter.close()
    places = [general, *topics, ANN, private]
    async with running(tmp_path, url, EchoAgent()):
        for place in places:
            await between.says(place.chat, f"in {place.thread or 'general'}", thread=place.thread)
        for place in places:
            await between.shows(place, f"in {place.thread or 'general'}")
    assert [len(texts(between, place)) for place in places] == [1] * len(places)


async def test_in_a_group_it_answers_when_it_is_meant(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    forum = await between.forum()
    group = Address("telegram", "bot", "", forum)

    def mentioning(update: dict[str, Any]) -> dict[str, Any]:
        update["message"]["entities"] = [{"type": "mention", "offset": 0, "length": len(BOT) + 1}]
        return update

    async with running(tmp_path, url, EchoAgent(), Mentions.NEEDED) as gateway:
        await between.says(forum, "among ourselves")
        await between.says(forum, f"@{BOT} hello", doctor=mentioning)
        await between.shows(group, f"@{BOT} hello")
        # Nobody has to name it in a topic that it opened itself.
        own, other = [Address("telegram", "bot", "", forum, thread) for thread in ("900", "901")]
        ann = await gateway.store.person(Identity("telegram", "bot", "501"), "Ann")
        await gateway.store.lane(Place(own, Kind.GROUP, opened=True), ann)
        await between.says(forum, "elsewhere", thread=other.thread)
        await between.says(forum, "in its own", thread=own.thread)
        await between.shows(own, "in its own")
    assert len(texts(between, group)) == 1
    assert texts(between, other) == []


async def test_a_start_link_links_whoever_follows_it(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    async with running(tmp_path, url, EchoAgent()):
        await between.says("501", "/link")
        await until(lambda: "/link " in "".join(texts(between, ANN)))
        code = texts(between, ANN)[0].split("/link ")[1].split()[0]
        await between.says("502", f"/start {code}", who=502)
        await between.shows(BEN, LINKED)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of forkpty.*:DeprecationWarning")
async def test_whoever_scans_the_code_in_the_terminal_goes_on_with_the_conversation(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    between, url = there
    async with serving(tmp_path, url, who='allow = ["501"]'):
        await between.says("502", "let me in", who=502)
        await until(lambda: "I only talk to people whom my host knows" in "".join(texts(between, BEN)))
        async with terminal(tmp_path) as here:
            here.types("say tea\r")
            await here.until(lambda screen: "\ntea" in screen)
            here.types("/handoff\r")
            await here.shows("show it to nobody")
            [link] = re.findall(rf"https://t\.me/{BOT}\?start=\S+(?=:)", here.text)
            drawn = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in qr(link).splitlines()]
            assert "\n".join(drawn) in here.text
            await between.says("502", f"/start {link.partition('=')[2]}", who=502)
            assert await here.leaves() == 0
            assert "This conversation goes on in telegram.bot." in here.text
        sent = [body for method, body in between.calls if method == "sendMessage"]
        [topic] = [body["message_thread_id"] for body in sent if "message_thread_id" in body]
        thread = Address("telegram", "bot", "", "502", topic)
        [first] = texts(between, thread)
        assert first.startswith("Here I am. I remember 2 messages")
        await between.says("502", "say milk", who=502, thread=topic)
        await between.shows(thread, "milk")
        async with terminal(tmp_path) as here:
            # The one person's newest session is that of the phone.
            await here.until(lambda screen: "say tea" in screen and "\nmilk" in screen)


async def test_what_is_told_again_is_answered_once(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    async with running(tmp_path, url, EchoAgent()):
        await between.says("501", "once")
        await between.shows(ANN, "once")
        between.tell_again()
        await between.says("501", "after")
        await between.shows(ANN, "after")
    assert texts(between, ANN) == ["once", "after"]


async def test_a_connection_that_breaks_heals_and_says_so_once(
    there: tuple[Between, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    between, url = there
    caplog.set_level(logging.WARNING)
    async with running(tmp_path, url, EchoAgent()) as gateway:
        await between.says("501", "before")
        await between.shows(ANN, "before")
        await between.telegram.stop()
        await until(lambda: bool(gateway.problems()))
        await between.telegram.start()
        await between.says("501", "after")
        await between.shows(ANN, "after")
        assert gateway.problems() == []
    told = [record.getMessage() for record in caplog.records if "telegram.bot" in record.getMessage()]
    assert len([line for line in told if "lost its connection" in line]) == 1
    assert len([line for line in told if "connected again" in line]) == 1
    assert TOKEN not in caplog.text


async def test_telegram_calls_where_it_was_told_to(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    webhook = f"http://127.0.0.1:{free_port()}"
    async with serving(tmp_path, url, webhook) as gateway:
        await between.says("501", "say hello")
        await between.shows(ANN, "hello")
        await gateway.end()
        for n in range(3):
            await between.says("501", f"say while away {n}")
        await gateway.start()
        await until(lambda: lines(between, ANN)[-1] == "while away 2")
    assert lines(between, ANN) == ["hello", "while away 0", "while away 1", "while away 2"]


async def test_what_came_while_it_was_dead_comes_once_in_order(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    async with serving(tmp_path, url) as gateway:
        await between.says("501", "say hello")
        await between.shows(ANN, "hello")
        await gateway.end()
        for n in range(3):
            await between.says("501", f"say while away {n}")
        await gateway.start()
        await until(lambda: lines(between, ANN)[-1] == "while away 2")
    assert lines(between, ANN) == ["hello", "while away 0", "while away 1", "while away 2"]


@pytest.mark.parametrize("told", [{"to"}, {"from"}, {"to", "from"}])
async def test_a_group_that_became_another_is_the_same_place_after_a_restart_though_nobody_spoke(
    there: tuple[Between, str], tmp_path: Path, told: set[str]
) -> None:
    between, url = there
    old = {"id": -77, "type": "group", "title": "Kitchen"}
    new = {"id": int(await between.forum()), "type": "supergroup", "title": "Kitchen"}
    group, supergroup = [Address("telegram", "bot", "", str(chat["id"])) for chat in (old, new)]
    ann = {"id": 501, "is_bot": False, "first_name": "Ann"}
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}

    async def tell(chat: dict[str, Any], **more: Any) -> None:
        def put(update: dict[str, Any]) -> dict[str, Any]:
            ids = {key: update["message"][key] for key in ("message_id", "date")}
            return {**update, "message": ids | {"chat": chat, "from": ann} | more}

        await between.says(str(chat["id"]), "told", doctor=put)
        newest = between.next_update - 1
        await until(lambda: ("getUpdates", str(newest + 1)) in [(m, b.get("offset")) for m, b in between.calls])

    def upgraded(_: str, body: dict[str, Any]) -> Any:
        says = "Bad Request: group chat was upgraded to a supergroup chat"
        known = {"migrate_to_chat_id": new["id"]}
        return refusal(400, says, parameters=known) if body.get("chat_id") == "-77" else None

    agent = ScriptedAgent(otherwise=lambda _: ["Yes?"])
    async with running(tmp_path, url, agent):
        await tell(old, text="hello")
        await tell(old, text="/title Tea")
        await between.shows(group, "This session is called Tea.")
        if "to" in told:
            await tell(old, migrate_to_chat_id=new["id"])
        if "from" in told:
            await tell(new, migrate_from_chat_id=-77, sender_chat=new, **{"from": anonymous})
    between.refuse = upgraded
    async with running(tmp_path, url, agent):
        await tell(new, text="/title")
        await between.shows(supergroup, "Tea")
    assert (texts(between, group), texts(between, supergroup)) == (["Yes?", "This session is called Tea."], ["Tea"])
    assert len(agent.works) == 1


@pytest.mark.parametrize("call", ["sendMessage", "editMessageText"])
async def test_killed_between_the_call_and_its_record_it_says_it_once(
    there: tuple[Between, str], tmp_path: Path, call: str
) -> None:
    between, url = there
    async with serving(tmp_path, url) as gateway:

        async def kill(method: str, _: dict[str, Any]) -> None:
            if method == call:
                between.taken = None
                await gateway.end()
                await gateway.start()

        between.taken = kill
        await between.says("501", "say only once")
        await between.shows(ANN, "only once")
        await between.says("501", "say done")
        await between.shows(ANN, "done")
    said = texts(between, ANN)
    assert said.count("only once") == 1
    assert [text for text in said if text not in {"only once", "done"}] in ([], ["…"])
