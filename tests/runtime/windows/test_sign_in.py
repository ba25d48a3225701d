"""Signing in: links that work once, cookies that outlive a restart, a token that only the host can read."""

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.database.sqlite import Sqlite
from segue.runtime.retrying import Patient
from segue.runtime.windows.sign_in import SignIn, token_in
from segue.store import Store

KEY = bytes(32)


class Hours:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store(await Sqlite.open(tmp_path / "segue.db")) as made:
        yield made


def code(sign_in: SignIn) -> str:
    return sign_in.link().removeprefix("/signin?code=")


def test_a_link_signs_one_browser_in_once() -> None:
    sign_in = SignIn(KEY, "token")
    link = code(sign_in)
    cookie = sign_in.sign_in(link)
    assert cookie is not None
    assert sign_in.browser(cookie)
    assert sign_in.sign_in(link) is None


def test_every_browser_is_another_one() -> None:
    sign_in = SignIn(KEY, "token")
    cookies = [sign_in.sign_in(code(sign_in)) or "" for _ in range(3)]
    assert len({sign_in.browser(cookie) for cookie in cookies}) == 3


def test_a_link_works_for_ten_minutes() -> None:
    hours = Hours()
    sign_in = SignIn(KEY, "token", hours)
    early, late = code(sign_in), code(sign_in)
    hours.now += 599
    assert sign_in.sign_in(early) is not None
    hours.now += 2
    assert sign_in.sign_in(late) is None


def test_old_links_are_forgotten() -> None:
    hours = Hours()
    sign_in = SignIn(KEY, "token", hours)
    for _ in range(5):
        sign_in.link()
    hours.now += 601
    sign_in.link()
    assert len(sign_in._links) == 1


@pytest.mark.parametrize("given", ["", "nonsense", "é", "\ud800"])
def test_no_other_code_signs_in(given: str) -> None:
    sign_in = SignIn(KEY, "token")
    sign_in.link()
    assert sign_in.sign_in(given) is None


def test_a_forged_cookie_is_nobody_s() -> None:
    sign_in = SignIn(KEY, "token")
    cookie = sign_in.sign_in(code(sign_in)) or ""
    browser, signature = cookie.rsplit(".", 1)
    later = browser.partition(".")[0] + ".99999999999"
    other = SignIn(b"x" * 32, "token")
    assert other.browser(cookie) is None
    forged = [
        f"{browser}x.{signature}",
        f"{later}.{signature}",
        f"{browser}.{signature[:-1]}",
        f"{browser}.",
        browser,
        f".{signature}",
        "",
        ".",
    ]
    forged += [f"{browser}.é", f"é.{signature}", f"{browser}.{signature}.x", f"\ud800.{signature}"]
    assert [given for given in forged if sign_in.browser(given)] == []


def test_a_browser_stays_signed_in_for_a_month() -> None:
    days = Hours()
    sign_in = SignIn(KEY, "token", now=days)
    cookie = sign_in.sign_in(code(sign_in)) or ""
    days.now += 30 * 86400 - 1
    assert sign_in.browser(cookie)
    days.now += 2
    assert sign_in.browser(cookie) is None


async def test_a_cookie_outlives_a_restart(store: Store, tmp_path: Path) -> None:
    before = await SignIn.open(Patient(store.driver), tmp_path)
    cookie = before.sign_in(code(before)) or ""
    after = await SignIn.open(Patient(store.driver), tmp_path)
    assert before.browser(cookie)
    assert after.browser(cookie) == before.browser(cookie)


def test_the_token_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    token = token_in(tmp_path)
    assert len(token) >= 32
    assert token_in(tmp_path) == token
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["token"]


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer ", "Bearer tokens", "bearer token", "token", "Bearer é"])
def test_only_the_token_opens_a_terminal(shown: str) -> None:
    sign_in = SignIn(KEY, "token")
    assert sign_in.is_terminal("Bearer token")
    assert not sign_in.is_terminal(shown)
