"""The page says where the conversation went."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.seen import say
from tests.cli.screens import terminal
from tests.served import Served, served

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of forkpty.*:DeprecationWarning"),
]


async def test_a_conversation_goes_from_the_page_to_the_terminal(page: Page, gateway: Served) -> None:
    await say(page, "say tea")
    await expect(page.locator(".said.agent:not(.thinks)")).to_have_text(["Agenttea"])
    await say(page, "/handoff terminal")
    await expect(page.locator(".notice").last).to_contain_text("nobody looks at a terminal now")
    async with terminal(gateway.home) as here:
        # A terminal begins on the last session; it turns away from it first.
        here.types("/new\r")
        await here.shows("A new session.")
        await say(page, "/handoff terminal")
        await here.shows("Here I am.")
        status = page.get_by_role("status").filter(has_text="This conversation goes on in terminal.")
        await expect(status).to_be_visible()
        await say(page, "say milk")
        await expect(page.locator(".said.agent:not(.thinks)")).to_have_text(["Agentmilk"])
        await expect(status).to_be_hidden()


async def test_the_page_says_how_to_take_a_conversation_along(chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    (tmp_path / "segue.toml").write_text(
        '[http.alpha]\nsecret = "file:secret"\ncallback = "http://127.0.0.1:1/"\n'
        'public = true\nhome = { chat = "lobby", kind = "group" }\n'
    )
    async with served(tmp_path) as gateway:
        context = await chromium.new_context()
        page = await context.new_page()
        await page.goto(gateway.link)
        await say(page, "say tea")
        await expect(page.locator(".said.agent:not(.thinks)")).to_have_text(["Agenttea"])
        await say(page, "/handoff")
        nowhere = "No home is named yet where you are known. Type /home in a chat there, or /link yourself."
        invited = re.compile(r"^To take it along to http\.alpha, send /link \S+ to me in a private chat there\.")
        await expect(page.locator(".notice")).to_have_text([nowhere, invited])
        await context.close()
