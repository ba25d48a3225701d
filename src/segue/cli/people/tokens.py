"""`segue tokens`: tokens that let programs act for people."""

import secrets
import time

import click

from segue.changes.people import register, tokens
from segue.changes.people.tokens import PREFIX, Token, TokenScope
from segue.cli import completes
from segue.cli.host import looked_at, named, opened
from segue.cli.output import awaited, json_option, moment, print_list, print_one, printable
from segue.core.lanes import clean_name

_DAY = 86400.0


@click.group()
def command() -> None:
    """Create, list and revoke tokens that let programs act for people.

    A token has one scope: mcp (the tools at /mcp), acp (an editor at /acp) or api.
    """


@command.command()
@click.argument("scope", type=click.Choice([scope.value for scope in TokenScope]))
@click.option("--person", help="Whom it acts for; you, if you name nobody.", shell_complete=completes("people"))
@click.option("--days", default=90, show_default=True, type=click.IntRange(1, 3650), help="Days until it ends.")
@click.option("--name", default="", help="What it is for, in your words.")
@click.option("--session", help="The one session of yours that it is for.", shell_complete=completes("sessions"))
@json_option
@awaited
async def create(scope: str, person: str | None, days: int, name: str, session: str | None, *, as_json: bool) -> None:
    """Create a token and print it. It can't be shown again."""
    if person and session:
        raise click.UsageError("A token for one session is for a session of yours. Leave out --person or --session.")
    shown, at = PREFIX + secrets.token_urlsafe(32), time.time()
    async with opened() as (store, host):
        whose = await store.driver.read(register.find, person) if person else host.id
        only = (await named(store, host, session)).id if session else None
        made = Token(
            secrets.token_hex(4),
            whose,
            TokenScope(scope),
            only,
            clean_name(name),
            at,
            at + days * _DAY,
            None,
            None,
        )
        made = await store.driver.write(tokens.create, made, tokens.digest(shown), host.id, at)
    print_one({"id": made.id, "token": shown}, shown, as_json=as_json)
    click.echo(f"Token {made.id}, until {moment(made.ends)}. It is shown this once; keep it like a password.", err=True)


@command.command("list")
@json_option
@awaited
async def list_(*, as_json: bool) -> None:
    """List the valid tokens, and those that recently ended."""
    async with looked_at() as (store, _):
        found = await store.driver.read(tokens.listed)
    rows = [_row(token, time.time()) for token in found]
    print_list(found, rows, "There is no token. `segue tokens create mcp` makes one.", as_json=as_json)


@command.command()
@click.argument("token", shell_complete=completes("tokens"))
@json_option
@awaited
async def revoke(token: str, *, as_json: bool) -> None:
    """Revoke a token by its id in the list."""
    async with opened() as (store, host):
        gone = await store.driver.write(tokens.revoke, token, host.id, time.time())
    print_one(gone, f"Token {gone.id} counts no more.", as_json=as_json)


def _row(token: Token, at: float) -> tuple[str, ...]:
    stands = "revoked" if token.revoked else "until" if token.counts(at) else "ended"
    used = f"used {moment(token.used)}" if token.used else "never used"
    reach = f"{token.scope} of {token.session}" if token.session else token.scope
    when = moment(token.revoked or token.ends)
    return (token.id, reach, token.person, f"{stands} {when}", used, printable(token.name))
