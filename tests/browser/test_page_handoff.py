"""The page says where the conversation went."""

import json
import re
from pathlib import Path

import pytest
import segno
from playwright.async_api import Browser, Page, WebSocketRoute, expect

from tests.browser.seen import follow, say
from tests.cli.screens import terminal
from tests.served import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="session")


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


LINK = "https://t.me/segue_bot?start=abcd-efgh-jkmn-pqrs-tvwx"
"""A link that fills its QR code, so that no library has a choice but the mask."""


async def test_a_button_says_how_to_take_a_conversation_along(chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    (tmp_path / "segue.toml").write_text(
        '[http.alpha]\nsecret = "file:secret"\ncallback = "http://127.0.0.1:1/"\n'
        'public = true\nhome = { chat = "lobby", kind = "group" }\n'
    )

    def invite_to_telegram_too(window: WebSocketRoute) -> None:
        gateway = window.connect_to_server()

        def told(text: str | bytes) -> None:
            frame = json.loads(text)
            if frame["kind"] == "invitation":
                frame["links"] = {"telegram.main": LINK}
            window.send(json.dumps(frame))

        gateway.on_message(told)

    async with served(tmp_path) as gateway:
        context = await chromium.new_context()
        page = await context.new_page()
        await page.route_web_socket("**/live", invite_to_telegram_too)
        await follow(page, gateway.link)
        await expect(page.get_by_role("button", name="Hand off")).to_have_count(0)
        await say(page, "say tea")
        await expect(page.locator(".said.agent:not(.thinks)")).to_have_text(["Agenttea"])
        await page.get_by_role("button", name="Hand off").click()
        nowhere = "No home is named yet where you are known. Type /home in a chat there, or /link yourself."
        invited = re.compile(r"To take it along to http\.alpha, send /link \S+ to me in a private chat there\.")
        await expect(page.locator(".notice")).to_have_text([nowhere, invited])
        await expect(page.locator(".notice").get_by_role("link")).to_have_attribute("href", LINK)
        drawn = await page.get_by_role("img", name="QR code for telegram.main").locator("path").get_attribute("d")
        dark = {(int(x) - 4, int(y) - 4) for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", drawn or "")}
        assert dark in [_drawn_by_segno(mask) for mask in range(8)]
        await context.close()


def _drawn_by_segno(mask: int) -> set[tuple[int, int]]:
    """The dark modules of the link's code as another library draws it."""
    rows = segno.make(LINK, error="l", boost_error=False, micro=False, mode="byte", mask=mask).matrix
    return {(x, y) for y, row in enumerate(rows) for x, module in enumerate(row) if module}
