"""`segue sessions`: the host's own sessions. It reads the store, so no gateway needs to run."""

import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import click

from segue.changes.exchange import turns
from segue.changes.sessions import exports, sessions, transcripts, trees
from segue.cli import completes
from segue.cli.host import config_here, file_store, looked_at, named, opened
from segue.cli.output import (
    awaited,
    json_option,
    moment,
    print_json,
    print_list,
    print_one,
    printable,
    short,
    write_pieces,
)
from segue.config import Fetch
from segue.core.exports.jsonl import Form
from segue.core.exports.tree import Branch, draw
from segue.core.messages import File
from segue.core.titles import label
from segue.core.transcripts import Entry, Role, Session
from segue.core.values import SessionId
from segue.errors import Invalid
from segue.runtime.files.bundles import bundle, unbundle
from segue.store import Store

_PAGE = 100
_UNTITLED = "-"


@click.group()
def command() -> None:
    """List, read, search, export, import, name and stop your sessions.

    SESSION is an id or a title. A title means the newest of its lineage, "NAME #2" exactly that one.
    """


@command.command("list", short_help="List your sessions, last used first.")
@click.option("--active", type=click.FloatRange(0, min_open=True), metavar="MINUTES", help="Only those used lately.")
@json_option
@awaited
async def list_(active: float | None, *, as_json: bool) -> None:
    """List your sessions, last used first, closed ones at the end. Empty ones aren't listed."""
    since = 0.0 if active is None else time.time() - 60 * active
    found: list[Session] = []
    async with looked_at() as (store, host):
        while page := await store.driver.read(sessions.talks, host.id, _PAGE, found[-1] if found else None, since):
            found += page
        said = [await _asked(store, session) for session in found]
    rows = [(s.id, moment(s.used), _titled(s), last) for s, last in zip(found, said, strict=True)]
    rows = [row for below in (False, True) for s, row in zip(found, rows, strict=True) if below is bool(s.closed)]
    print_list(found, rows, "No sessions. `segue` starts one.", as_json=as_json)


@command.command()
@click.argument("session", shell_complete=completes("sessions"))
@click.option("--tree", is_flag=True, help="Its branches instead: forks, children, and what it abandoned.")
@json_option
@awaited
async def show(session: str, *, tree: bool, as_json: bool) -> None:
    """Show the transcript of a session."""
    async with looked_at() as (store, host):
        found = await named(store, host, session)
        if tree:
            drawn = await store.driver.read(trees.tree, found)
            print_one(drawn, "\n".join(draw(drawn, _named)), as_json=as_json)
            return
        path, name = await store.path(found.id), await _name(store, found)
    if as_json:
        print_json({"session": found, "entries": path})
        return
    click.echo(f"{printable(name)} ({found.id}), last used {moment(found.used)}")
    for entry in path:
        names = [part.name for part in entry.parts if isinstance(part, File)]
        # Entries without text were for the agent alone: context, tool calls and thoughts.
        if said := "\n".join(filter(None, [entry.text, *names])):
            click.echo(f"\n{_who(entry)}, {moment(entry.at)}:\n{printable(said)}")


@command.command(short_help="Find what was said.")
@click.argument("words", nargs=-1, required=True)
@json_option
@awaited
async def search(words: tuple[str, ...], *, as_json: bool) -> None:
    """Find entries that contain all the words, newest first."""
    async with looked_at() as (store, host):
        # A gateway does this soon after each message, but none may be running.
        await store.index()
        found = await store.search(" ".join(words), host, _PAGE)
        of = {id: await store.session(id, host) for id in {entry.tip.session for entry in found}}
        names = {id: await _name(store, session) for id, session in of.items()}
    values = [{"title": of[entry.tip.session].title, "entry": entry} for entry in found]
    rows = [(e.tip.session, moment(e.at), names[e.tip.session], short(e.text)) for e in found]
    print_list(values, rows, "Nothing was found.", as_json=as_json)


@command.command(short_help="Write a session as JSONL or Markdown.")
@click.argument("session", shell_complete=completes("sessions"))
@click.option("--form", type=click.Choice([str(form) for form in Form]), default=Form.JSONL.value, show_default=True)
@click.option("-o", "file", type=click.Path(path_type=Path), help="Write to this file instead.")
@awaited
async def export(session: str, form: str, file: Path | None) -> None:
    """Export a session: jsonl has everything with its files, markdown the conversation up to its tip."""
    async with looked_at() as (store, host):
        id = (await named(store, host, session)).id
        if form == Form.JSONL:
            whole = await store.driver.read(exports.transcript, id, host.id)
            pieces = bundle(whole, file_store(config_here(Fetch.STORE), store))
        else:
            pieces = _once((await store.export(id, host, Form.MARKDOWN)).encode())
        await write_pieces(pieces, file)


@command.command("import", short_help="Make a session of an export.")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@awaited
async def import_(file: Path, *, as_json: bool) -> None:
    """Import a session from an export in either form, with its files; - reads standard input."""
    async with opened() as (store, host):
        try:
            with sys.stdin.buffer if str(file) == "-" else file.open("rb") as stream:
                text = await unbundle(stream, file_store(config_here(Fetch.STORE), store))
        except OSError as error:
            raise Invalid(str(file), f"it can't be read ({error.strerror})", "Name the file of an export.") from error
        except UnicodeDecodeError as error:
            raise Invalid(str(file), "it is not UTF-8 text", "Name the file of an export.") from error
        session = await store.session(await store.import_session(text, host), host)
    print_one(session, f"{session.id}  {session.title or _UNTITLED}", as_json=as_json)


@command.command(short_help="Name a session.")
@click.argument("session", shell_complete=completes("sessions"))
@click.argument("name")
@json_option
@awaited
async def title(session: str, name: str, *, as_json: bool) -> None:
    """Name a session. A name that you have used before gets the next number."""
    async with opened() as (store, host):
        found = await named(store, host, session)
        await store.set_title(found.id, name, host)
        entitled = await store.session(found.id, host)
    print_one(entitled, entitled.title, as_json=as_json)


@command.command(short_help="Stop the turn that runs in a session.")
@click.argument("session", shell_complete=completes("sessions"))
@awaited
async def stop(session: str) -> None:
    """Stop the running turn of a session, even one of another person; `segue lanes` shows its id."""
    async with opened() as (store, host):
        known = await store.driver.read(sessions.exists, SessionId(session))
        id = SessionId(session) if known else (await named(store, host, session)).id
        stopped = await store.driver.write(turns.stop_anybodys, id, host.id)
    click.echo(f"The turn that runs in {id} is stopped." if stopped else f"No turn runs in {id}.")


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _asked(store: Store, session: Session) -> str:
    asked = await store.driver.read(transcripts.question, session.id)
    return label(asked.text) if asked else ""


async def _name(store: Store, session: Session) -> str:
    return session.title or await _asked(store, session) or _UNTITLED


def _titled(session: Session) -> str:
    return (session.title or _UNTITLED) + (" (closed)" if session.closed else "")


def _who(entry: Entry) -> str:
    match entry.author.role:
        case Role.PERSON:
            return entry.author.name or "Person"
        case Role.AGENT:
            return f"Agent ({entry.author.name})" if entry.author.name else "Agent"
        case Role.GATEWAY:
            return f"Segue ({entry.author.name})" if entry.author.name else "Segue"


def _named(tree: Branch) -> str:
    name = tree.title or tree.label
    return f"{name} ({tree.id})" if name else tree.id
