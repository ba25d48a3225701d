"""The page names an account that can't be reached, for as long as it can't."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.seen import follow
from tests.served import served

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_account_that_cannot_be_reached_is_named(chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "token.txt").write_text("t")
    (tmp_path / "segue.toml").write_text(
        '[matrix.main]\nhomeserver = "http://127.0.0.1:1"\nuser = "@segue:example.org"\n'
        'token = "file:token.txt"\npublic = true\n'
    )
    async with served(tmp_path) as gateway:
        context = await chromium.new_context()
        page = await context.new_page()
        await follow(page, gateway.link)
        trouble = page.locator(".trouble")
        await expect(trouble).to_have_text("Not connected now: matrix.main", timeout=90_000)

        async def well(route: Route) -> None:
            accounts = {"matrix.main": {"reach": "connected", "why": ""}}
            await route.fulfill(json={"healthy": True, "problems": [], "accounts": accounts})

        await page.route("**/healthz", well)
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        await expect(trouble).to_have_count(0, timeout=90_000)
        await context.close()
