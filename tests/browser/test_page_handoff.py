"""The page says where the conversation went."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page, expect

from tests.cli.screens import terminal
from tests.served import Served

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of forkpty.*:DeprecationWarning"),
]
expect.set_options(timeout=20_000)


@pytest_asyncio.fixture(loop_scope="module")
async def page(signed_in: BrowserContext) -> AsyncIterator[Page]:
    """The signed-in browser's tab; a mistake in its script fails the test."""
    wrong: list[str] = []
    [tab] = signed_in.pages
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    yield tab
    assert wrong == []


async def _says(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Message")
    await box.fill(text)
    await box.press("Enter")


async def test_a_conversation_goes_from_the_page_to_the_terminal(page: Page, gateway: Served) -> None:
    await _says(page, "say tea")
    await expect(page.locator(".said.agent:not(.thinks)")).to_have_text(["Agenttea"])
    await _says(page, "/handoff terminal")
    await expect(page.locator(".notice").last).to_contain_text("nobody looks at a terminal now")
    async with terminal(gateway.home) as here:
        # A terminal begins on the last session; it turns away from it first.
        here.types("/new\r")
        await here.shows("A new session.")
        await _says(page, "/handoff terminal")
        await here.shows("Here I am.")
        status = page.get_by_role("status").filter(has_text="This conversation goes on in terminal.")
        await expect(status).to_be_visible()
        await _says(page, "say milk")
        await expect(page.locator(".said.agent:not(.thinks)")).to_have_text(["Agentmilk"])
        await expect(status).to_be_hidden()
