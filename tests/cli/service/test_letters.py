"""`segue letters`: what couldn't be taken in or sent can be read, tried again and dropped."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from segue import Address, open_store
from segue.changes.exchange import deliveries, letters
from segue.cli.main import main


@pytest.fixture
async def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a letter of each kind."""
    monkeypatch.setenv("SEGUE_HOME", str(tmp_path))
    async with await open_store(tmp_path / "segue.db") as store:
        await store.driver.write(letters.bury, "telegram/bot", "what came", "it was torn", 10.0)
        address = Address("telegram", "bot", "", "c1")
        await store.driver.write(deliveries.notify, address, "what went", "k1", (), 20.0)
        [held] = await store.driver.write(deliveries.outgoing, "me", "telegram", "bot", 1)
        await store.driver.write(deliveries.give_up, held, "the chat is gone", 30.0)
    return tmp_path


def run(*words: str) -> str:
    done = CliRunner().invoke(main, ["letters", *words])
    return f"{done.exit_code}: {done.output.strip()}"


@pytest.mark.usefixtures("home")
def test_letters_are_listed_shown_retried_and_dropped() -> None:
    listed = run("list")
    assert "out-1" in listed
    assert "the chat is gone" in listed
    assert "it was torn" in listed
    [newest, oldest] = json.loads(run("list", "--json").removeprefix("0: "))
    assert (newest["id"], oldest["id"]) == ("out-1", "in-1")
    assert "what came" in run("show", "in-1")
    assert run("retry", "out-1") == "0: out-1 is tried again by the gateway, at once if it runs."
    assert run("retry", "in-1").startswith("2: Error: letter: in-1 couldn't be read")
    assert run("drop", "in-1") == "0: in-1 is dropped."
    assert run("drop", "in-1").startswith("2: Error: letter: in-1 is no dead letter")
    assert run("show", "nonsense").startswith('2: Error: letter: "nonsense" names none')
    assert run("list") == "0: No dead letters."
