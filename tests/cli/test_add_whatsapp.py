"""`segue add whatsapp`, against crabline: what each road costs is said first, and only its own questions are asked."""

import stat
from pathlib import Path

from segue.adapters.whatsapp import WhatsAppAccount
from segue.config import load
from tests.cli.test_add import add
from tests.servers.whatsapp import APP_SECRET, NUMBER, PEOPLE, TOKEN, jid_of, phones, whatsapp


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
