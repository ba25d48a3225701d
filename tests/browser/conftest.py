"""The page in a real Chromium; a test that fails leaves what was on the screen in the folder that it names."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests import parts
from tests.browser.seen import box, follow
from tests.served import Served, served

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
expect.set_options(timeout=90_000)
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed  # type: ignore[attr-defined]  # what pluggy sends back
    return report


@pytest_asyncio.fixture(loop_scope="session")
async def gateway(tmp_path: Path) -> AsyncIterator[Served]:
    """A `segue serve` of the test's own."""
    async with served(tmp_path, "tests.troubled:agent") as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """A browser without a screen."""
    program = parts.chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=QUIET)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def signed_in(
    chromium: Browser, gateway: Served, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[BrowserContext]:
    """A browser that followed the link."""
    browser = await chromium.new_context()
    page = await browser.new_page()
    await follow(page, gateway.link)
    yield browser
    if request.node.stash.get(FAILED, False):
        for number, shown in enumerate(browser.pages):
            await shown.screenshot(path=tmp_path / f"page-{number}.png")
    await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(signed_in: BrowserContext) -> AsyncIterator[Page]:
    """The signed-in browser's tab; a mistake in its script fails the test."""
    wrong: list[str] = []
    [tab] = signed_in.pages
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    await expect(box(tab)).to_be_focused()
    yield tab
    assert wrong == []
