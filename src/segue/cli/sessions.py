"""`segue sessions`: the host's own sessions, read from the store, whether or not a gateway runs."""

import asyncio
import sys
import time
from pathlib import Path

import click

from segue.changes.sessions import transcripts, trees
from segue.cli.host import config_here, named, opened
from segue.cli.output import json_option, moment, print_json, print_rows, printable, short
from segue.core.exports.jsonl import Form
from segue.core.exports.tree import Branch, draw
from segue.core.messages import File
from segue.core.transcripts import Entry, Role, Session
from segue.errors import Invalid, SegueError
from segue.store import Store

_PAGE = 100
_UNTITLED = "-"


@click.group()
def command() -> None:
    """List, read, search, export, import and name your sessions.

    SESSION is an id or a title; a title means the newest of its lineage, "NAME #2" exactly that one.
    """


@command.command("list", short_help="List your sessions, last used first.")
@click.option("--active", type=click.FloatRange(0, min_open=True), metavar="MINUTES", help="Only those used lately.")
@json_option
def list_(active: float | None, *, as_json: bool) -> None:
    """List your sessions, last used first; empty ones aren't listed."""
    asyncio.run(_list(0.0 if active is None else time.time() - 60 * active, as_json=as_json))


async def _list(since: float, *, as_json: bool) -> None:
    found: list[Session] = []
    async with opened(config_here()) as (store, host):
        while page := await store.sessions(host, _PAGE, found[-1] if found else None, since):
            found += page
        said = [await _last(store, session) for session in found]
    if as_json:
        print_json(found)
    elif found:
        print_rows([(s.id, moment(s.used), _titled(s), last) for s, last in zip(found, said, strict=True)])
    else:
        click.echo("No sessions. `segue` starts one.")


@command.command()
@click.argument("session")
@click.option("--tree", is_flag=True, help="Its branches instead: forks, children, and what it abandoned.")
@json_option
def show(session: str, *, tree: bool, as_json: bool) -> None:
    """Show what was said in a session."""
    asyncio.run(_show_tree(session, as_json=as_json) if tree else _show(session, as_json=as_json))


async def _show(name: str, *, as_json: bool) -> None:
    async with opened(config_here()) as (store, host):
        session = await named(store, host, name)
        path = await store.path(session.id)
    if as_json:
        print_json({"session": session, "entries": path})
        return
    click.echo(f"{session.title or _UNTITLED} ({session.id}), last used {moment(session.used)}")
    for entry in path:
        names = [part.name for part in entry.parts if isinstance(part, File)]
        # What is empty now was for the agent alone: what it was told, its tools and thoughts.
        if said := "\n".join(filter(None, [entry.text, *names])):
            click.echo(f"\n{_who(entry)}, {moment(entry.at)}:\n{printable(said)}")


async def _show_tree(name: str, *, as_json: bool) -> None:
    async with opened(config_here()) as (store, host):
        tree = await store.driver.read(trees.tree, await named(store, host, name))
    if as_json:
        print_json(tree)
    else:
        click.echo("\n".join(draw(tree, _named)))


@command.command(short_help="Find what was said.")
@click.argument("words", nargs=-1, required=True)
@json_option
def search(words: tuple[str, ...], *, as_json: bool) -> None:
    """Find what was said: entries that have all the words, the newest first."""
    asyncio.run(_search(" ".join(words), as_json=as_json))


async def _search(words: str, *, as_json: bool) -> None:
    async with opened(config_here()) as (store, host):
        # A gateway does this too, a moment after something was said; none may be running.
        await store.index()
        found = await store.search(words, host, _PAGE)
        titles = {id: (await store.session(id, host)).title for id in {entry.tip.session for entry in found}}
    if as_json:
        print_json([{"title": titles[entry.tip.session], "entry": entry} for entry in found])
    elif found:
        rows = [(e.tip.session, moment(e.at), titles[e.tip.session] or _UNTITLED, short(e.text)) for e in found]
        print_rows(rows)
    else:
        click.echo("Nothing was found.")


@command.command(short_help="Write a session as JSONL or Markdown.")
@click.argument("session")
@click.option("--form", type=click.Choice([str(form) for form in Form]), default=Form.JSONL.value, show_default=True)
@click.option("-o", "file", type=click.Path(path_type=Path), help="Write to this file instead.")
def export(session: str, form: str, file: Path | None) -> None:
    """Export a session: jsonl is all of it, markdown what was said up to its tip."""
    text = asyncio.run(_export(session, Form(form)))
    if file is None:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise SegueError(f"{file} can't be written ({error.strerror}). Name another file.") from error


async def _export(name: str, form: Form) -> str:
    async with opened(config_here()) as (store, host):
        return await store.export((await named(store, host, name)).id, host, form)


@command.command("import", short_help="Make a session of an export.")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def import_(file: Path, *, as_json: bool) -> None:
    """Make a new session of an export in either form; - reads standard input."""
    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        text = raw.decode()
    except OSError as error:
        raise Invalid(str(file), f"it can't be read ({error.strerror})", "Name the file of an export.") from error
    except UnicodeDecodeError as error:
        raise Invalid(str(file), "it is not UTF-8 text", "Name the file of an export.") from error
    session = asyncio.run(_import(text))
    if as_json:
        print_json(session)
    else:
        click.echo(f"{session.id}  {session.title or _UNTITLED}")


async def _import(text: str) -> Session:
    async with opened(config_here()) as (store, host):
        return await store.session(await store.import_session(text, host), host)


@command.command(short_help="Name a session.")
@click.argument("session")
@click.argument("name")
@json_option
def title(session: str, name: str, *, as_json: bool) -> None:
    """Name a session; a name that you have used takes the next number."""
    entitled = asyncio.run(_title(session, name))
    if as_json:
        print_json(entitled)
    else:
        click.echo(entitled.title)


async def _title(session: str, name: str) -> Session:
    async with opened(config_here()) as (store, host):
        found = await named(store, host, session)
        await store.set_title(found.id, name, host)
        return await store.session(found.id, host)


async def _last(store: Store, session: Session) -> str:
    entry = await store.driver.read(transcripts.entry, session.tip)
    return short(entry.text) if entry else ""


def _titled(session: Session) -> str:
    return (session.title or _UNTITLED) + (" (closed)" if session.closed else "")


def _who(entry: Entry) -> str:
    match entry.author.role:
        case Role.PERSON:
            return entry.author.name or "Person"
        case Role.AGENT:
            return "Agent"
        case Role.GATEWAY:
            return "Segue"


def _named(tree: Branch) -> str:
    name = tree.title or tree.label
    return f"{name} ({tree.id})" if name else tree.id
