"""`segue add whatsapp`, against crabline: what each road costs is said first, and only its own questions are asked."""

import re
import stat
from pathlib import Path

from segue.adapters.whatsapp import WhatsAppAccount
from segue.config import load
from segue.core.lanes import Identity
from tests.cli.screens import Terminal
from tests.cli.test_add import add
from tests.servers.whatsapp import APP_SECRET, NUMBER, PEOPLE, TOKEN, jid_of, pairing, phones, whatsapp

CODE = re.compile(r"Scan this code with the phone: (https://wa\.me/settings/linked_devices#(?:[^,\s]+,){4}\S+)")


async def test_somebody_at_a_pipe_hears_the_terms_and_adds_a_number(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    async with whatsapp(tmp_path / "server") as (_, url):
        typed = ("cloud", NUMBER, TOKEN, APP_SECRET, "a word", url, PEOPLE["Ann"].number)
        added = await add(tmp_path, "whatsapp", typed="".join(f"{line}\n" for line in typed))
    assert added.returncode == 0, added.stderr
    said = added.stdout
    assert said.index("bar personal use") < said.index("Which road") < said.index("The number is 15550000000")
    assert "it breaks WhatsApp's terms" in said
    assert "The folder for the device's keys" not in said
    [account] = load(tmp_path / "segue.toml", {"SEGUE_HOME": str(tmp_path)}).accounts
    assert isinstance(account.keys, WhatsAppAccount)
    assert (account.keys.number, account.keys.token.reveal(), account.keys.device) == (NUMBER, TOKEN, "")
    assert stat.S_IMODE((tmp_path / "whatsapp.main.app_secret").stat().st_mode) == 0o600


async def test_a_script_adds_a_linked_device(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    async with phones(tmp_path / "server") as there:
        there.link(tmp_path / "device")
        words = ("--set", "road=phone", "--set", f"device={tmp_path / 'device'}", "--set", f"api={there.url}")
        added = await add(tmp_path, "whatsapp", "--owner", jid_of("Ann"), *words)
    assert added.returncode == 0, added.stderr
    assert "The device is linked to 15550000000." in added.stdout
    [account] = load(tmp_path / "segue.toml", {"SEGUE_HOME": str(tmp_path)}).accounts
    assert (account.name, account.keys) == ("phone", WhatsAppAccount(device=str(tmp_path / "device"), api=there.url))


async def test_somebody_in_a_terminal_links_a_device_by_a_code(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    async with phones(tmp_path / "server") as there, pairing(there) as whatsapp:
        here = Terminal(tmp_path, "add", "whatsapp")
        try:
            for asks, answer in (("Which road", "phone"), ("device's keys", ""), ("address of the API", whatsapp.url)):
                await here.shows(asks)
                here.types(f"{answer}\r")
            await here.until(lambda screen: CODE.search(screen.replace("\n", "")))
            assert here.text.count("▄") + here.text.count("▀") > 100
            [code] = CODE.findall(here.text.replace("\n", ""))
            assert "linked" in await whatsapp.scan(code)
            await here.shows("Your own user id there")
            here.types(f"{jid_of('Ann')}\r")
            assert await here.leaves() == 0
            assert "The device is linked to 15550000000." in here.text
            assert "Write to the linked account from another one" in here.text
        finally:
            await here.end()
    config = load(tmp_path / "segue.toml", {"SEGUE_HOME": str(tmp_path)})
    [account] = config.accounts
    [device] = (tmp_path / "whatsapp").iterdir()
    assert (account.path, account.keys) == ("whatsapp.phone", WhatsAppAccount(device=str(device), api=whatsapp.url))
    assert config.gateway.hosts == (Identity("whatsapp", "phone", jid_of("Ann")),)
    assert {stat.S_IMODE(file.stat().st_mode) for file in device.iterdir()} == {0o600}


async def test_somebody_who_mistypes_the_road_is_asked_what_the_right_one_needs(tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:9"
    here = Terminal(tmp_path, "add", "whatsapp")
    try:
        for asks, answer in (("Which road", "clod"), ("address of the API", nobody)):
            await here.shows(asks)
            here.types(f"{answer}\r")
        await here.shows("'clod' is no road")
        assert all(len(line) < 80 for line in here.text.split("\n")), "words are broken where the terminal ends"
        here.types("cloud\r")
        for asks, answer in (("Phone number ID", NUMBER), ("access token", TOKEN), ("app secret", APP_SECRET)):
            await here.shows(asks)
            here.types(f"{answer}\r")
        await here.shows("A verify token")
        here.types("\r")
        await here.shows("can't be reached (ConnectionRefusedError). Try again?")
        here.types("n\r")
        assert await here.leaves() == 1
    finally:
        await here.end()
    assert not (tmp_path / "segue.toml").exists()
