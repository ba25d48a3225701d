"""Sessions on the page: each has an address, and the list renames, closes and opens them."""

import pytest
from playwright.async_api import Browser, Page, expect

from segue.cli.terminal.client import ask
from tests.browser.seen import box, follow, said, say
from tests.served import Served

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def two(page: Page) -> tuple[str, str]:
    """Talk about tea, then in another session about coffee; returns the address of each."""
    await say(page, "say tea")
    await expect(said(page, "agent")).to_have_text(["Agenttea"])
    tea = page.url
    await page.get_by_role("button", name="New session").click()
    await expect(said(page, "agent")).to_have_count(0)
    await say(page, "say coffee")
    await expect(said(page, "agent")).to_have_text(["Agentcoffee"])
    return tea, page.url


async def test_each_session_has_an_address(page: Page, gateway: Served) -> None:
    tea, coffee = await two(page)
    assert len({tea, coffee, f"{gateway.url}/"}) == 3
    await page.goto("about:blank")
    await page.goto(tea)
    await expect(said(page, "agent")).to_have_text(["Agenttea"])
    await page.get_by_role("navigation").get_by_role("link", name="coffee").click()
    await expect(said(page, "agent")).to_have_text(["Agentcoffee"])
    await page.go_back()
    await expect(said(page, "agent")).to_have_text(["Agenttea"])
    await page.go_forward()
    await expect(said(page, "agent")).to_have_text(["Agentcoffee"])
    await page.reload()
    await expect(said(page, "agent")).to_have_text(["Agentcoffee"])
    await expect(page.locator(".notice")).to_have_count(0)
    assert page.url == coffee


async def test_an_address_survives_signing_in(page: Page, chromium: Browser, gateway: Served) -> None:
    tea, _ = await two(page)
    other = await chromium.new_context()
    tab = await other.new_page()
    await tab.goto(tea)
    await expect(tab.get_by_text("This browser isn't signed in.")).to_be_visible()
    await follow(tab, (await ask(gateway.home, "POST", "/link")).json()["link"])
    await expect(said(tab, "agent")).to_have_text(["Agenttea"])
    await expect(tab).to_have_url(tea)
    await other.close()


async def test_a_session_without_a_title_goes_by_its_first_question(page: Page) -> None:
    await expect(page.get_by_role("heading", name="Untitled session")).to_be_visible()
    await say(page, "say tea")
    await expect(page.get_by_role("heading", name="say tea")).to_be_visible()
    await expect(page).to_have_title("say tea · Segue")


async def test_an_address_that_leads_nowhere_says_so_and_goes(page: Page, gateway: Served) -> None:
    await say(page, "say tea")
    await expect(said(page, "agent")).to_have_count(1)
    tea = page.url
    await page.goto("about:blank")
    await page.goto(f"{gateway.url}/#nowhere")
    await expect(page.locator(".notice")).to_have_count(1)
    await expect(page).to_have_url(tea)
    await expect(said(page, "agent")).to_have_text(["Agenttea"])


async def test_sessions_are_renamed_in_the_list(page: Page) -> None:
    await two(page)
    sessions = page.get_by_role("navigation", name="Sessions")
    await sessions.get_by_role("button", name="Rename say coffee").click()
    name = sessions.get_by_role("textbox", name="Title")
    await expect(name).to_be_focused()
    await name.fill("Never")
    await name.press("Escape")
    await expect(sessions.get_by_role("link", name="coffee")).to_be_visible()
    await sessions.get_by_role("button", name="Rename say coffee").click()
    await name.fill("Beans")
    await name.press("Enter")
    await expect(page.get_by_role("heading", name="Beans")).to_be_visible()
    await sessions.get_by_role("button", name="Rename say tea").click()
    await name.fill("Leaves")
    await name.press("Enter")
    await expect(page.get_by_role("heading", name="Leaves")).to_be_visible()
    await expect(said(page, "agent")).to_have_text(["Agenttea"])
    await expect(sessions.get_by_role("link", name="Beans")).to_be_visible()
    await expect(box(page)).to_be_visible()


async def test_sessions_are_closed_and_opened_in_the_list(page: Page) -> None:
    await two(page)
    sessions = page.get_by_role("navigation", name="Sessions")
    tea, coffee = (sessions.get_by_role("link", name=name) for name in ("tea", "coffee"))
    await sessions.get_by_role("button", name="Close say tea").click()
    await expect(tea).to_be_hidden()
    await expect(said(page, "agent")).to_have_text(["Agentcoffee"])
    await sessions.get_by_text("Closed", exact=True).click()
    await expect(tea).to_be_visible()
    await expect(sessions.get_by_role("button", name="Close say tea")).to_have_count(0)
    await tea.click()
    await expect(said(page, "agent")).to_have_text(["Agenttea"])
    await expect(sessions.get_by_text("Closed", exact=True)).to_have_count(0)
    await sessions.get_by_role("button", name="Close say tea").click()
    await expect(said(page, "agent")).to_have_count(0)
    await expect(coffee).to_be_visible()
    await say(page, "say milk")
    await expect(said(page, "agent")).to_have_text(["Agentmilk"])
