"""The door: links that work once, cookies that outlive a restart, a token that only the host can read."""

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.database.sqlite import Sqlite
from segue.runtime.retrying import Patient
from segue.runtime.windows.sign_in import Door, token_in
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


def code(door: Door) -> str:
    return door.link().removeprefix("/signin?code=")


def test_a_link_signs_one_browser_in_once() -> None:
    door = Door(KEY, "token")
    link = code(door)
    cookie = door.sign_in(link)
    assert cookie is not None
    assert door.browser(cookie)
    assert door.sign_in(link) is None


def test_every_browser_is_another_one() -> None:
    door = Door(KEY, "token")
    cookies = [door.sign_in(code(door)) or "" for _ in range(3)]
    assert len({door.browser(cookie) for cookie in cookies}) == 3


def test_a_link_works_for_ten_minutes() -> None:
    hours = Hours()
    door = Door(KEY, "token", hours)
    early, late = code(door), code(door)
    hours.now += 599
    assert door.sign_in(early) is not None
    hours.now += 2
    assert door.sign_in(late) is None


def test_old_links_are_forgotten() -> None:
    hours = Hours()
    door = Door(KEY, "token", hours)
    for _ in range(5):
        door.link()
    hours.now += 601
    door.link()
    assert len(door._links) == 1


@pytest.mark.parametrize("given", ["", "nonsense", "é", "\ud800"])
def test_no_other_code_signs_in(given: str) -> None:
    door = Door(KEY, "token")
    door.link()
    assert door.sign_in(given) is None


def test_a_forged_cookie_is_nobody_s() -> None:
    door = Door(KEY, "token")
    cookie = door.sign_in(code(door)) or ""
    browser, signature = cookie.split(".")
    other = Door(b"x" * 32, "token")
    assert other.browser(cookie) is None
    forged = [
        f"{browser}x.{signature}",
        f"{browser}.{signature[:-1]}",
        f"{browser}.",
        browser,
        f".{signature}",
        "",
        ".",
    ]
    forged += [f"{browser}.é", f"é.{signature}", f"{browser}.{signature}.x", f"\ud800.{signature}"]
    assert [given for given in forged if door.browser(given)] == []


async def test_a_cookie_outlives_a_restart(store: Store, tmp_path: Path) -> None:
    before = await Door.open(Patient(store.driver), tmp_path)
    cookie = before.sign_in(code(before)) or ""
    after = await Door.open(Patient(store.driver), tmp_path)
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
    door = Door(KEY, "token")
    assert door.is_terminal("Bearer token")
    assert not door.is_terminal(shown)
