"""The Discord adapter by itself: what `segue add` asks and finds, markup, payloads that simcord doesn't know."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from discord.utils import time_snowflake
from msgspec.structs import replace

from segue.adapters.discord import DiscordAccount
from segue.adapters.discord.channels import nonce
from segue.adapters.discord.markup import fits, render
from segue.cli.add import command
from segue.config import load
from segue.core.lanes import Address
from segue.core.messages import Citation, Citing, Text
from segue.errors import Disconnected, Invalid, MessageGone, SendLater, SendNever
from segue.testing import Inbox
from segue.testing.contracts.base import a_delivery
from segue.testing.harness import Given
from tests.adapters.discord import DiscordHarness
from tests.servers.discord import TOKEN, LocalDiscord, local_discord


@pytest.fixture
async def town() -> AsyncIterator[LocalDiscord]:
    async with local_discord() as town:
        yield town


@pytest.fixture
async def harness(town: LocalDiscord) -> AsyncIterator[DiscordHarness]:
    harness = DiscordHarness(town)
    yield harness
    await harness.close()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("# One\n\n#### Four", "# One\n\n**Four**"),
        ("**a** *b* ~~c~~ `d`", "**a** *b* ~~c~~ `d`"),
        ("a \\*b\\* snake_case || # no", "a \\*b\\* snake\\_case \\|\\| # no"),
        ("1\\. no list", "1\\. no list"),
        ("**a** - b", "**a** \\- b"),
        ("- a\n- b\n  - c\n\n3. d", "- a\n- b\n  - c\n\n3. d"),
        ("> a\n> b", "> a\n> b"),
        ("| a | b |\n|---|---|\n| long | c |", "```\na    | b\nlong | c\n```"),
        ("```py\nx = '```'\n```", None),
        ("[here](https://a.example/x_y) https://b.example/x_y", "[here](https://a.example/x_y) https://b.example/x_y"),
        ("[https://good.example](https://bad.example)", "https://good.example (https://bad.example)"),
        ("![cat](https://a.example/cat.png)", "[cat](https://a.example/cat.png)"),
        ("<@42> <b>", "<@42> <b>"),
    ],
)
def test_markdown_becomes_discords_own(text: str, read: str | None) -> None:
    assert render(text) == read if read is not None else render(text).count("```") == 2


def test_what_is_longer_once_it_is_rendered_does_not_fit() -> None:
    assert fits("x" * 2000)
    assert not fits("x" * 2001)
    assert not fits("a_" * 900), "each mark is two characters there"
    assert fits("🚀" * 1000)
    assert not fits("🚀" * 1001)
    assert len(nonce("a key that is much longer than any nonce may be")) == 25


async def test_a_bot_is_added_and_says_hello(
    town: LocalDiscord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEGUE_HOME", str(tmp_path))
    monkeypatch.setenv("DISCORD_TOKEN", TOKEN)
    ann = str(town.people["Ann"].id)
    said = ("--set", "token=env:DISCORD_TOKEN", "--set", f"api={town.url}")
    arguments = ["discord", "--account", "main", "--owner", ann, *said]
    done = await asyncio.to_thread(CliRunner().invoke, command, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "The bot is TestBot, and may read messages." in done.output
    [account] = load(tmp_path / "segue.toml", {"DISCORD_TOKEN": TOKEN}).accounts
    assert isinstance(account.keys, DiscordAccount)
    assert TOKEN not in (tmp_path / "segue.toml").read_text()
    assert [one.content for one in town.seen(town.private())] == ["Hello. Write to me, or type /help."]


async def test_what_is_wrong_is_told_before_anything_is_written(town: LocalDiscord) -> None:
    right = {"token": TOKEN, "api": town.url}
    found = await DiscordAccount.added(right)
    assert f"client_id={town.backend.application_id}&scope=bot+applications.commands" in found.link
    assert found.link.endswith("&permissions=309237746688")
    town.reads = False
    with pytest.raises(Invalid, match="Turn on Message Content Intent at"):
        await DiscordAccount.added(right)
    with pytest.raises(Disconnected, match="doesn't know the token"):
        await DiscordAccount.added({**right, "token": "x" * 40})
    with pytest.raises(Invalid, match="isn't a bot's token"):
        await DiscordAccount.added({**right, "token": "what?"})
    with pytest.raises(Disconnected, match="can't be reached"):
        await DiscordAccount.added({**right, "api": "http://127.0.0.1:1"})


async def test_whoever_writes_in_private_is_met(town: LocalDiscord) -> None:
    club = town.channel()
    meeting = asyncio.create_task(DiscordAccount.meet({"token": TOKEN, "api": town.url}, ""))
    await town.changes.until(lambda: town.identified or None, lambda: "it never connected")
    town.says(club, "in a channel")
    town.says(town.private(), "here I am")
    met = await meeting
    assert (met.user, met.chat) == (str(town.people["Ann"].id), town.private())
    town.reads = False
    with pytest.raises(Disconnected, match="Message Content Intent"):
        await DiscordAccount.meet({"token": TOKEN, "api": town.url}, "")


async def test_a_thread_is_opened_once_for_a_key_also_by_the_next_process(harness: DiscordHarness) -> None:
    town = harness.town
    club = Address("discord", "bot", str(town.guild.id), town.channel())
    forum = Address("discord", "bot", str(town.guild.id), town.channel("plans", type=15))
    first = await harness.adapter().open_thread(club, "Cake", "key")
    assert await harness.adapter().open_thread(club, "Cake", "key") == first
    beside = await harness.adapter().open_thread(first, "Tea", "other")
    assert str(town.backend.channels[int(beside.thread)].parent_id) == club.chat
    post = await harness.adapter().open_thread(forum, "Party", "post")
    assert [one.content for one in town.seen(post.thread)] == ["Party"]
    with pytest.raises(SendNever, match="no threads in private chats"):
        await harness.adapter().open_thread(Address("discord", "bot", "", town.private()), "No", "no")


async def test_where_no_message_may_be_written_a_thread_stands_by_itself(harness: DiscordHarness) -> None:
    town = harness.town
    club = Address("discord", "bot", str(town.guild.id), town.channel())
    town.forbidden = f"{club.chat}/messages"
    opened = await harness.adapter().open_thread(club, "Cake", "key")
    thread = town.backend.channels[int(opened.thread)]
    assert (str(thread.parent_id), thread.name) == (club.chat, "Cake")
    assert town.seen(club.chat) == []
    # Where there may be no threads at all, the message that was to have one doesn't stay behind.
    town.forbidden = "/threads"
    with pytest.raises(SendNever, match="Missing Permissions"):
        await harness.adapter().open_thread(club, "Tea", "other")
    assert town.seen(club.chat) == []


async def test_limits_are_heeded_before_discord_refuses_and_when_it_does(harness: DiscordHarness) -> None:
    town, adapter = harness.town, harness.adapter()
    club = Address("discord", "bot", str(town.guild.id), town.channel())
    town.limits = {"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "0.4"}
    for text in ("one", "two"):
        await adapter.send(a_delivery(club, text))
    first, second = [at for path, at in town.called if path.endswith("/messages")]
    assert second - first >= 0.4, "it called though Discord had said that it may not yet"
    town.limits, town.patience = {}, 60.0
    with pytest.raises(SendLater) as later:
        await adapter.send(a_delivery(club, "three"))
    assert later.value.seconds == 60.0


async def test_a_call_that_is_given_up_while_all_calls_are_limited_holds_up_no_other(harness: DiscordHarness) -> None:
    town, adapter = harness.town, harness.adapter()
    club = Address("discord", "bot", str(town.guild.id), town.channel())
    await adapter.send(a_delivery(club, "one"))
    town.patience, town.patience_everywhere = 20.0, True
    limit = (await adapter._api.client()).http._global_over
    typing = asyncio.create_task(adapter.typing(club))
    async with asyncio.timeout(60):
        while limit.is_set():  # noqa: ASYNC110 -- the library tells nobody
            await asyncio.sleep(0.01)
        typing.cancel()
        await asyncio.wait([typing])
        town.patience = 0.0
        await adapter.send(a_delivery(club, "two"))
    assert [one.content for one in town.seen(club.chat)] == ["one", "two"]


async def test_a_slash_command_that_is_too_old_is_answered_in_private(harness: DiscordHarness) -> None:
    town, adapter, inbox = harness.town, harness.adapter(), Inbox()
    club = Address("discord", "bot", str(town.guild.id), town.channel())
    async with harness.deliver(adapter, inbox.accept):
        town.slash(club.chat, "status")
        await inbox.gets("/status")
    # Its id says when it was used: a quarter of an hour ago.
    _, _, token = inbox.said[-1].message.split(".")
    used = f"slash.{time_snowflake(datetime.now(UTC) - timedelta(minutes=16))}.{token}"
    alone = replace(a_delivery(club, "It is well."), answers=(used,), only=str(town.people["Ann"].id))
    town.late = True
    sent = await adapter.send(alone)
    assert [str(one.id) for one in town.seen(town.private())] == [sent]
    assert [one.content for one in town.seen(club.chat, "Ben")] == []
    with pytest.raises(MessageGone):
        await adapter.edit(replace(alone, message="1"))


def told(town: LocalDiscord, **more: Any) -> dict[str, Any]:
    """A message of Ann's as the gateway tells it."""
    ann = {"id": str(town.people["Ann"].id), "username": "ann", "global_name": "Ann"}
    chat = town.private()
    return {"id": str(town.backend.snowflake()), "channel_id": chat, "author": ann, "type": 0, "content": "", **more}


async def test_payloads_that_simcord_does_not_make(harness: DiscordHarness) -> None:
    """A forward, a sticker, a link's preview, a poll, files elsewhere, a webhook: as Discord documents them."""
    town, inbox = harness.town, Inbox()
    emit = town.backend.emit
    async with harness.deliver(harness.adapter(), inbox.accept):
        snapshot = {"message": {"content": "said elsewhere", "attachments": []}}
        passed_on = {"type": 1, "message_id": "5", "channel_id": "6"}
        emit("MESSAGE_CREATE", told(town, message_reference=passed_on, message_snapshots=[snapshot]))
        emit("MESSAGE_CREATE", told(town, sticker_items=[{"id": "7", "name": "Wave", "format_type": 1}]))
        emit(
            "MESSAGE_UPDATE", told(town, content="a link", edited_timestamp=None, embeds=[{"url": "https://e.example"}])
        )
        emit("MESSAGE_CREATE", told(town, content="hooked", webhook_id="8"))
        emit("MESSAGE_CREATE", told(town, poll={"question": {"text": "Tea?"}}))
        elsewhere = {"id": "9", "filename": "cat.png", "url": "http://169.254.169.254/cat.png", "size": 5}
        emit("MESSAGE_CREATE", told(town, attachments=[elsewhere]))
        emit("MESSAGE_CREATE", told(town, content="the last", flags=1 << 12, nonce=5, call=None, position=3))
        await inbox.gets("the last")
    forward, wave, cat, last = inbox.said
    assert (forward.parts, forward.cites) == ((), (Citation("said elsewhere", kind=Citing.FORWARD),))
    assert wave.parts == (Text(":Wave:"),)
    assert (cat.parts, cat.remarks) == ((), ("cat.png wasn't taken in. It isn't on a server of Discord's.",))
    assert Text("the last") in last.parts
    assert [letter.why.partition(":")[0] for letter in inbox.letters] == ["poll"]


async def test_a_channel_that_the_bot_may_not_see_holds_up_nothing(harness: DiscordHarness) -> None:
    town, inbox = harness.town, Inbox()
    hidden = town.channel("hidden")
    async with harness.deliver(harness.adapter(), inbox.accept):
        town.backend.emit("MESSAGE_CREATE", told(town, channel_id="1", content="from nowhere"))
        town.backend.emit("MESSAGE_UPDATE", {"id": "2", "channel_id": hidden, "embeds": []})
        town.slash(hidden, "title", "Tea")
        await inbox.gets("/title Tea")
    assert [letter.kind for letter in inbox.letters] == ["SendNever"]


async def test_a_session_is_resumed_elsewhere_if_its_server_is_gone(harness: DiscordHarness) -> None:
    town, inbox = harness.town, Inbox()
    async with harness.deliver(harness.adapter(), inbox.accept):
        town.says(town.private(), "before")
        await inbox.gets("before")
    harness.cursor.value = harness.cursor.value.replace(f":{town.port}/", ":1/")
    town.says(town.private(), "meanwhile")
    async with harness.deliver(harness.adapter(), inbox.accept):
        await inbox.gets("meanwhile")
    assert (town.identified, town.resumed) == (1, 1)


async def test_a_file_that_does_not_come_is_given_up_though_the_line_is_made_again(harness: DiscordHarness) -> None:
    town, inbox, adapter, chat = harness.town, Inbox(), harness.adapter(), harness.town.private()
    async with harness.deliver(adapter, inbox.accept):
        town.says(chat, "before")
        await inbox.gets("before")
    town.broken = True
    town.says(chat, "look", attachments=town.backend.store_attachments(int(chat), [("cat.png", b"a cat")]))
    for _ in range(2):
        with pytest.raises(Disconnected, match="couldn't be fetched"):
            await adapter.run(Given(inbox.accept, harness.cursor))
    async with harness.deliver(adapter, inbox.accept):
        await inbox.gets("look")
    assert inbox.said[-1].remarks == ("cat.png wasn't taken in. The platform doesn't give it.",)
