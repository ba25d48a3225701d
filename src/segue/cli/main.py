"""`segue`: the commands, each imported only when it is run.

Exit codes: 0 done, 1 it failed, 2 a mistake in the command or in segue.toml.
"""

from importlib import import_module
from typing import Any

import click

from segue import __version__
from segue.cli import completes
from segue.errors import Invalid, SegueError

_COMMANDS = {
    "talk": "Talk to the agent in this terminal; what `segue` alone does.",
    "chat": "Say one thing and print the reply.",
    "serve": "Run the gateway.",
    "status": "Show whether a gateway runs, and how its accounts stand.",
    "logs": "Show the gateway's log.",
    "acp": "Serve an editor that speaks the Agent Client Protocol.",
    "signin": "Print a new sign-in link of the page.",
    "sessions": "List, read, search, export, import and name your sessions.",
    "mcp": "Serve your sessions as tools to a program that speaks MCP.",
    "handoff": "Move a session to another place.",
    "schedules": "List and cancel your scheduled work.",
    "lanes": "List where people talk, and the session that each place speaks to.",
    "people": "List who may talk, since when and by what, and take it back.",
    "tokens": "Make, list and revoke tokens, by which programs act for people.",
    "audit": "List who was let in, linked, signed in, refused or revoked.",
    "trace": "Follow a message: received, queued, answered, sent.",
    "letters": "List, read, retry and drop messages that couldn't be taken in or sent.",
    "backup": "Write a backup, while a gateway runs.",
    "restore": "Bring a backup back.",
    "doctor": "Say what is wrong here, and the fix.",
    "completion": "Print the script that completes words in your shell.",
    "add": "Add a platform: ask, check, write segue.toml, say hello.",
    "install": "Install the libraries of a platform, of models or of PostgreSQL.",
    "trust": "Let the segue.toml of this folder count.",
    "init": "Find what agents you have and write a short segue.toml.",
    "import": "Bring in what another program remembers.",
}
"""A sentence about each command, in the order of the help."""
_MODULES = {
    "import": "imports",
    "acp": "terminal.acp",
    "install": "service.install",
    "backup": "service.backup",
    "completion": "service.completion",
    "letters": "service.letters",
    "restore": "service.restore",
    "logs": "service.logs",
    "mcp": "service.mcp",
    "status": "service.status",
    "audit": "people.audit",
    "people": "people.people",
    "tokens": "people.tokens",
}
"""Modules whose names differ from their commands'."""


class Failure(click.ClickException):
    """An error message for exit code 1."""

    exit_code = 1


class Mistake(click.ClickException):
    """A mistake in the command or in segue.toml, for exit code 2."""

    exit_code = 2


class CommandGroup(click.Group):
    """The commands, listed from a table without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"segue.cli.{_MODULES.get(cmd_name, cmd_name)}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. An error of Segue's becomes one line."""
        try:
            return super().invoke(ctx)
        except Invalid as error:
            raise Mistake(str(error)) from error
        except SegueError as error:
            raise Failure(str(error)) from error


@click.group(cls=CommandGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="segue", message="%(prog)s %(version)s")
@click.option("--new", is_flag=True, help="Talk, in a new conversation.")
@click.option(
    "--join",
    is_flag=False,
    flag_value="",
    metavar="[SESSION]",
    shell_complete=completes("sessions"),
    help="Talk, in the conversation of the open terminal or in this one.",
)
@click.pass_context
@click.option("--debug", is_flag=True, help="Talk, and see the tracebacks of errors.")
def main(ctx: click.Context, *, new: bool, join: str | None, debug: bool) -> None:
    """One conversation with an AI agent, alive wherever people talk to it."""
    if ctx.invoked_subcommand is None and (talk := ctx.command.get_command(ctx, "talk")):  # type: ignore[attr-defined]
        ctx.invoke(talk, new=new, join=join, debug=debug)
