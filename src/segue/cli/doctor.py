"""`segue doctor`: finds problems and their fixes. It only reads."""

import asyncio
import os
import re
import stat
from collections.abc import Iterable, Iterator
from enum import StrEnum
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import click
import msgspec

from segue.changes import files
from segue.changes.forgetting import named_files
from segue.changes.forgetting.named_files import FileRow, Naming
from segue.changes.tally import tally
from segue.cli.gateway import SOCKET
from segue.cli.output import json_option, moment, print_json, print_rows, printable
from segue.cli.terminal.client import NoGateway, ask
from segue.config import Config, Untrusted, data_folder, default, find, load, mistakes
from segue.core.accounts import Health, Reach
from segue.core.contracts.setup import IsTried, NeedsServers
from segue.core.values import Value
from segue.database.checks import Checked, Pile, ReadOnly, Tally, check, reading
from segue.errors import AgentFailed, Invalid, StoreError
from segue.runtime.files.folder import Folder
from segue.runtime.server.listeners import Listener, is_served

_NAME = re.compile(r"\w+")
_AGENT = "If it is its key that was refused, put right api_key under [agent]; the log has each failure."
_PATIENCE = 3.0
"""The longest wait for a server's answer, in seconds."""
_NAMED = 5
"""The most missing files that are listed."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class FindingState(StrEnum):
    """The severity of a finding."""

    FINE = "fine"
    NOTE = "note"
    """Useful to know, with nothing to fix."""
    WRONG = "wrong"


class Finding(Value, frozen=True):
    """The result of one check."""

    about: str
    state: FindingState
    says: str
    fix: str = ""


@click.command()
@json_option
def command(*, as_json: bool) -> None:
    """Check the config, the data folder, the database and the gateway; change nothing.

    Exit code 1 if anything is wrong.
    """
    findings = asyncio.run(_look())
    if as_json:
        print_json(findings)
    else:
        lines = [(f.state, f.about, printable(f"{f.says} {f.fix}".strip())) for f in findings]
        print_rows(lines)
    if any(finding.state is FindingState.WRONG for finding in findings):
        raise click.exceptions.Exit(1)


async def _look() -> list[Finding]:
    config, findings = _config()
    folder = data_folder(os.environ)
    findings += _folder(folder)
    if config is not None:
        findings += await _database(config)
        findings += await _files(config)
        findings += [] if is_served(folder / SOCKET) else _port(config)
        findings += await _servers(config)
        findings += await _agents(config)
    return [*findings, *await gateway_findings(folder)]


def _port(config: Config) -> list[Finding]:
    """Check whether a gateway could listen at its address."""
    try:
        Listener(config.server.host, config.server.port).close()
    except Invalid as error:
        fix = error.fix.replace("--port", "port under [server]").replace("--host", "host under [server]")
        return [Finding("server", FindingState.WRONG, f"{error.field} {error.problem}.", fix)]
    return []


async def _servers(config: Config) -> list[Finding]:
    """Check whether the servers of agents and accounts answer."""
    tables = {("agent" if not name else f"agents.{name}"): keys for name, keys in config.agents.items()}
    made: dict[str, object] = {**tables, **{account.path: account.keys for account in config.accounts}}
    wanted = [
        (n, k, at) for n, keys in made.items() if isinstance(keys, NeedsServers) for k, at in keys.servers.items()
    ]
    return list(await asyncio.gather(*(asyncio.to_thread(_server, *each) for each in wanted)))


async def _agents(config: Config) -> list[Finding]:
    """Check whether agents that are separate programs start."""
    tables = {f"agents.{name}" if name else "agent": keys for name, keys in config.agents.items()}
    return [await _tried(name, keys) for name, keys in tables.items() if isinstance(keys, IsTried)]


async def _tried(name: str, keys: IsTried) -> Finding:
    """Check whether an agent starts."""
    try:
        return Finding(name, FindingState.FINE, await keys.tried())
    except AgentFailed as error:
        return Finding(name, FindingState.WRONG, error.problem, error.fix)


def _server(name: str, key: str, address: str) -> Finding:
    try:
        urlopen(Request(address, method="HEAD"), timeout=_PATIENCE).close()  # noqa: S310 -- segue.toml names http only
    except HTTPError as answered:
        answered.close()
    except (OSError, HTTPException) as error:
        says = f"nobody answers at {address} ({getattr(error, 'reason', error)})."
        return Finding(name, FindingState.WRONG, says, f"Start what should, or put right {key} under [{name}].")
    return Finding(name, FindingState.FINE, f"somebody answers at {address}")


def _config() -> tuple[Config | None, list[Finding]]:
    """Load the config, or report its mistakes."""
    try:
        file = find(os.environ, Path.cwd())
    except Untrusted as error:
        return None, [Finding("config", FindingState.WRONG, f"{error.field}: {error.problem}.", error.fix)]
    except Invalid:
        says = "there is no segue.toml, so the defaults hold."
        return default(os.environ), [Finding("config", FindingState.NOTE, says, "`segue init` writes one.")]
    wrong = mistakes(file, os.environ)
    if wrong:
        return None, [
            Finding("config", FindingState.WRONG, f"{error.field}: {error.problem}.", error.fix) for error in wrong
        ]
    return load(file, os.environ), [Finding("config", FindingState.FINE, str(file))]


def _folder(folder: Path) -> list[Finding]:
    """Check whether the data folder exists, belongs to this user and is private."""
    if not folder.exists():
        return [Finding("data folder", FindingState.NOTE, f"{folder} is not there yet; the first run makes it.")]
    if not folder.is_dir():
        return [Finding("data folder", FindingState.WRONG, f"{folder} is not a folder.", "Move it, or set SEGUE_HOME.")]
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        says, fix = f"{folder} can't be written to.", "Give it to the user who runs Segue, with chown."
        return [Finding("data folder", FindingState.WRONG, says, fix)]
    open_ones = list(_open_to_others(folder))
    return open_ones or [Finding("data folder", FindingState.FINE, str(folder))]


def _open_to_others(folder: Path) -> Iterator[Finding]:
    for path, mode in ((folder, "700"), (folder / "token", "600")):
        if path.exists() and path.stat().st_mode & _OTHERS:
            yield Finding("data folder", FindingState.WRONG, f"others may open {path}.", f"chmod {mode} {path}")


async def _database(config: Config) -> list[Finding]:
    if isinstance(config.store, Path) and not config.store.exists():
        return [Finding("database", FindingState.NOTE, f"{config.store} is not there yet; the first run makes it.")]
    try:
        where = config.store if isinstance(config.store, Path) else config.store.reveal()
        checked = await check(where, tally)
    except (StoreError, Invalid) as error:
        return [Finding("database", FindingState.WRONG, str(error))]
    findings = [_version(checked)]
    if isinstance(config.store, Path) and config.store.stat().st_mode & _OTHERS:
        says, fix = f"others may open {config.store}.", f"chmod 600 {config.store}"
        findings.append(Finding("database", FindingState.WRONG, says, fix))
    return [*findings, *(_tally(checked.tally) if checked.tally else ())]


async def _files(config: Config) -> list[Finding]:
    """Check whether every file that a message names exists."""
    if isinstance(config.store, Path) and not config.store.exists():
        return []
    try:
        async with reading(config.store if isinstance(config.store, Path) else config.store.reveal()) as found:
            missing = await _missing(config, found) if found.is_todays else []
    except StoreError:
        return []  # The finding about the database reports it.
    if not missing:
        return []
    first = ", ".join(missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
    count = "1 file that a message names is" if len(missing) == 1 else f"{len(missing)} files that messages name are"
    fix = "Bring them back from a backup."
    if not isinstance(config.store, Path):
        fix = "Start Segue on the machine whose data folder has them, or bring them back from a backup."
    return [Finding("files", FindingState.NOTE, f"{count} missing: {first}.", fix)]


async def _missing(config: Config, found: ReadOnly) -> list[str]:
    """Return the paths of missing files that a message names."""
    folder, missing = Folder(config.data), dict[str, None]()
    for naming in Naming:
        after: FileRow | None = None
        while True:
            named, after = await found.read(named_files.page(naming, after))
            if isinstance(config.store, Path):
                stored = {where for where in named if await folder.find_size(where) is not None}
            else:
                stored = set(await found.read(files.list_present(sorted(named))))
            missing |= dict.fromkeys(sorted(named - stored))
            if after is None:
                break
    return [*missing]


def _version(checked: Checked) -> Finding:
    if checked.damage:
        fix = "Stop Segue and restore a backup, or move the file aside."
        return Finding("database", FindingState.WRONG, f"{checked.place} is damaged: {checked.damage}.", fix)
    if checked.version > checked.newest:
        says = f"{checked.place} is at version {checked.version}; this Segue knows versions up to {checked.newest}."
        return Finding("database", FindingState.WRONG, says, "Install a newer Segue.")
    if checked.version < checked.newest:
        says = f"{checked.place} is at version {checked.version}; the next run brings it to {checked.newest}."
        return Finding("database", FindingState.NOTE, says)
    return Finding("database", FindingState.FINE, f"{checked.place}, version {checked.version}")


_FINE = {
    "dead letters": "none",
    "arrivals": "all were understood",
    "deliveries": "none is late",
    "turns": "none waits for a gateway",
    "agent": "no turn has failed since it last answered",
}


def _tally(tally: Tally) -> Iterable[Finding]:
    yield _pile(
        "dead letters",
        tally.dead,
        "couldn't be sent, the last",
        "See `segue letters list`.",
    )
    yield _pile("arrivals", tally.letters, "couldn't be understood, the last", "See `segue letters list`.")
    yield _pile("deliveries", tally.late, "wait to be sent, the oldest since", "See whether `segue serve` runs.")
    yield _pile("turns", tally.idle, "wait for a gateway, the oldest since", "See whether `segue serve` runs.")
    yield _pile("agent", _failed(tally.failed), "failed since it last answered, the last", _AGENT)
    alive, gone = tally.replicas.alive, tally.replicas.gone
    if gone and not alive:
        yield Finding("replicas", FindingState.NOTE, f"{gone} died; the next one takes over what they held.")
    else:
        yield Finding("replicas", FindingState.FINE, f"{alive} alive" + (f", {gone} gone" if gone else ""))


def _failed(pile: Pile) -> Pile:
    """Return failed turns by the error's name. The error's text may quote a message or a key."""
    named = _NAME.match(pile.why or "")
    return Pile(pile.count, pile.at, named[0] if named else None)


def _pile(about: str, pile: Pile, says: str, fix: str) -> Finding:
    if not pile.count or pile.at is None:
        return Finding(about, FindingState.FINE, _FINE[about])
    why = f" ({pile.why})" if pile.why else ""
    return Finding(about, FindingState.WRONG, f"{pile.count} {says} {moment(pile.at)}{why}.", fix)


async def gateway_findings(folder: Path) -> list[Finding]:
    """Return the state of a data folder's gateway and of each account."""
    if not is_served(folder / SOCKET):
        return [Finding("gateway", FindingState.NOTE, f"none runs in {folder}.", "`segue serve` runs one.")]
    try:
        health = await ask(folder, "GET", "/healthz")
    except NoGateway as error:
        return [Finding("gateway", FindingState.WRONG, "it doesn't answer.", str(error))]
    told = health.json()
    known = msgspec.convert(told.get("accounts", {}), dict[str, Health])
    accounts = [_account(name, health) for name, health in sorted(known.items())]
    if health.status_code != 200:
        problems = (
            " ".join(f"{one.rstrip('.')}." for one in told.get("problems", [])) or f"it answers {health.status_code}."
        )
        return [Finding("gateway", FindingState.WRONG, problems, "See its log."), *accounts]
    return [Finding("gateway", FindingState.FINE, f"it runs, and answers at {folder / SOCKET}"), *accounts]


def _account(name: str, health: Health) -> Finding:
    if health.reach is Reach.BROKEN:
        return Finding(name, FindingState.WRONG, f"{health.words.rstrip('.')}.", "It is tried again by itself.")
    return Finding(name, FindingState.NOTE if health.why else FindingState.FINE, health.words)
