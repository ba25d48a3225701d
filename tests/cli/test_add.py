"""`segue add telegram`, against crabline."""

import asyncio
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from segue.config import load
from segue.core.lanes import Address, Identity, Kind, Place
from tests.cli.screens import Terminal
from tests.forge import done
from tests.served import PATIENCE
from tests.servers.crabline import BOT, TOKEN, Between, telegram


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[tuple[Between, str]]:
    (tmp_path / "server").mkdir()
    async with telegram(tmp_path / "server") as (between, url):
        yield between, url


def leftovers(home: Path) -> list[Path]:
    return [*home.glob("telegram.*"), *home.glob("segue.*")]


async def add(home: Path, *words: str, typed: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    async with asyncio.timeout(PATIENCE):
        code, out, err = await done("add", *words, home=home, folder=Path.cwd(), typed=typed, **environ)
    return subprocess.CompletedProcess(words, code, out, err)


async def test_a_script_adds_a_bot(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    (tmp_path / "segue.toml").write_text('# mine\n[agent]\nkind = "builtin"\n')
    words = ("telegram", "--owner", "501", "--set", "token=env:BOT_TOKEN", "--set", f"api={url}")
    added = await add(tmp_path, *words, BOT_TOKEN=TOKEN)
    assert added.returncode == 0, added.stderr
    assert f"@{BOT}" in added.stdout
    text = (tmp_path / "segue.toml").read_text()
    assert text.startswith("# mine\n")
    assert TOKEN not in text + added.stdout + added.stderr
    config = load(tmp_path / "segue.toml", {"BOT_TOKEN": TOKEN})
    assert [account.path for account in config.accounts] == [f"telegram.{BOT}"]
    assert config.gateway.hosts == (Identity("telegram", BOT, "501"),)
    assert between.read(Address("telegram", "bot", "", "501"))[0].text.startswith("Hello")
    again = await add(tmp_path, *words, BOT_TOKEN=TOKEN)
    assert (again.returncode, "it is there already" in again.stderr) == (2, True)
    assert (tmp_path / "segue.toml").read_text() == text


async def test_a_script_that_leaves_a_question_open_is_told_how_to_answer(tmp_path: Path) -> None:
    added = await add(tmp_path, "telegram")
    assert added.returncode == 2
    assert added.stderr == "Error: token: nobody is here to be asked. Use --set token=env:NAME.\n"
    assert leftovers(tmp_path) == []


@asynccontextmanager
async def adding(home: Path, *words: str) -> AsyncIterator[Terminal]:
    """Somebody adds a bot in a terminal."""
    here = Terminal(home, "add", "telegram", *words)
    try:
        yield here
    finally:
        await here.end()


async def test_a_person_presses_start_and_is_found(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    forum = await between.forum()
    between.tell({"update_id": 3, "message": "garbled"})
    async with adding(tmp_path, "--account", "home") as here:
        for asks, answer in (("token", TOKEN), ("public https address", ""), ("address of the Bot API", url)):
            await here.shows(asks)
            here.types(f"{answer}\r")
        await here.shows(f"Now open https://t.me/{BOT} and press Start")
        await here.until(lambda screen: screen.count("▄") + screen.count("▀") > 100)
        await between.says(forum, "hello, all", who=502)
        await between.says("502", "/start", who=502)
        await here.shows("Person 502 (502) wrote. Is this you?")
        here.types("n\r")
        await here.shows("Then somebody else found it first.")
        await between.says("501", "/start")
        await here.shows("Person 501 (501) wrote. Is this you?")
        here.types("y\r")
        assert await here.leaves() == 0
        assert TOKEN not in here.text
        assert "Said hello to you on Telegram." in here.text
    secret = tmp_path / "telegram.home.token"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert TOKEN not in (tmp_path / "segue.toml").read_text()
    config = load(tmp_path / "segue.toml", {})
    [account] = config.accounts
    assert account.path == "telegram.home"
    mine = Address("telegram", "home", "", "501")
    assert config.gateway.hosts == (Identity("telegram", "home", "501"),)
    assert config.gateway.accounts["telegram", "home"].home == Place(mine, Kind.DM)
    assert between.read(mine)[0].text.startswith("Hello")
    # What they wrote to be found is nothing that the gateway answers.
    newest = max(update["update_id"] for update in between.told)
    offsets = [body.get("offset") for method, body in between.calls if method == "getUpdates"]
    assert offsets[-1] == str(newest + 1)


async def asked_again(here: Terminal, times: int) -> None:
    """Wait until the prompt stands below the last complaint."""
    await here.until(lambda screen: screen.count("Ctrl-C.") == times and screen.rstrip().endswith(":"))


async def test_a_mistyped_token_is_asked_for_again_and_leaves_nothing(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    _, url = there
    async with adding(tmp_path, "--set", f"api={url}", "--set", "webhook=") as here:
        await here.shows("token")
        here.types("12345\r")
        await here.shows("token: it isn't a bot's token.")
        # What is typed before it is asked for again is dropped, as for any password.
        await asked_again(here, 1)
        here.types(f"{TOKEN}x\r")
        await here.shows("Telegram doesn't know the token.")
        await asked_again(here, 2)
        assert leftovers(tmp_path) == []
        here.types(f"{TOKEN}\r")
        await here.shows(f"Now open https://t.me/{BOT} and press Start")
        here.types("\x03")
        assert await here.leaves() != 0
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(("words", "keys"), [((), "\x03"), (("--wait", "1"), "")])
async def test_nobody_comes_and_it_is_said_how_to_go_on(
    there: tuple[Between, str], tmp_path: Path, words: tuple[str, ...], keys: str
) -> None:
    given = ("--set", f"token={TOKEN}", "--set", f"api={there[1]}")
    async with adding(tmp_path, *given, *words) as here:
        await here.shows("Waiting for you there.")
        here.types(keys)
        assert await here.leaves() == 1
        assert "or name your own user id there: --owner ID." in here.text.replace("\n", "")
        assert "Traceback" not in here.text
    assert leftovers(tmp_path) == []


async def test_answers_may_come_through_a_pipe(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    await between.says("501", "I wrote before")
    added = await add(tmp_path, "telegram", typed=f"{TOKEN}\n\n{url}\ny\n")
    assert added.returncode == 0, added.stderr
    assert "▄" not in added.stdout
    assert load(tmp_path / "segue.toml", {}).gateway.hosts == (Identity("telegram", BOT, "501"),)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("telegram", "--set", "token=424242:not-the-token-at-all"), "token"),
        (("telegram", "--set", "token=env:NOT_THERE"), "NOT_THERE"),
        (("telegram", "--set", "tokn=x"), "tokn"),
        (("telegram", "--set", "token"), "no value"),
        (("telegramm",), "there is no"),
        (("http",), "can't be added"),
    ],
)
async def test_a_mistake_writes_nothing(
    there: tuple[Between, str], tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    more = ("--set", f"api={there[1]}") if "--set" in words else ()
    added = await add(tmp_path, *words, *more, "--public")
    assert added.returncode in {1, 2}
    assert says in added.stderr
    assert leftovers(tmp_path) == []


async def test_an_account_that_nobody_may_talk_to_is_not_written(there: tuple[Between, str], tmp_path: Path) -> None:
    added = await add(tmp_path, "telegram", "--set", f"token={TOKEN}", "--set", f"api={there[1]}")
    assert (added.returncode, "nobody may talk to it" in added.stderr) == (2, True)
    assert leftovers(tmp_path) == []


async def test_what_a_script_left_out_is_no_question_for_a_terminal(tmp_path: Path) -> None:
    here = Terminal(
        tmp_path, "add", "matrix", "--set", "homeserver=https://example.org", "--set", "user=@a:example.org"
    )
    try:
        await here.shows("there is neither a password nor a token")
        assert await here.leaves() == 2
    finally:
        await here.end()


async def test_a_host_without_an_address_is_said_in_words(tmp_path: Path) -> None:
    words = ("--set", f"token={TOKEN}", "--set", "api=http://nobody.invalid", "--public")
    added = await add(tmp_path, "telegram", *words)
    assert "can't be reached (its name can't be looked up)" in added.stderr
