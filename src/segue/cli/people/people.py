"""`segue people`: who may talk, since when and by what; and how the host takes that back."""

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import TypeVar

import click
from msgspec.structs import replace

from segue.changes.people import browsers, codes, grants, persons, register
from segue.changes.people.persons import WHY
from segue.changes.people.register import By, Listed, PersonFacts
from segue.cli import completes
from segue.cli.host import config_here, looked_at, opened
from segue.cli.lanes import chat_link
from segue.cli.output import json_option, moment, print_json, print_rows, printable
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
    """List who may talk, since when and by what, and take it back.

    PERSON is an id, PLATFORM.ACCOUNT/USER, or a name that one person alone has.
    """


@command.command("list")
@click.option("--all", "everybody", is_flag=True, help="Also those who may not talk.")
@json_option
def list_(*, everybody: bool, as_json: bool) -> None:
    """List who may talk, since when, and by what."""
    found = [listed for listed in asyncio.run(_list()) if everybody or listed.by not in (By.STRANGER, By.BLOCKED)]
    if as_json:
        print_json(found)
    elif found:
        print_rows([_row(listed) for listed in found])
    else:
        click.echo("Nobody has talked yet.")


async def _list() -> list[Listed]:
    async with looked_at() as (store, _):
        return await store.driver.read(register.everybody, _settings())


@command.command()
@click.argument("person", shell_complete=completes("people"))
@json_option
def show(person: str, *, as_json: bool) -> None:
    """Show a person's identities, grants and links, of chats too, and what happened with them; none of their words."""
    facts = asyncio.run(_show(person))
    if as_json:
        print_json(facts)
        return
    print_rows([_row(facts.listed)])
    _section("Identities", [(moment(way.since), way.identity.name) for way in facts.identities])
    _section("Let in", [(moment(g.since), g.account.replace("/", "."), f"{g.scope}, by {g.why}") for g in facts.grants])
    _section("Links", [(moment(link.since), link.id, WHY.get(link.why, link.why)) for link in facts.links])
    _section("Chats", [chat_link(merge) for merge in facts.chats])
    _section("Audit", [row(noted) for noted in facts.facts])
    click.echo(f"\nSessions: {facts.sessions}. `segue people read {facts.listed.id}` reads them, and is written down.")


async def _show(named: str) -> PersonFacts:
    async with looked_at() as (store, _):
        found = await store.driver.read(register.find, named)
        return await store.driver.read(register.facts, found, _settings())


@command.command()
@click.argument("person", shell_complete=completes("people"))
@json_option
def read(person: str, *, as_json: bool) -> None:
    """Read what a person said and was answered. That you did is written to the audit."""
    found = asyncio.run(_do(person, register.read, time.time()))
    if as_json:
        print_json([{"session": session, "entries": entries} for session, entries in found])
        return
    for session, entries in found:
        click.echo(f"# {printable(session.title or session.id)}, begun {moment(session.began)}\n")
        for entry in entries:
            if entry.text:
                click.echo(f"{printable(entry.author.name) or entry.author.role}, {moment(entry.at)}:")
                click.echo(f"{printable(entry.text)}\n")


@command.command()
@click.argument("person", shell_complete=completes("people"))
def revoke(person: str) -> None:
    """End every grant of a person: whom a code let in talks no more."""
    ended = asyncio.run(_do(person, grants.revoke_all, time.time()))
    for grant in ended:
        click.echo(f"Revoked: {grant.account.replace('/', '.')}, {grant.scope}, since {moment(grant.since)}")
    if not ended:
        click.echo("Nothing was granted to them. If segue.toml lets them in, change it there, or block them.")


@command.command()
@click.argument("person", shell_complete=completes("people"))
@click.argument("link", required=False)
def unlink(person: str, link: str | None) -> None:
    """Part a person from whom they were taken for: each has what was theirs again.

    LINK is the id that `segue people show` prints; without it, if there is only one, that one.
    """
    gone = asyncio.run(_unlink(person, link))
    click.echo(f"Parted: {gone} is a person of their own again.")


async def _unlink(named: str, link: str | None) -> PersonId:
    async with opened() as (store, host):
        person = await store.driver.read(register.find, named)
        links = await store.driver.read(persons.merges_within, person)
        wanted = [each.id for each in links if link in (None, each.id)]
        if len(wanted) != 1:
            named_links = ", ".join(each.id for each in links) or "none"
            raise click.UsageError(f"Name one of the links of that person: {named_links}.")
        at = time.time()
        return (await store.driver.write(persons.part_by, wanted[0], host.id, fresh_ids(time.time)(), at)).gone


@command.command()
@click.argument("person", shell_complete=completes("people"))
@click.option("--undo", is_flag=True, help="Let them talk again.")
def block(person: str, *, undo: bool) -> None:
    """Let a person talk nowhere, whatever segue.toml or a code says."""
    done = asyncio.run(_do(person, grants.unblock if undo else grants.block, time.time()))
    words = ("They may talk again where something lets them in.", "They may talk nowhere now.")[not undo]
    click.echo(words if done else "That was so already.")


@command.command()
@click.argument("browser", required=False)
def signout(browser: str | None) -> None:
    """Sign browsers out of the page: one, by the id that the audit names, or all of them, by a new key."""
    asyncio.run(_sign_out(browser))
    click.echo("It is signed out." if browser else "Every browser is signed out. `segue signin` prints a new link.")


async def _sign_out(browser: str | None) -> None:
    async with opened() as (store, _):
        if browser:
            await store.driver.write(browsers.sign_out, browser, time.time())
        else:
            await store.driver.write(browsers.rotate, browsers.KEY, secrets.token_hex(32), time.time())


@command.command()
def rotate() -> None:
    """Replace the keys that sign the page's cookies and hide the codes: all given so far count no more."""
    asyncio.run(_rotate())
    click.echo("The keys are new: every browser signs in again, and codes have to be asked for anew.")


async def _rotate() -> None:
    async with opened() as (store, _):
        for name in (browsers.KEY, codes.KEY):
            await store.driver.write(browsers.rotate, name, secrets.token_hex(32), time.time())


async def _do(named: str, change: Callable[[PersonId, PersonId, float], Transaction[T]], at: float) -> T:
    """Do something about a person, as the host."""
    async with opened() as (store, host):
        person = await store.driver.read(register.find, named)
        return await store.driver.write(change, person, host.id, at)


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
