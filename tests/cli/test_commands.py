"""The commands as a whole: each is documented, completes, and explains itself."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

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


def unshown(name: str, page: list[str]) -> Iterator[str]:
    """The options of a command that its line of the page leaves out."""
    [line] = [line for line in page if re.match(rf"\| `segue {name}(?: [^a-z]|`)", line)]
    shown = set(re.findall(r"(?<![\w-])--?[a-z]+(?:-[a-z]+)*", line.split("` |")[0]))
    for option in COMMANDS[name].params:
        if not isinstance(option, click.Option) or option.hidden or option.opts == ["--json"]:
            continue
        if not shown & {*option.opts}:
            yield f"{name} {option.opts}"


def test_the_page_shows_every_option_of_each_command() -> None:
    page = PAGE.read_text().splitlines()
    assert [option for name in COMMANDS for option in unshown(name, page)] == []


def test_each_command_explains_itself(home: Home) -> None:
    for name, command in COMMANDS.items():
        assert home.segue(*name.split(), "--help").exit_code == 0, name
        assert command.help, name
    assert list(home.path.iterdir()) == []


def test_each_command_of_a_group_is_listed_with_a_whole_sentence() -> None:
    listed = {name: command.get_short_help_str(65) for name, command in COMMANDS.items() if " " in name}
    assert [name for name, help_ in listed.items() if help_.endswith("...")] == []


def test_words_are_completed(tmp_path: Path) -> None:
    asked = {"_SEGUE_COMPLETE": "bash_complete", "COMP_WORDS": "segue sessions s", "COMP_CWORD": "2"}
    segue = [sys.executable, "-c", "from segue.cli.main import main; main(prog_name='segue')"]
    done = subprocess.run(segue, capture_output=True, text=True, check=True, env=os.environ | asked, cwd=tmp_path)
    assert done.stdout.split() == ["plain,search", "plain,show", "plain,stop"]
