"""The commands as a whole: each is documented, completes, and explains itself."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from segue.cli.main import main
from tests.cli.conftest import Home

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
SHOWN = re.compile(r"^\| `segue ([a-z]+(?: [a-z]+)*)", re.MULTILINE)


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its whole name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(main))


def test_the_page_shows_exactly_the_commands_that_there_are() -> None:
    assert sorted(SHOWN.findall(PAGE.read_text())) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_shows_every_option_of_a_command(name: str) -> None:
    [line] = [line for line in PAGE.read_text().splitlines() if re.match(rf"\| `segue {name}(?: [^a-z]|`)", line)]
    shown = set(re.findall(r"(?<![\w-])--?[a-z]+", line.split("` |")[0]))
    options = [set(p.opts) for p in COMMANDS[name].params if isinstance(p, click.Option) and p.opts != ["--json"]]
    assert [option for option in options if not option & shown] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_explains_itself(home: Home, name: str) -> None:
    done = home.segue(*name.split(), "--help")
    assert done.exit_code == 0
    assert COMMANDS[name].help
    assert list(home.path.iterdir()) == []


@pytest.mark.parametrize("name", [name for name in COMMANDS if " " in name])
def test_a_command_of_a_group_is_listed_with_a_whole_sentence(name: str) -> None:
    assert not COMMANDS[name].get_short_help_str(65).endswith("...")


def test_words_are_completed(tmp_path: Path) -> None:
    asked = {"_SEGUE_COMPLETE": "bash_complete", "COMP_WORDS": "segue sessions s", "COMP_CWORD": "2"}
    segue = [sys.executable, "-c", "from segue.cli.main import main; main(prog_name='segue')"]
    done = subprocess.run(segue, capture_output=True, text=True, check=True, env=os.environ | asked, cwd=tmp_path)
    assert done.stdout.split() == ["plain,search", "plain,show"]
