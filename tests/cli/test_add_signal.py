"""`segue add signal`, against crabline and what stands before it: linked by a code, or taken as it is."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.config import load
from segue.core.lanes import Address, Identity, Kind, Place
from tests.cli.screens import Terminal
from tests.forge import done
from tests.served import PATIENCE
from tests.servers.signal import LINK, NUMBER, OWN, PEOPLE, Between, signal

ANN = PEOPLE["Ann"]
There = tuple[Between, str]


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[There]:
    (tmp_path / "server").mkdir()
    async with signal(tmp_path / "server") as (between, url):
        yield between, url


async def add(home: Path, *words: str) -> tuple[int, str, str]:
    async with asyncio.timeout(PATIENCE):
        return await done("add", "signal", *words, home=home, folder=Path.cwd(), typed="")


async def test_a_phone_scans_the_code_and_its_person_is_found(there: There, tmp_path: Path) -> None:
    between, url = there
    between.accounts = []
    here = Terminal(tmp_path, "add", "signal")
    try:
        for asks, answer in (("signal-cli daemon", url), ("phone number", ""), ("agent's own number", "")):
            await here.shows(asks)
            here.types(f"{answer}\r")
        await here.shows(f"Scan this code with the phone: {LINK}")
        await here.until(lambda screen: screen.count("▄") + screen.count("▀") > 100)
        between.scanned.set()
        await here.shows(f"Now open https://signal.me/#p/{NUMBER}")
        await between.listened()
        await between.says("hello, all", "Ben", between.group())
        await between.says("hello")
        await here.shows("wrote. Is this you?")
        here.types("y\r")
        assert await here.leaves() == 0
        assert f"Ann ({ANN.number}, {ANN.uuid})" in here.text.replace("\n", "")
        assert "Said hello to you on Signal." in here.text
    finally:
        await here.end()
    config = load(tmp_path / "segue.toml", {})
    [account] = config.accounts
    assert account.path == "signal.main"
    assert config.gateway.hosts == (Identity("signal", "main", ANN.uuid),)
    assert account.settings.home == Place(Address("signal", "main", "", ANN.uuid), Kind.DM)
    assert between.texts(ANN.uuid) == ["Hello. Write to me, or type /help."]


async def test_a_script_takes_an_account_that_the_daemon_has(there: There, tmp_path: Path) -> None:
    between, url = there
    words = ("--owner", OWN, "--set", f"daemon={url}", "--set", "hears=mine")
    code, out, err = await add(tmp_path, *words)
    assert (code, err) == (0, "")
    assert "Only what you write in Note to Self is for the agent." in out
    assert 'hears = "notes"' in (tmp_path / "segue.toml").read_text()
    assert between.texts(OWN) == ["Hello. Write to me, or type /help."]
    assert between.listeners == 0, "what waited for somebody to listen is gone"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--set", "number=0151"), "is no phone number"),
        (("--set", "number=+4915199999"), "has no account +4915199999"),
        (("--set", "hears=me"), 'Say "agent" or "mine".'),
        (("--set", "daemon=http://127.0.0.1:9"), "Start one: signal-cli daemon --http"),
    ],
)
async def test_a_mistake_is_named_and_writes_nothing(
    there: There, tmp_path: Path, more: tuple[str, ...], says: str
) -> None:
    daemon = () if "daemon" in more[1] else ("--set", f"daemon={there[1]}")
    code, _, err = await add(tmp_path, "--owner", OWN, *daemon, *more)
    assert code != 0
    assert says in err
    assert not (tmp_path / "segue.toml").exists()


async def test_a_daemon_with_several_accounts_is_asked_which(there: There, tmp_path: Path) -> None:
    between, url = there
    between.accounts = [NUMBER, "+4915100000009"]
    code, _, err = await add(tmp_path, "--owner", OWN, "--set", f"daemon={url}")
    assert code != 0
    assert f"the daemon has {NUMBER}, +4915100000009" in err
