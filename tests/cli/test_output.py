"""What commands print is safe to look at."""

import asyncio
import sys
from collections.abc import AsyncIterator

import click
import pytest
from click.testing import CliRunner

from segue.cli import output
from segue.cli.main import main


async def pieces() -> AsyncIterator[bytes]:
    yield "clear \x1b[2J \x9b31m \u202eabc".encode()
    yield b"\ttab\nline"


@pytest.mark.parametrize(
    ("terminal", "shown"),
    [
        (True, "clear \\u001b[2J \\u009b31m \\u202eabc\ttab\nline"),
        (False, "clear \x1b[2J \x9b31m \u202eabc\ttab\nline"),
    ],
)
def test_an_export_moves_no_terminal(terminal: object, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def command() -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
        asyncio.run(output.write_pieces(pieces(), None))

    assert CliRunner().invoke(command).stdout_bytes.decode() == shown


def test_mcp_without_a_data_folder_says_so(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEGUE_HOME", f"{tmp_path}/none")
    monkeypatch.delenv("SEGUE_TOKEN", raising=False)
    done = CliRunner().invoke(main, ["mcp"])
    assert done.exit_code != 0
    assert "isn't there" in f"{done.output}{done.exception}"
