"""Writing on the page: on a phone, and more than a message can hold."""

import json
import re
from importlib.resources import files

import pytest
from playwright.async_api import Browser, Page, WebSocketRoute, expect

from segue.runtime.server import listeners
from tests.browser.seen import box, follow, said, say
from tests.served import Served

DRAWN = """() => {
  window.drawn = 0;
  const all = { subtree: true, childList: true, characterData: true };
  new MutationObserver(() => window.drawn++).observe(document.querySelector(".talk"), all);
}"""
LIVE = files("segue").joinpath("page", "live.js")
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_paste_that_is_too_large_is_refused_in_words(page: Page) -> None:
    [largest] = re.findall(r"const LARGEST = (\d+) \* 1024 \* 1024;", LIVE.read_text())
    assert int(largest) * 1024**2 == listeners.LARGEST_FRAME
    await box(page).evaluate("(box) => { box.value = 'é'.repeat(2_500_000); box.dispatchEvent(new Event('input')); }")
    await box(page).press("Enter")
    alert = page.get_by_role("alert")
    await expect(alert).to_have_text("That has 4.8 MB, and a message can have 4.0. Shorten it, or send it in parts.")
    assert len(await box(page).input_value()) == 2_500_000
    await say(page, "say tea")
    await expect(alert).to_have_count(0)
    await expect(said(page, "agent")).to_have_text(["Agenttea"])


async def _height(page: Page) -> float:
    """The height of the field that messages are written in."""
    placed = await box(page).bounding_box()
    assert placed is not None
    return placed["height"]


async def test_a_phone_has_new_lines(chromium: Browser, gateway: Served) -> None:
    phone = await chromium.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    page = await phone.new_page()
    await follow(page, gateway.link)
    await expect(page.get_by_placeholder("Write a message")).to_be_visible()
    empty = await _height(page)
    await box(page).fill("say one")
    await box(page).press("Enter")
    await page.keyboard.type("two")
    await expect(box(page)).to_have_value("say one\ntwo")
    assert empty < await _height(page)
    await page.get_by_role("button", name="Send").tap()
    await expect(said(page, "person")).to_have_text(["say one\ntwo"])
    await phone.close()


async def test_an_answer_that_comes_quickly_is_not_drawn_for_every_word(chromium: Browser, gateway: Served) -> None:
    words = 500

    def answer_quickly(window: WebSocketRoute) -> None:
        def told(frame: str | bytes) -> None:
            window.send(frame)
            if json.loads(frame).get("turns"):
                for count in range(words):
                    window.send(json.dumps({"kind": "growing", "text": "tea ", "begins": not count}))

        window.connect_to_server().on_message(told)

    context = await chromium.new_context()
    page = await context.new_page()
    await page.route_web_socket("**/live", answer_quickly)
    await follow(page, gateway.link)
    await expect(box(page)).to_be_focused()
    await page.evaluate(DRAWN)
    await say(page, "hang")
    await expect(page.locator("[aria-busy=true]")).to_contain_text("tea " * words)
    assert 0 < await page.evaluate("drawn") < words / 4
    await context.close()
