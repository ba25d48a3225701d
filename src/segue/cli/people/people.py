"""`segue people`: lists who may talk and why, and lets the host change it."""

import secrets
import time
from collections.abc import Callable
from typing import TypeVar

import click
from msgspec.structs import replace

from segue.changes.people import browsers, codes, grants, persons, register, tokens
from segue.changes.people.access import Access
from segue.changes.people.persons import WHY
from segue.changes.people.register import By, Listed
from segue.cli import completes
from segue.cli.host import config_here, looked_at, opened
from segue.cli.lanes import chat_link
from segue.cli.output import awaited, json_option, moment, print_json, print_list, print_rows, printable
from segue.cli.people.audit import row
from segue.cli.people.forget import forget
from segue.config import Fetch
from segue.core.contracts.database import Transaction
from segue.core.settings import GatewaySettings
from segue.core.values import PersonId
from segue.core.windows import HOSTS
from segue.store import fresh_ids

T = TypeVar("T")


@click.group()
def command() -> None:
    """List who may talk, since when and why, and change it.

    PERSON is an id, PLATFORM.ACCOUNT/USER, or a name that only one person has.
    """


@command.command("list")
@click.option("--all", "everybody", is_flag=True, help="Also those who may not talk.")
@json_option
@awaited
async def list_(*, everybody: bool, as_json: bool) -> None:
    """List who may talk, since when and why."""
    async with looked_at() as (store, _):
        known = await store.driver.read(register.everybody, _settings())
    found = [listed for listed in known if everybody or listed.by not in (By.STRANGER, By.BLOCKED)]
    print_list(found, [_row(listed) for listed in found], "Nobody has talked yet.", as_json=as_json)


@command.command()
@click.argument("person", shell_complete=completes("people"))
@json_option
@awaited
async def show(person: str, *, as_json: bool) -> None:
    """Show a person's identities, grants and links.

    It also shows the links of their chats and related events, but no messages.
    """
    async with looked_at() as (store, _):
        found = await store.driver.read(register.find, person)
        facts = await store.driver.read(register.facts, found, _settings())
    if as_json:
        print_json(facts)
        return
    print_rows([_row(facts.listed)])
    _section("Identities", [(moment(way.since), way.identity.name) for way in facts.identities])
    _section("Let in", [(moment(g.since), g.account.replace("/", "."), f"{g.scope}, by {g.why}") for g in facts.grants])
    _section("Tokens", [(moment(token.made), token.id, token.scope, token.name) for token in facts.tokens])
    _section("Links", [(moment(link.since), link.id, WHY.get(link.why, link.why)) for link in facts.links])
    _section("Chats", [chat_link(merge) for merge in facts.chats])
    _section("Audit", [row(noted) for noted in facts.facts])
    click.echo(f"\nSessions: {facts.sessions}. `segue people read {facts.listed.id}` reads them, and is written down.")


@command.command()
@click.argument("person", shell_complete=completes("people"))
@json_option
@awaited
async def read(person: str, *, as_json: bool) -> None:
    """Read a person's messages, the replies and the notes. This is written to the audit."""
    found = await _do(person, register.read)
    if as_json:
        told = [{"session": session, "entries": entries} for session, entries in found.sessions]
        print_json([*told, {"notes": found.notes}] if found.notes else told)
        return
    for session, entries in found.sessions:
        click.echo(f"# {printable(session.title or session.id)}, begun {moment(session.began)}\n")
        for entry in entries:
            if entry.text:
                click.echo(f"{printable(entry.author.name) or entry.author.role}, {moment(entry.at)}:")
                click.echo(f"{printable(entry.text)}\n")
    _section("Notes", [(moment(note.at), printable(note.text)) for note in found.notes])


@command.command()
@click.argument("person", shell_complete=completes("people"))
@awaited
async def revoke(person: str) -> None:
    """End every grant and token of a person.

    A person who was let in by a code may not talk any more. Their running turns stop where they may not talk, and their
    waiting messages are withdrawn.
    """
    shown = await _do(person, tokens.revoke_all)
    still = Access(_settings(), fresh_ids(time.time)).still
    ended = await _do(person, lambda whose, by, at: grants.revoke_all(whose, by, still, at))
    for token in shown:
        click.echo(f"Revoked: token {token.id} for {token.scope}, since {moment(token.made)}")
    for grant in ended:
        click.echo(f"Revoked: {grant.account.replace('/', '.')}, {grant.scope}, since {moment(grant.since)}")
    if not ended and not shown:
        click.echo("Nothing was granted to them. If segue.toml lets them in, change it there, or block them.")


@command.command()
@click.argument("person", shell_complete=completes("people"))
@click.argument("link", required=False)
@awaited
async def unlink(person: str, link: str | None) -> None:
    """Undo a link between two people.

    Each gets back what was theirs. LINK is the id that `segue people show` prints; leave it out if there is only one.
    """
    async with opened() as (store, host):
        links = await store.driver.read(persons.merges_within, await store.driver.read(register.find, person))
        wanted = [each.id for each in links if link in (None, each.id)]
        if len(wanted) != 1:
            named_links = ", ".join(each.id for each in links) or "none"
            raise click.UsageError(f"Name one of the links of that person: {named_links}.")
        id, at = fresh_ids(time.time)(), time.time()
        parted = await store.driver.write(persons.part_by, wanted[0], host.id, id, at)
    click.echo(f"Parted: {parted.gone} is a person of their own again.")


@command.command()
@click.argument("person", shell_complete=completes("people"))
@click.option("--undo", is_flag=True, help="Let them talk again.")
@awaited
async def block(person: str, *, undo: bool) -> None:
    """Block a person everywhere. This overrides segue.toml and codes."""
    done = await _do(person, grants.unblock if undo else grants.block)
    words = "They may talk again where something lets them in." if undo else "They may talk nowhere now."
    click.echo(words if done else "That was so already.")


@command.command()
@click.argument("browser", required=False)
@awaited
async def signout(browser: str | None) -> None:
    """Sign browsers out of the page.

    BROWSER is an id from the audit. Without it, every browser is signed out and every token revoked.
    """
    async with opened() as (store, host):
        if browser:
            await store.driver.write(browsers.sign_out, browser, time.time())
        else:
            await store.driver.write(browsers.rotate, browsers.KEY, secrets.token_hex(32), time.time())
            await store.driver.write(tokens.revoke_all, None, host.id, time.time())
    everything = "Every browser is signed out and every token revoked. `segue signin` prints a new link."
    click.echo("It is signed out." if browser else everything)


@command.command()
@awaited
async def rotate() -> None:
    """Replace the keys of the page's cookies and of codes.

    Earlier cookies and codes become invalid.
    """
    async with opened() as (store, _):
        for name in (browsers.KEY, codes.KEY):
            await store.driver.write(browsers.rotate, name, secrets.token_hex(32), time.time())
    click.echo("The keys are new: every browser signs in again, and codes have to be asked for anew.")


async def _do(named: str, change: Callable[[PersonId, PersonId, float], Transaction[T]]) -> T:
    """Apply a change to a person, as the host."""
    async with opened() as (store, host):
        person = await store.driver.read(register.find, named)
        return await store.driver.write(change, person, host.id, time.time())


def _settings() -> GatewaySettings:
    gateway = config_here(Fetch.STORE).gateway
    return replace(gateway, hosts=(*HOSTS, *gateway.hosts))


def _row(listed: Listed) -> tuple[str, str, str, str, str]:
    return (
        listed.id,
        printable(listed.name) or "-",
        listed.by,
        moment(listed.since),
        printable(", ".join(listed.identities)),
    )


def _section(name: str, rows: list[tuple[str, ...]]) -> None:
    if rows:
        click.echo(f"\n{name}:")
        print_rows(rows)


command.add_command(forget)
