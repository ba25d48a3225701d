"""A long conversation on the page: the end of it at first, and more whenever somebody scrolls up."""

import pytest
from playwright.async_api import Page, expect

from segue import AGENT, open_store
from segue.core.windows import HOSTS
from tests.browser.seen import said, say
from tests.served import Served

pytestmark = pytest.mark.asyncio(loop_scope="session")
MORE = 118
STANDS = "[...box.querySelectorAll('.agent')].find((e) => e.textContent.includes('cup 68')).getBoundingClientRect().y"


async def test_what_came_earlier_comes_in_above_and_what_is_read_stays_where_it_is(page: Page, gateway: Served) -> None:
    await say(page, "say tea")
    await expect(said(page, "agent")).to_have_count(1)
    async with await open_store(gateway.home / "segue.db") as store:
        [session] = await store.sessions(await store.person(HOSTS[0]))
        await store.say(session.id, AGENT, *(f"cup {n}" for n in range(MORE)))
    await page.reload()
    last = said(page, "agent").last
    await expect(last).to_have_text(f"Agentcup {MORE - 1}")
    await expect(last).to_be_in_viewport()
    await expect(said(page, "agent")).to_have_count(50)
    talk, first = page.get_by_role("log"), said(page, "agent").filter(has_text="cup 68")
    # Scrolling up fetches more: where it stood is read in the same breath.
    before = await talk.evaluate(f"(box) => {{ box.scrollTop = 100; return {STANDS}; }}")
    await expect(said(page, "agent")).to_have_count(100)
    after = await first.bounding_box()
    assert after is not None
    assert abs(after["y"] - before) < 40
    await talk.evaluate("(box) => { box.scrollTop = 0; }")
    await expect(said(page, "person")).to_have_text(["say tea"])
    await expect(said(page, "agent")).to_have_count(MORE + 1)
    await say(page, "say milk")
    await expect(last).to_have_text("Agentmilk")
    await expect(last).to_be_in_viewport()
