"""`segue completion`: a shell's completion script, and its suggestions of titles, places and ids.

Suggestions come from the database and segue.toml. Pressing Tab changes nothing and prints no error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem, FishComplete, ZshComplete

from segue import plugins
from segue.changes.exchange import deliveries, letters, schedules
from segue.changes.people import persons, register, tokens
from segue.changes.sessions import sessions
from segue.cli.host import config_here
from segue.cli.output import printable, short
from segue.cli.service.install import offered_extras
from segue.config import Fetch
from segue.core.values import PersonId
from segue.core.windows import HOSTS, TERMINAL, WEB
from segue.database.checks import ReadOnly, reading
from segue.errors import SegueError

_MOST = 200
_BASH = """\
%(complete_func)s() {
    local type value
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                # A word that nobody has put in quotes yet gets them where it needs them.
                [[ ${COMP_WORDS[COMP_CWORD]} == [\\"\\']* ]] || printf -v value %%q "$value"
                COMPREPLY+=("$value") ;;
        esac
    done < <(IFS=$'\\n'; env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete "$1")
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
"""click's own script splits a title of two words."""
_SCRIPTS = {
    "bash": _BASH,
    "zsh": ZshComplete.source_template,
    "fish": FishComplete.source_template.replace('string split ","', 'string split -m 1 ","'),
}
Offers = Iterable[tuple[str, str]]
"""Suggestions, each with a description."""


@click.command()
@click.argument("shell", type=click.Choice(list(_SCRIPTS)))
def command(shell: str) -> None:
    """Print the script that completes commands, options, titles, places and ids in a shell."""
    click.echo(
        _SCRIPTS[shell]
        % {"complete_func": "_segue_completion", "complete_var": "_SEGUE_COMPLETE", "prog_name": "segue"}
    )


def complete(what: str, typed: str) -> list[CompletionItem]:
    """Return the suggestions that continue a word, ignoring case."""
    begins = typed.casefold()
    try:
        offers = [(word, "") for word in _WORDS[what]()] if what in _WORDS else asyncio.run(_look(_STORED[what]))
    except SegueError:
        return []
    cleaned = ((printable(word), short(about)) for word, about in offers)
    return [CompletionItem(word, help=about or None) for word, about in cleaned if word.casefold().startswith(begins)]


async def _look(read: Callable[[ReadOnly, PersonId], Awaitable[Offers]]) -> Offers:
    """Read suggestions from the database, as the host."""
    where = config_here(Fetch.STORE).store
    if isinstance(where, Path) and not where.exists():
        return ()
    async with reading(where if isinstance(where, Path) else where.reveal()) as found:
        host = await found.read(persons.who(HOSTS[0])) if found.is_todays else None
        return await read(found, host) if host else ()


async def _sessions(found: ReadOnly, host: PersonId) -> Offers:
    """Suggest titles, and ids of untitled sessions."""
    own = await found.read(sessions.talks(host, _MOST, None, 0.0))
    return [(s.title or s.id, s.id if s.title else s.label) for s in own]


async def _people(found: ReadOnly, _host: PersonId) -> Offers:
    known = await found.read(register.everybody(config_here(Fetch.STORE).gateway))
    return [(one.id, one.name or ", ".join(one.identities)) for one in known]


async def _schedules(found: ReadOnly, host: PersonId) -> Offers:
    return [(one.id, one.task) for one in await found.read(schedules.owned(host))]


async def _tokens(found: ReadOnly, _host: PersonId) -> Offers:
    return [(one.id, one.name or one.scope) for one in await found.read(tokens.listed()) if one.revoked is None]


async def _letters(found: ReadOnly, _host: PersonId) -> Offers:
    came = await found.read(letters.newest(_MOST))
    went = await found.read(deliveries.dead(_MOST))
    return [*((f"in-{one.id}", one.why) for one in came), *((f"out-{one.id}", one.error) for one in went)]


def _places() -> Iterable[str]:
    """Suggest the accounts in segue.toml and this machine's windows."""
    accounts = config_here(Fetch.STORE).accounts
    return (*(account.path for account in accounts), TERMINAL, WEB)


_STORED = {"sessions": _sessions, "people": _people, "schedules": _schedules, "letters": _letters, "tokens": _tokens}
_WORDS = {"places": _places, "platforms": plugins.platforms, "extras": offered_extras}
