"""The page as people use it, in a real browser against a real gateway."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from segue import AGENT, open_store
from segue.core.lanes import Identity
from segue.core.messages import Aside, File, Text
from segue.core.windows import HOSTS
from segue.runtime.files.folder import Folder
from tests.browser.seen import box, follow, said, say
from tests.served import PATIENCE, Served

pytestmark = pytest.mark.asyncio(loop_scope="session")
AA = 4.5
"""The contrast that everybody can read."""
READ = (
    ".said.person, .said.agent p, .said code, .said a, .said blockquote p, .notice, .state, h1, "
    "nav li a, nav small, .at, .day, .new, textarea, .say button"
)
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one dot."""
CONTRAST = """
(element) => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((n) => (n /= 255) <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  let under = element;
  const back = (one) => numbers(getComputedStyle(one).backgroundColor);
  while (back(under)[3] === 0 && under.parentElement) under = under.parentElement;
  const [one, two] = [light(numbers(getComputedStyle(element).color)), light(back(under))].sort((a, b) => b - a);
  return (one + 0.05) / (two + 0.05);
}
"""


async def test_what_is_said_is_answered_and_the_answer_grows(page: Page) -> None:
    await say(page, "count to 6 slowly")
    growing = page.locator(".said.agent[aria-busy=true]")
    await expect(growing).to_have_text(re.compile(r"1, 2"))
    await expect(page.get_by_role("status")).to_have_text("Answering…")
    await expect(said(page, "agent")).to_have_text("Agent1, 2, 3, 4, 5, 6.")
    await expect(growing).to_have_count(0)
    await expect(said(page, "person")).to_have_text(["count to 6 slowly"])
    await expect(page.get_by_role("status")).to_have_text("")


async def test_the_end_of_a_long_answer_stays_in_sight(page: Page) -> None:
    await say(page, "say " + "tea-and-milk, " * 300 + "\n\nend")
    end = said(page, "agent").get_by_text("end", exact=True)
    await expect(end).to_be_in_viewport()
    # A phone that is turned, or shows its keyboard, may scroll before anything else is told of the new size.
    shrink = "(talk) => { talk.style.marginBottom = '300px'; talk.dispatchEvent(new Event('scroll')); }"
    await page.locator(".talk").evaluate(shrink)
    await expect(end).to_be_in_viewport()
    await page.locator(".talk").evaluate("(talk) => { talk.scrollTop = 0; }")
    await expect(said(page, "person").first).to_be_in_viewport()
    await say(page, "say more")
    await expect(said(page, "agent").get_by_text("more")).to_be_in_viewport()


async def test_a_second_tab_shows_the_same_and_what_waits(
    page: Page, signed_in: BrowserContext, gateway: Served
) -> None:
    await say(page, "say tea")
    await expect(said(page, "agent")).to_have_text(["Agenttea"])
    other = await signed_in.new_page()
    await other.goto(gateway.url)
    await expect(said(other, "agent")).to_have_text(["Agenttea"])
    await say(page, "hang")
    await expect(said(other, "person")).to_have_text(["say tea", "hang"])
    await say(other, "/stop")
    await expect(other.locator(".thinks")).to_have_count(0)
    await expect(page.locator(".thinks")).to_have_count(0)
    await page.get_by_role("button", name="New session").click()
    await expect(said(other, "person")).to_have_count(0)
    await expect(said(page, "person")).to_have_count(0)


async def test_what_was_typed_while_the_gateway_was_dead_is_sent_once(page: Page, gateway: Served) -> None:
    await say(page, "remember the tea is in the blue tin")
    await expect(said(page, "agent")).to_have_count(1)
    await gateway.end()
    await expect(page.get_by_role("status")).to_have_text("Connecting…")
    await say(page, "what do you remember?")
    await expect(page.locator(".said.unsent")).to_have_text(["what do you remember?"])
    await gateway.start()
    await expect(said(page, "agent").nth(1)).to_contain_text("blue tin")
    await expect(page.locator(".said.unsent")).to_have_count(0)
    await page.reload()
    await expect(said(page, "person")).to_have_text(["remember the tea is in the blue tin", "what do you remember?"])
    await expect(said(page, "agent")).to_have_count(2)


async def test_on_a_narrow_screen_the_menu_opens_the_list(page: Page) -> None:
    await say(page, "say tea")
    await expect(said(page, "agent")).to_have_count(1)
    await page.set_viewport_size({"width": 390, "height": 800})
    sessions = page.get_by_role("navigation", name="Sessions")
    await expect(sessions).to_be_hidden()
    wide = await page.evaluate("document.documentElement.scrollWidth")
    assert wide == 390
    menu = page.get_by_role("button", name="Sessions")
    await menu.click()
    await expect(sessions).to_be_visible()
    await expect(sessions).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(sessions).to_be_hidden()
    await expect(menu).to_be_focused()
    await menu.click()
    await sessions.get_by_role("link", name="tea").click()
    await expect(sessions).to_be_hidden()
    await expect(said(page, "agent")).to_have_text(["Agenttea"])


async def test_a_browser_that_is_not_signed_in_is_told_how(chromium: Browser, gateway: Served) -> None:
    stranger = await chromium.new_context()
    page = await stranger.new_page()
    answer = await page.goto(gateway.url)
    assert answer is not None
    assert answer.status == 401
    await expect(page.get_by_text("This browser isn't signed in.")).to_be_visible()
    await follow(page, f"{gateway.url}/signin?code=nonsense")
    await expect(page.get_by_text("This browser isn't signed in.")).to_be_visible()


async def test_signing_out_while_the_page_is_open_shows_the_way_in(
    page: Page, signed_in: BrowserContext, gateway: Served
) -> None:
    await signed_in.clear_cookies()
    await gateway.end()
    await gateway.start()
    await expect(page.get_by_text("This browser isn't signed in.")).to_be_visible()


async def test_a_button_signs_this_browser_out(page: Page) -> None:
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_text("This browser isn't signed in.")).to_be_visible()


async def test_the_keyboard_is_enough(page: Page) -> None:
    await page.keyboard.type("say one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("two")
    await expect(box(page)).to_have_value("say one\ntwo")
    await expect(said(page, "person")).to_have_count(0)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Send")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(said(page, "person")).to_have_text(["say one\ntwo"])
    await expect(box(page)).to_be_focused()
    await expect(said(page, "agent")).to_have_text(["Agentone\ntwo"])
    reached = []
    for _ in range(9):
        await page.keyboard.press("Shift+Tab")
        focused = page.locator(":focus")
        reached.append(" ".join((await focused.get_attribute("aria-label") or await focused.inner_text()).split()))
        ring = await focused.evaluate("(element) => getComputedStyle(element).outlineStyle")
        assert ring == "solid"
    tools = ["Close say one two", "Rename say one two", "say one two"]
    assert reached == [
        "Copy this answer",
        "Conversation",
        "Hand off",
        "Sign out",
        "New session",
        *tools,
        "Search your sessions",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_everything_can_be_read(page: Page, scheme: str) -> None:
    await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of the two
    await say(page, "say `code`, [a link](https://example.org) and\n> a quote")
    await expect(said(page, "agent").locator("a")).to_be_visible()
    await say(page, "/title Tea")
    await expect(page.locator(".notice")).to_be_visible()
    await say(page, "hang")
    await expect(page.get_by_role("status")).to_have_text("Answering…")
    await box(page).fill("more")
    seen = {}
    for what in READ.split(", "):
        seen[what] = await page.locator(what).first.evaluate(CONTRAST)
    assert {what: ratio for what, ratio in seen.items() if ratio < AA} == {}


async def test_a_turn_can_be_stopped(page: Page) -> None:
    await say(page, "hang")
    await page.get_by_role("button", name="Stop").click()
    await expect(page.get_by_role("button", name="Send")).to_be_disabled()
    await expect(box(page)).to_be_focused()
    await say(page, "say alive")
    await expect(said(page, "agent").last).to_have_text("Agentalive")


async def test_an_export_can_be_saved(page: Page, gateway: Served) -> None:
    await say(page, "say tea")
    await expect(said(page, "agent")).to_have_count(1)
    await say(page, "/title Tea & <cake>")
    await say(page, "/export")
    async with page.expect_download() as saving:
        await page.locator(".notice a").click()
    saved = await saving.value
    assert "say tea" in (await asyncio.to_thread(Path.read_text, await saved.path()))
    where = await page.locator(".notice a").get_attribute("href")
    kept = await page.request.get(f"{gateway.url}{where}")
    assert kept.headers["content-disposition"].startswith("attachment")
    assert kept.headers["x-content-type-options"] == "nosniff"
    await page.context.clear_cookies()
    assert (await page.request.get(f"{gateway.url}{where}")).status == 401


async def test_pictures_are_seen_and_other_files_can_be_saved(page: Page, gateway: Served) -> None:
    await say(page, "say tea")
    await expect(said(page, "agent")).to_have_count(1)

    async def content() -> AsyncIterator[bytes]:
        yield DOT

    async with await open_store(gateway.home / "segue.db") as store:
        kept = await Folder(gateway.home).keep("cow.png", "image/png", content())
        [session] = await store.sessions(await store.person(HOSTS[0]))
        page_of_theirs = File("cow.html", "text/html", kept.where)
        elsewhere = File("moo.ogg", "audio/ogg", "https://example.org/moo")
        await store.say(session.id, AGENT, (Text("look"), kept, page_of_theirs, elsewhere))
    await page.reload()
    answer = said(page, "agent").last
    picture = answer.get_by_role("img", name="cow.png")
    await expect(picture).to_be_visible()
    await expect(picture).to_have_js_property("naturalWidth", 1)
    await expect(answer.get_by_role("link")).to_have_count(2)
    await expect(answer).to_contain_text("moo.ogg")
    where = await answer.get_by_role("link", name="cow.html").get_attribute("href")
    assert (await page.request.get(f"{gateway.url}{where}")).headers["content-type"] == "application/octet-stream"


async def test_what_can_be_typed_is_offered(page: Page) -> None:
    offered = page.get_by_role("option")
    await box(page).fill("/re")
    await expect(offered).to_have_text(
        [re.compile(f"^/{name} ") for name in ("resume", "redo", "retry", "rewind", "revoke")]
    )
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Tab")
    await expect(box(page)).to_have_value("/retry ")
    await expect(offered).to_have_count(0)
    await say(page, "tea")
    await say(page, "/title Tea time")
    await expect(page.get_by_role("heading", name="Tea time")).to_be_visible()
    await box(page).fill("/resume te")
    await expect(offered).to_have_text(re.compile("^Tea time"))
    await offered.click()
    await expect(box(page)).to_have_value("/resume Tea time")
    await box(page).fill("/")
    await page.keyboard.press("ArrowUp")
    await expect(page.get_by_role("option", selected=True)).to_be_in_viewport()
    await expect(page.get_by_role("option", selected=True)).to_have_text(re.compile("^/help "))
    await page.keyboard.press("Escape")
    await expect(offered).to_have_count(0)


async def test_what_was_said_has_its_time_and_its_day(page: Page, gateway: Served) -> None:
    await say(page, "say tea")
    await expect(said(page, "agent")).to_have_count(1)
    await expect(page.locator(".day")).to_have_text(["today"])
    async with await open_store(gateway.home / "segue.db") as store:
        [session] = await store.sessions(await store.person(HOSTS[0]))
        told = [e.at for e in await store.path(session.id) if not any(isinstance(part, Aside) for part in e.parts)]
    times = page.locator(".talk time")
    shown = [await time.get_attribute("datetime") or "" for time in await times.all()]
    assert [datetime.fromisoformat(time).timestamp() for time in shown] == pytest.approx(told, abs=0.01)
    assert re.fullmatch(r"\d\d:\d\d( [AP]M)?", await times.first.inner_text())


async def test_an_answer_can_be_copied_as_it_was_written(page: Page) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await say(page, "say **tea**")
    await expect(said(page, "agent")).to_have_text(["Agenttea"])
    await page.get_by_role("button", name="Copy this answer").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == "**tea**"


async def test_other_people_stand_apart_with_their_names(page: Page, gateway: Served) -> None:
    await say(page, "say tea")
    await expect(said(page, "agent")).to_have_count(1)
    async with await open_store(gateway.home / "segue.db") as store:
        [session] = await store.sessions(await store.person(HOSTS[0]))
        await store.say(session.id, await store.person(Identity("http", "alpha", "u2"), "Ann"), "milk, please")
        await store.say(session.id, await store.person(HOSTS[0], "Host"), "from the terminal")
    await page.reload()
    await expect(said(page, "person")).to_have_text(["say tea", "Annmilk, please", "from the terminal"])
    await expect(page.locator(".said.other")).to_have_text(["Annmilk, please"])
    mine, other = [await said(page, "person").nth(n).bounding_box() for n in (0, 1)]
    assert mine is not None
    assert other is not None
    assert other["x"] < mine["x"]


async def test_an_answer_that_failed_can_be_asked_again_and_explained(page: Page) -> None:
    await say(page, "fail")
    failed = page.get_by_role("group", name="An answer failed")
    await expect(failed).to_contain_text("/retry asks again")
    await failed.get_by_role("button", name="Why").click()
    await expect(page.locator(".notice")).to_have_count(1)
    await failed.get_by_role("button", name="Retry").click()
    await expect(failed.get_by_role("button", name="Asking again …")).to_be_disabled()
    await expect(failed.get_by_role("button", name="Retry")).to_be_enabled()
    await say(page, "say tea")
    await expect(said(page, "agent")).to_have_text(["Agenttea"])
    await expect(failed).to_have_count(1)
    await expect(failed.get_by_role("button")).to_have_count(0)


MEANWHILE = """async () => {
  const { reduce, start } = await import("/page/frames.js");
  const entries = [{ role: "person" }, { role: "person" }, { role: "agent" }];
  const waiting = { kind: "waiting", turns: [{}] }, notice = (text) => ({ kind: "notice", text });
  const { notices } = [waiting, notice("a"), { kind: "entries", entries }, notice("b")].reduce(reduce, start);
  return notices.map(({ text, after }) => [text, after]);
}"""


async def test_a_question_is_a_card_and_notices_stand_where_they_came(page: Page) -> None:
    await say(page, "ask")
    card = page.get_by_role("form", name="A question")
    await expect(card).to_contain_text("Milk or lemon?")
    await card.get_by_role("button", name="lemon").click()
    await expect(said(page, "agent")).to_have_text(["AgentTea with lemon."])
    await expect(card).to_have_count(0)
    # What is noticed before an answer is whole stands in front of that, behind what was asked.
    assert await page.evaluate(MEANWHILE) == [["a", 2], ["b", 3]]


async def test_an_earlier_session_is_found_and_opened(page: Page) -> None:
    await say(page, "say jasmine tea")
    await expect(said(page, "agent")).to_have_count(1)
    await page.get_by_role("button", name="New session").click()
    await expect(said(page, "agent")).to_have_count(0)
    await say(page, "say coffee")
    await expect(said(page, "agent")).to_have_text(["Agentcoffee"])
    sessions = page.get_by_role("navigation", name="Sessions")
    search = page.get_by_role("searchbox")
    # What was just said is found a moment later.
    async with asyncio.timeout(PATIENCE):
        while await sessions.get_by_role("link").all_inner_texts() != ["jasmine tea"]:
            await search.fill("")
            await search.fill("jasmine")
            await page.wait_for_timeout(300)
    await sessions.get_by_role("link", name="jasmine").click()
    await expect(said(page, "agent")).to_have_text(["Agentjasmine tea"])
    await search.fill("nowhere")
    await expect(sessions.get_by_text("Nothing found.")).to_be_visible()
