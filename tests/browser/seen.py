"""The page as a person uses it: where they write, and what they see."""

from playwright.async_api import Locator, Page


async def follow(page: Page, link: str) -> None:
    """Open a sign-in link and press its button."""
    await page.goto(link)
    await page.get_by_role("button", name="Sign in").click()


def box(page: Page) -> Locator:
    """The field that messages are written in."""
    return page.get_by_role("textbox", name="Message")


def said(page: Page, role: str) -> Locator:
    """All that a person, the agent or the gateway said."""
    return page.locator(f".said.{role}:not(.thinks)")


async def say(page: Page, text: str) -> None:
    """Write and send a message."""
    await box(page).fill(text)
    await box(page).press("Enter")
