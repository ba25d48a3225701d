"""Slack and its people, by local-slack: outages, buttons, commands, and `segue add slack`."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from segue.adapters.slack import SlackAccount
from segue.config import load
from segue.core.contracts.setup import FoundOwner
from segue.core.lanes import Address, Identity
from segue.core.messages import Pressed
from segue.errors import Disconnected, StoreError
from segue.testing.contracts.base import a_delivery
from segue.testing.harness import Bookmark, Given
from segue.testing.inbox import Inbox
from tests.contracts.test_slack import SlackHarness
from tests.forge import done
from tests.served import PATIENCE
from tests.servers.slack import APP_TOKEN, PEOPLE, TOKEN, slack


@pytest.fixture
async def harness() -> AsyncIterator[SlackHarness]:
    async with slack() as (between, url):
        made = SlackHarness(between, url)
        yield made
        for adapter in made.adapters:
            await adapter.close()


@contextlib.asynccontextmanager
async def connected(harness: SlackHarness, inbox: Inbox, cursor: Bookmark) -> AsyncIterator[None]:
    """An adapter that connects again whenever the line breaks."""
    given, adapter = Given(inbox.accept, cursor), harness.adapter()

    async def live() -> None:
        while True:
            with contextlib.suppress(Disconnected, StoreError):
                await adapter.run(given)
            await asyncio.sleep(0.01)

    task = asyncio.create_task(live())
    try:
        await given.is_well()
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_what_was_said_while_it_was_cut_off_comes_once_and_in_order(harness: SlackHarness) -> None:
    between, inbox, cursor = harness.between, Inbox(), Bookmark()
    private = await between.private("Ann")
    async with connected(harness, inbox, cursor):
        root = await between.says("C0001", "one")
        await inbox.gets("one")
        await between.cut()
        await between.says("C0001", "two", "Ben")
        await between.says("C0001", "three", "Ann", root)
        await between.says(private, "four")
        between.down = False
        await inbox.gets("four")
        await between.says("C0001", "five", "Ben", root)
        await inbox.gets("five")
    await between.says("C0002", "six")
    await between.says("C0002", "seven")
    async with connected(harness, inbox, cursor):
        await inbox.gets("seven")
    assert inbox.texts == ["one", "two", "three", "four", "five", "six", "seven"]
    assert inbox.said[2].place.address == Address("slack", "bot", "", "C0001", root)


async def test_buttons_and_commands_of_people(harness: SlackHarness) -> None:
    between, inbox = harness.between, Inbox()
    at = Address("slack", "bot", "", await between.private("Ann"))
    async with connected(harness, inbox, Bookmark()):
        [adapter] = harness.adapters
        asked = await adapter.send(replace(a_delivery(at, "Sure?"), choices=("/yes", "/no")))
        [message] = await between.messages(at)
        [yes, no] = message["attachments"][0]["blocks"][0]["elements"]
        assert [yes["text"]["text"], no["value"]] == ["Yes", "/no"]
        await between.control("interact", channel=at.chat, messageTs=asked, user=PEOPLE["Ann"], action=yes)
        assert (await inbox.gets("/yes")).pressed == Pressed(asked, "/yes")
        about = {"channel": at.chat, "user": PEOPLE["Ann"], "command": "/segue"}
        await between.control("command", **about, text="title Tea")
        assert (await inbox.gets("/title Tea")).place.address == at
        # No history has commands: one that couldn't be kept mustn't have been acknowledged.
        inbox.refusals = 2
        await between.control("command", **about, text="stop")
        await inbox.gets("/stop")
    assert inbox.texts == ["/yes", "/title Tea", "/stop"]


async def test_what_is_pressed_is_acknowledged_whatever_else_takes_its_time(
    harness: SlackHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.adapters.slack.adapter._SOON", 0.05)
    between, inbox = harness.between, Inbox()
    at = Address("slack", "bot", "", await between.private("Ann"))
    # What was missed is still being read back, and the card can't be changed yet.
    between.waits = {method: asyncio.Event() for method in ("conversations.history", "chat.update")}
    async with connected(harness, inbox, Bookmark(f"{time.time() - 60:.6f}")):
        [adapter] = harness.adapters
        asked = await adapter.send(replace(a_delivery(at, "Sure?"), choices=("/yes", "/no")))
        await between.says("C0001", "after what was missed")
        [message] = await between.messages(at)
        yes = message["attachments"][0]["blocks"][0]["elements"][0]
        await between.control("interact", channel=at.chat, messageTs=asked, user=PEOPLE["Ann"], action=yes)
        await inbox.gets("/yes")
        waits = between.changes.until
        await waits(lambda: len(between.pending) == 1 or None, lambda: f"unacknowledged are {between.pending}")
        for event in between.waits.values():
            event.set()
        await inbox.gets("after what was missed")
        await waits(lambda: not between.pending or None, lambda: f"unacknowledged are {between.pending}")
    assert inbox.texts == ["/yes", "after what was missed"]


async def test_whoever_adds_an_app_is_found_by_what_they_write(harness: SlackHarness) -> None:
    between = harness.between
    answers = {"token": TOKEN, "app_token": APP_TOKEN, "api": harness.url}
    meeting = asyncio.create_task(SlackAccount.meet(answers, ""))
    await between.changes.until(lambda: between.listeners or None, lambda: "it never listened")
    await between.says("C0001", "not in private")
    private = await between.private("Ann")
    said = await between.says(private, "it is me")
    async with asyncio.timeout(PATIENCE):
        met = await meeting
    assert met == FoundOwner(PEOPLE["Ann"], private, f"Ann ({PEOPLE['Ann']})", said)


async def test_a_script_adds_an_app(tmp_path: Path) -> None:
    async with slack() as (between, url):
        words = ["slack", "--owner", PEOPLE["Ann"], "--set", f"api={url}", "--set", "view=chat"]
        words += ["--set", "token=env:BOT", "--set", "app_token=env:APP", "--set", "signing_secret="]
        secrets = {"BOT": TOKEN, "APP": APP_TOKEN}
        between.scopes = between.scopes.replace(",im:history", "")
        code, _, err = await _add(tmp_path, *words, **secrets)
        assert (code, "the app has no scope im:history" in err) == (2, True)
        assert not (tmp_path / "segue.toml").exists()
        between.scopes += ",im:history"
        code, out, err = await _add(tmp_path, *words, **secrets)
        assert code == 0, err
        assert "The app is @segue in Test Workspace" in out
        config = load(tmp_path / "segue.toml", secrets)
        assert [account.path for account in config.accounts] == ["slack.segue"]
        assert config.gateway.hosts == (Identity("slack", "segue", PEOPLE["Ann"]),)
        private = Address("slack", "segue", "", await between.private("Ann"))
        assert [seen.text for seen in await between.read(private)] == ["Hello. Write to me here, or type /segue help."]


async def _add(home: Path, *words: str, **environ: str) -> tuple[int, str, str]:
    async with asyncio.timeout(PATIENCE):
        return await done("add", *words, home=home, folder=Path.cwd(), typed="", **environ)
