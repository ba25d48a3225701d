"""Conversations on Telegram, end to end: a real gateway, and crabline for Telegram."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.telegram import Telegram
from segue.agents.given import as_agent
from segue.cli.terminal.qr import qr
from segue.core.accounts import Reach
from segue.core.contracts.adapters import Files
from segue.core.contracts.agents import Agent, Progress, Work
from segue.core.contracts.probes import Point, Probe
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.limits.budgets import Amount, Budgets
from segue.core.messages import plain_text
from segue.core.settings import AccountSettings, DmThreads, Mentions, Streams
from segue.core.text.notices import WELCOME
from segue.core.values import Secret
from segue.database.transactions import unheeded
from segue.errors import Refusal
from segue.runtime.gateway import Gateway
from segue.testing import EchoAgent, Pause, ScriptedAgent, Shelf
from segue.testing.agents import Step, Uses, said
from tests.cli.screens import terminal
from tests.contracts.test_telegram import BRISK
from tests.in_process import gateway_on
from tests.ports import free_port
from tests.served import PATIENCE, Served
from tests.servers.crabline import BOT, TOKEN, Between, Doctor, refusal, telegram
from tests.stories.files import KilledAt, plans

ANN, BEN = Address("telegram", "bot", "", "501"), Address("telegram", "bot", "", "502")


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[tuple[Between, str]]:
    async with telegram(tmp_path) as (between, url):
        yield between, url


@asynccontextmanager
async def running(
    path: Path,
    url: str,
    agent: Agent | Mapping[str, Agent],
    account: AccountSettings = AccountSettings(public=True),  # noqa: B008 -- frozen
    hosts: tuple[Identity, ...] = (),
    probe: Probe = unheeded,
    files: Files | None = None,
    **settings: Any,
) -> AsyncIterator[Gateway]:
    """A gateway on Telegram alone."""
    adapter = Telegram("bot", Secret(TOKEN), files or Shelf(), url, pace=BRISK)
    more: Any = {"account": account, "hosts": hosts, "probe": probe, "files": files, "grace": 0.1, **settings}
    async with gateway_on(path, agent, adapter, **more) as gateway:
        yield gateway
    await adapter.close()


@asynccontextmanager
async def serving(home: Path, url: str, webhook: str = "", who: str = "public = true") -> AsyncIterator[Served]:
    """`segue serve` with the built-in agent on Telegram."""
    (home / "token").write_text(TOKEN)
    called = f'webhook = "{webhook}"\n' if webhook else ""
    file = f'[telegram.bot]\ntoken = "file:token"\napi = "{url}"\n{who}\n{called}[replica]\nlease = 1.0\n'
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


async def test_an_album_is_answered_once(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there

    def of_one_album(update: dict[str, Any]) -> dict[str, Any]:
        update["message"]["media_group_id"] = "13"
        return update

    async with running(tmp_path, url, EchoAgent()):
        for n in range(3):
            await between.says("501", f"picture {n}", doctor=of_one_album)
        await between.shows(ANN, "picture 0\npicture 1\npicture 2")
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

    def commanding(update: dict[str, Any]) -> dict[str, Any]:
        update["message"]["entities"] = [{"type": "bot_command", "offset": 0, "length": 6}]
        return update

    async with running(tmp_path, url, EchoAgent(), AccountSettings(public=True, mentions=Mentions.NEEDED)) as gateway:
        await between.says(forum, "among ourselves")
        await between.says(forum, "/title Ours", doctor=commanding)
        await between.says(forum, f"@{BOT} hello", doctor=mentioning)
        await between.shows(group, f"@{BOT} hello")
        # Nobody has to name it in a topic that it opened itself.
        own, other = [Address("telegram", "bot", "", forum, thread) for thread in ("900", "901")]
        ann = await gateway.store.person(Identity("telegram", "bot", "501"), "Ann")
        await gateway.store.lane(Place(own, Kind.GROUP, opened=True), ann)
        await between.says(forum, "elsewhere", thread=other.thread)
        await between.says(forum, "in its own", thread=own.thread)
        await between.shows(own, "in its own")
        await between.says(forum, f"/title@{BOT}")
        await between.shows(group, "This session has no title. /title NAME gives it one.")
    assert len(texts(between, group)) == 2
    assert texts(between, other) == []


def unseen(update: dict[str, Any]) -> dict[str, Any]:
    """Make of what somebody writes in a group a message that nobody but the bot sees, as an ephemeral command is."""
    update["message"] |= {"message_id": 0, "ephemeral_message_id": 7}
    return update


async def test_a_command_that_nobody_else_saw_is_answered_so_that_nobody_else_sees_it(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    between, url = there
    forum = await between.forum()
    group = Address("telegram", "bot", "", forum)
    async with running(tmp_path, url, EchoAgent(), AccountSettings(public=True, mentions=Mentions.NEEDED)):
        await between.says(forum, "/usage", doctor=unseen)
        seen = between.whispered[forum, "501"]
        await until(lambda: any("No session is open here." in text for text in seen.values()))
        assert between.read(group) == []
        # Telegram lets a bot answer so for some seconds; it knows her private chat by her id.
        late = "Bad Request: MESSAGE_NOT_COMMAND"
        between.refuse = lambda _, body: refusal(400, late) if "ephemeral_message_parameters" in body else None
        await between.says(forum, "/usage", doctor=unseen)
        await until(lambda: any("No session is open here." in text for text in texts(between, ANN)))
    assert (len(seen), between.read(group)) == (1, [])


@pytest.mark.parametrize(("begins", "knows"), [(DmThreads.FORK, True), (DmThreads.FRESH, False)])
async def test_a_topic_that_a_person_opens_in_their_private_chat_begins_as_the_host_wants(
    there: tuple[Between, str],
    tmp_path: Path,
    begins: DmThreads,
    knows: bool,  # noqa: FBT001
) -> None:
    between, url = there
    topic = Address("telegram", "bot", "", "501", "42")

    def opened(update: dict[str, Any]) -> dict[str, Any]:
        del update["message"]["text"]
        update["message"]["forum_topic_created"] = {"name": "Cake", "icon_color": 1, "is_name_implicit": True}
        return update

    async def knowing(work: Work) -> str:
        return "; ".join(["Known", *(plain_text(entry.parts) for entry in work.transcript if entry.author.person)])

    async with running(tmp_path, url, as_agent(knowing), AccountSettings(public=True, dm_threads=begins)):
        await between.says("501", "tea")
        await between.shows(ANN, "Known")
        await between.says("501", "opened", thread="42", doctor=opened)
        await between.says("501", "which cake?", thread="42")
        await between.shows(topic, "Known; tea" if knows else "Known")
        await between.says("501", "and now?")
        await between.shows(ANN, "Known; tea")


async def test_where_the_host_wants_one_conversation_topics_of_a_private_chat_speak_to_it_and_are_answered_there(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    between, url = there
    topic, ours = Address("telegram", "bot", "", "501", "42"), Address("telegram", "bot", "", "501", "77")

    async def knowing(work: Work) -> str:
        if said(work) == "may you?":
            return "It may" if await work.ask("May I?", ("yes", "no")) == "yes" else "It may not"
        return "; ".join(["Known", *(plain_text(entry.parts) for entry in work.transcript if entry.author.person)])

    account = AccountSettings(public=True, dm_threads=DmThreads.ONE)
    async with running(tmp_path, url, as_agent(knowing), account) as gateway:
        await between.says("501", "tea")
        await between.shows(ANN, "Known")
        await between.says("501", "which cake?", thread="42")
        await between.shows(topic, "Known; tea")
        await between.says("501", "and now?")
        await between.shows(ANN, "Known; tea; which cake?")
        # What is asked there is answered there, by a button or by a reply.
        await between.says("501", "may you?", thread="42")
        asked = await between.shows(topic, "May I?")
        await between.says("501", "pressed", doctor=pressing(asked.message, "yes"), thread="42")
        await between.shows(topic, "It may")
        # A thread that Segue opened is a conversation of its own all the same.
        person = await gateway.store.person(Identity("telegram", "bot", "501"), "Ann")
        await gateway.store.lane(Place(ours, Kind.DM, opened=True), person)
        await between.says("501", "alone?", thread="77")
        so_far = "Known; tea; which cake?; and now?; may you?"
        await between.shows(ours, so_far)
        await between.says("501", "still?", thread="42")
        await between.shows(topic, so_far)
        # A reset there is one of the whole chat.
        await between.says("501", "/new", thread="42")
        await between.says("501", "anything?")
        await until(lambda: texts(between, ANN)[-1:] == ["Known"])
    assert [text for text in texts(between, ANN) if "May I" in text] == []


async def test_an_answer_whose_growing_message_was_deleted_comes_as_a_new_one(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    between, url = there
    pause = Pause()
    agent = ScriptedAgent(["half", pause, " and whole"])
    async with running(tmp_path, url, agent, AccountSettings(public=True, streams=Streams.LIVE)):
        await between.says("501", "go on")
        await between.shows(ANN, "half")
        gone = "Bad Request: message to edit not found"
        between.refuse = lambda method, _: refusal(400, gone) if method == "editMessageText" and not anew() else None

        def anew() -> bool:
            return len(between.read(ANN)) > 1

        pause.over()
        await between.shows(ANN, "half and whole")
    assert [seen.text for seen in between.read(ANN)][1:] == ["half and whole"]


def brought(between: Between, who: int) -> dict[str, Any]:
    """Somebody brings the bot into a group."""
    bot = {"id": 424242, "is_bot": True, "first_name": "Segue", "username": BOT}
    return {
        "update_id": between.next_update,
        "my_chat_member": {
            "chat": {"id": -77, "type": "group", "title": "Kitchen"},
            "from": {"id": who, "is_bot": False, "first_name": "Somebody"},
            "date": 1,
            "old_chat_member": {"user": bot, "status": "left"},
            "new_chat_member": {"user": bot, "status": "member"},
        },
    }


@pytest.mark.parametrize("groups", [frozenset[str](), frozenset({"-77"})])
async def test_the_host_who_brings_it_into_a_group_is_told_how_to_talk_to_it(
    there: tuple[Between, str], tmp_path: Path, groups: frozenset[str]
) -> None:
    between, url = there
    account = AccountSettings(allow=frozenset({"501"}), allow_groups=groups)
    more = "" if groups else ' Others here are answered once allow_groups of [telegram.bot] lists "-77".'
    async with running(tmp_path, url, EchoAgent(), account=account, hosts=(Identity("telegram", "bot", "501"),)):
        between.tell(brought(between, 501))
        await between.shows(Address("telegram", "bot", "", "-77"), WELCOME + more)


async def test_a_stranger_who_brings_it_into_a_group_hears_nothing(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    async with running(tmp_path, url, EchoAgent(), account=AccountSettings(allow=frozenset({"501"}))):
        between.tell(brought(between, 502))
        await between.says("501", "hello")
        await between.shows(ANN, "hello")
    assert texts(between, Address("telegram", "bot", "", "-77")) == []


async def test_where_somebody_has_a_conversation_it_says_no_second_hello(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    between, url = there
    group = Address("telegram", "bot", "", "-77")
    async with running(tmp_path, url, EchoAgent()):
        between.tell(brought(between, 501))
        await between.shows(group, WELCOME)
        await between.says("-77", "hello")
        await between.shows(group, "hello")
        between.tell(brought(between, 501))
        await between.says("-77", "again")
        await between.shows(group, "again")
    assert texts(between, group) == [WELCOME, "hello", "again"]


async def test_a_topic_that_was_called_something_else_stays_so_after_a_restart(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    between, url = there
    forum = await between.forum()
    topic = Address("telegram", "bot", "", forum, "42")

    def named(**event: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def put(update: dict[str, Any]) -> dict[str, Any]:
            del update["message"]["text"]
            return {**update, "message": update["message"] | event}

        return put

    def later(update: dict[str, Any]) -> dict[str, Any]:
        began = {"message_id": 42, "date": 1, "chat": update["message"]["chat"]}
        reply = began | {"forum_topic_created": {"name": "Plans", "icon_color": 1}}
        return {**update, "message": update["message"] | {"reply_to_message": reply}}

    agent = ScriptedAgent(otherwise=lambda work: [plain_text(work.asked[0].parts)])
    async with running(tmp_path, url, agent):
        await between.says(forum, "told", thread="42", doctor=named(forum_topic_created={"name": "Plans"}))
        await between.says(forum, "told", thread="42", doctor=named(forum_topic_edited={"name": "Cake"}))
        await between.says(forum, "outside")
        await between.shows(topic.outside, "outside")
    async with running(tmp_path, url, agent):
        await between.says(forum, "inside", thread="42", doctor=later)
        await between.shows(topic, "inside")
    assert "Cake" in agent.works[-1].context
    assert "Plans" not in agent.works[-1].context


async def test_a_start_link_links_nobody_who_follows_it(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    async with running(tmp_path, url, EchoAgent()):
        await between.says("501", "/link")
        await until(lambda: "/link " in "".join(texts(between, ANN)))
        code = texts(between, ANN)[0].split("/link ")[1].split()[0]
        await between.says("502", f"/start {code}", who=502)
        await between.shows(BEN, Refusal.WRONG_CODE.value)


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
            await until(lambda: "That code is of " in "".join(texts(between, BEN)))
            await between.says("502", "/yes", who=502)
            await here.shows("typed the code that you asked for")
            here.types("/yes\r")
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


async def test_another_replica_takes_the_bot_over(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    async with AsyncExitStack() as first:
        one = await first.enter_async_context(running(tmp_path, url, EchoAgent()))
        await until(lambda: one.accounts["telegram.bot"].reach is Reach.CONNECTED)
        async with running(tmp_path, url, EchoAgent()) as other:
            await until(lambda: other.accounts["telegram.bot"].reach is Reach.ELSEWHERE)
            await between.says("501", "before")
            await between.shows(ANN, "before")
            await first.aclose()
            await between.says("501", "after")
            await between.shows(ANN, "after")
            assert other.accounts["telegram.bot"].reach is Reach.CONNECTED
    assert texts(between, ANN) == ["before", "after"]


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
        await between.shows(group, "Yes?")
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


async def test_killed_between_the_call_and_its_record_it_sends_a_file_once(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    between, url = there
    async with serving(tmp_path, url) as gateway:
        await between.says("501", "say tea")
        await between.shows(ANN, "tea")

        async def kill(method: str, _: dict[str, Any]) -> None:
            if method == "editMessageMedia":
                between.taken = None
                await gateway.end()
                await gateway.start()

        between.taken = kill
        await between.says("501", "/export")
        await until(lambda: [method for method, _ in between.calls].count("editMessageMedia") == 2)
        await between.says("501", "say done")
        await between.shows(ANN, "done")
    assert len(between.attached) == 1
    assert not {"sendDocument", "sendPhoto"} & {method for method, _ in between.calls}


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


@pytest.mark.parametrize(("point", "times"), [(Point.SEND_RECORDED, 1), (Point.SEND_PLACED, 1), (Point.SEND_CALLED, 2)])
async def test_a_file_that_the_agent_gives_comes_once_over_a_kill_between_text_and_file(
    there: tuple[Between, str], tmp_path: Path, point: Point, times: int
) -> None:
    between, url = there
    shelf, killed = Shelf(), KilledAt(point, times)
    agent = ScriptedAgent(["Here are the plans.", await plans(shelf)])
    async with running(tmp_path, url, agent, probe=killed, files=shelf):
        await between.says("501", "the plans, please")
        await killed.dead.wait()
    async with running(tmp_path, url, EchoAgent(), files=shelf):
        await between.says("501", "and then")
        await between.shows(ANN, "and then")
    assert texts(between, ANN).count("Here are the plans.") == 1
    assert list(between.attached.values()) == ["plans.md"], "the file is there once"


def pressing(message: str, choice: str) -> Doctor:
    """Make a tap on a button of a message out of whatever somebody writes."""

    def pressed(update: dict[str, Any]) -> dict[str, Any]:
        said = update.pop("message")
        shown = {**said, "message_id": int(message), "from": {"id": 1, "is_bot": True, "first_name": BOT}}
        tap = {"id": f"press-{message}", "from": said["from"], "data": choice, "message": shown}
        return {**update, "callback_query": tap}

    return pressed


async def test_a_button_answers_what_the_agent_asks_and_goes_away(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there

    async def deletes(work: Work) -> str:
        allowed = await work.ask("Delete the old files?", allows="delete_files")
        return "Deleted." if allowed == "yes" else "Kept."

    async with running(tmp_path, url, as_agent(deletes)):
        await between.says("501", "tidy up")
        asked = await between.shows(ANN, "Delete the old files?")
        await between.says("501", "pressed", doctor=pressing(asked.message, "no"))
        await between.shows(ANN, "Kept.")
        await between.shows(ANN, "Delete the old files?\n\nAnswered: no (Person 501).")
    keyboards = [json.loads(body["reply_markup"]) for _, body in between.calls if "reply_markup" in body]
    offered = [[button["callback_data"] for row in board["inline_keyboard"] for button in row] for board in keyboards]
    assert ["yes", "no", "for this session", "always"] in offered


async def test_a_tap_chooses_where_a_conversation_goes_and_another_agent_knows_it(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    between, url = there

    def knows(name: str) -> Agent:
        async def answers(work: Work) -> str:
            return f"{name}: {', '.join(plain_text(entry.parts) for entry in work.transcript if entry.author.person)}"

        return as_agent(answers)

    two = {"": knows("one"), "poet": knows("two")}
    async with running(tmp_path, url, two, hosts=(Identity("telegram", "bot", "501"),)):
        await between.says("501", "my cat is Tom")
        await between.shows(ANN, "one:")
        await between.says("501", "/agent poet")
        await between.shows(ANN, "poet answers from here on.")
        await between.says("501", "who is my cat?")
        await between.shows(ANN, "two: my cat is Tom")
        await between.says("501", "/home")
        await between.shows(ANN, "This is the home on telegram now. Only you can read what comes here.")
        await between.says("501", "/handoff")
        asked = await between.shows(ANN, "Where does it go?")
        await between.says("501", "tapped", doctor=pressing(asked.message, "telegram.bot: only you can read there"))
        await until(lambda: any(text.startswith("Handing an untitled session off") for text in texts(between, ANN)))


class Noter(ScriptedAgent):
    """Notes what it is told, says what it knows, and is slow over a kettle."""

    notes = True

    def __init__(self) -> None:
        super().__init__(otherwise=self._does)
        self.pause = Pause()

    def _does(self, work: Work) -> Iterable[Step]:
        verb, _, rest = said(work).partition(" ")
        if verb == "note":
            yield Uses(f"call{work.turn}", "notes_write", arguments={"text": rest})
        if verb == "tea":
            yield from ("Well", Progress("the kettle"), self.pause, ", it is hot.")
        else:
            yield f"I know: {', '.join(work.notes or ())}."


async def test_notes_a_line_of_progress_and_the_edge_of_a_budget_are_shown_in_a_chat(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    between, url = there
    agent, host = Noter(), Identity("telegram", "bot", "501")
    two = Budgets(session=Amount(turns=2))
    async with running(tmp_path, url, agent, hosts=(host,), budget=two):
        await between.says("501", "note likes tea")
        await between.shows(ANN, "I know: .")
        await between.says("501", "tea please")
        await agent.pause.reached()
        growing = await between.shows(ANN, "Well\n\n(the kettle …)")
        agent.pause.over()
        assert (await between.shows(ANN, "Well, it is hot.")).message == growing.message, "one message that changes"
        await between.says("501", "and now?")
        asked = await between.shows(ANN, "The budget of this session is used up: 2 of 2 turns. Allow 2 turns more?")
        assert len(agent.works) == 2, "nothing is asked of the agent before there is room"
    async with running(tmp_path, url, agent, hosts=(host,), budget=two):
        await between.says("501", "tapped", doctor=pressing(asked.message, "yes"))
        await until(lambda: len(agent.works) == 3)
        await between.says("501", "/new")
        await between.says("501", "hello")
        await between.shows(ANN, "I know: likes tea.")
        await between.says("501", "/notes")
        await until(lambda: any(text.startswith("1. likes tea") for text in texts(between, ANN)))
