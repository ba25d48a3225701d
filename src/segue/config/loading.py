"""Turns a file into a `Config`.

Reads every table, fetches every secret and names every mistake. `mistakes` finds all of them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from segue import plugins
from segue.config.accounts import (
    AccountTable,
    check_approvers,
    check_lanes,
    read_accounts,
    read_owners,
    read_people,
    refuse_silence,
)
from segue.config.file import NAME, data_folder, read_file
from segue.config.references import Fetch, References
from segue.config.sections import (
    ENDING,
    ContextSection,
    LanesSection,
    SchedulesSection,
    ServerSection,
    StoreSection,
    read_chosen,
    read_lanes,
    read_limits,
    read_resets,
)
from segue.config.tables import Incomplete, Tables, as_table, keys_of, nearest, within
from segue.core.lanes import Identity, Rules
from segue.core.limits.budgets import Budgets
from segue.core.moves import Limits
from segue.core.settings import GatewaySettings, QuestionSettings, Redaction, Retention, Settings
from segue.core.turns import DEFAULT_AGENT
from segue.core.values import Live, Secret
from segue.errors import Invalid
from segue.plugins import MakesAgent

SECTIONS = (
    "agent",
    "agents",
    "budget",
    "children",
    "context",
    "deliveries",
    "lanes",
    "limits",
    "owners",
    "people",
    "questions",
    "replica",
    "resets",
    "retention",
    "schedules",
    "server",
    "store",
    "turns",
)
SETS = {
    "turns": ("busy", "slots", "attempts", "deaths", "overload", "silence", "deadline"),
    "deliveries": ("blind", "give_up_after"),
    "replica": ("lease", "poll", "grace"),
}
"""Tables whose keys become settings of the gateway unchanged."""
_POSTGRES = ("postgresql://", "postgres://")


class Config(Live, frozen=True):
    """The host's settings, with defaults for missing keys."""

    file: Path
    data: Path
    """The folder in which Segue stores its data."""
    store: Path | Secret
    """The path of an SQLite file, or the address of a PostgreSQL server."""
    agents: Mapping[str, MakesAgent]
    """The agents by name. The first is [agent], the default; its name is empty."""
    accounts: tuple[AccountTable, ...]
    server: ServerSection
    gateway: GatewaySettings
    secrets: tuple[Secret, ...]
    """Every value that logs must redact."""


def load(file: Path, environ: Mapping[str, str], fetch: Fetch = Fetch.ALL) -> Config:
    """Read a file; raise `Invalid` for its first mistake."""
    return from_tables(read_file(file), file.absolute(), environ, fetch)


def default(environ: Mapping[str, str]) -> Config:
    """Return the settings of a host without a file."""
    return from_tables({}, data_folder(environ) / NAME, environ)


def from_tables(
    said: Mapping[str, Any],
    file: Path,
    environ: Mapping[str, str],
    fetch: Fetch = Fetch.ALL,
    mistakes: list[Invalid] | None = None,
) -> Config:
    """Read the settings from a file's tables.

    Mistakes are raised; with a list in `mistakes`, they are added to it while reading can continue.
    """
    data = data_folder(environ)
    references = References(environ, file.parent, fetch)
    tables = Tables(references, mistakes)
    accounts = read_accounts(said, SECTIONS, tables)
    owners = read_owners(said, accounts, tables)
    refuse_silence(accounts, owners)
    check_approvers(accounts)
    # Last, because it lists the secrets that the other steps fetched.
    return Config(
        file=file,
        data=data,
        store=_store(tables.section(said, "store", StoreSection), file.parent, data, references),
        agents=_agents(said, accounts, tables),
        accounts=accounts,
        server=tables.section(said, "server", ServerSection),
        gateway=_gateway(said, owners, accounts, tables),
        secrets=tuple(references.fetched),
    )


def _gateway(
    said: Mapping[str, Any], owners: tuple[Identity, ...], accounts: tuple[AccountTable, ...], tables: Tables
) -> GatewaySettings:
    table = as_table(said.get("lanes", {}), "lanes")
    lanes = tables.read({k: v for k, v in table.items() if not isinstance(v, Mapping)}, LanesSection, "lanes")
    of_lanes = read_lanes(table, tables)
    check_lanes(of_lanes, accounts)
    context = tables.section(said, "context", ContextSection)
    resets = as_table(said.get("resets", {}), "resets")
    known, limits = keys_of(GatewaySettings), keys_of(Limits)
    del limits["max_live_per_lane"]
    children = tables.fields(said.get("children", {}), limits, "children")
    settings = tables.fields({key: value for key, value in resets.items() if key == ENDING}, known, "resets")
    for name, keys in SETS.items():
        settings |= tables.fields(said.get(name, {}), {key: known[key] for key in keys}, name)
    return GatewaySettings(
        routing=Settings(
            Rules(lanes.groups, lanes.threads),
            read_resets(resets, plugins.platforms(), tables),
            Limits(lanes.max_live_per_lane, **children),
            lanes.dm_threads,
        ),
        hosts=owners,
        accounts={(account.platform, account.name): account.settings for account in accounts},
        redaction=Redaction.PSEUDONYMS if context.redact_pii else Redaction.NONE,
        quotes=lanes.quotes,
        labels=lanes.labels,
        retention=tables.section(said, "retention", Retention),
        questions=tables.section(said, "questions", QuestionSettings),
        budget=tables.section(said, "budget", Budgets),
        limits=read_limits(said.get("limits", {}), tables),
        zone=tables.section(said, "schedules", SchedulesSection).zone,
        agents_of_lanes={name: lane.agent for name, lane in of_lanes.items() if lane.agent is not None},
        tools_of_lanes={name: lane.tools for name, lane in of_lanes.items() if lane.tools is not None},
        commands_of_lanes={name: lane.commands for name, lane in of_lanes.items() if lane.commands is not None},
        agents_of_people=read_people(read_chosen(said.get("people", {}), "people", tables), accounts),
        **settings,
    )


def _agents(said: Mapping[str, Any], accounts: tuple[AccountTable, ...], tables: Tables) -> dict[str, MakesAgent]:
    """Read [agent] and each [agents.NAME]. An account, a lane or a person may choose any of them."""
    named = as_table(said.get("agents", {}), "agents")
    found = {"": _agent(said.get("agent", {}), "agent", tables)}
    found |= {name: _agent(table, f"agents.{name}", tables) for name, table in named.items()}
    wanted = [(f"{account.path}.agent", account.settings.agent) for account in accounts]
    wanted += [(f"{account.path}.agents", name) for account in accounts for name in account.settings.agents]
    for section in ("lanes", "people"):
        chosen = read_chosen(said.get(section, {}), section, tables)
        wanted += [(f'{section}."{key}".agent', name) for key, name in chosen.items()]
    for path, name in wanted:
        if name not in found and not (name == DEFAULT_AGENT and path.endswith(".agents")):
            raise Invalid(path, f"there is no table [agents.{name}]", nearest(name, list(named)))
    return found


def _agent(table: object, path: str, tables: Tables) -> MakesAgent:
    table, kinds = as_table(table, path), plugins.agents()
    kind = table.get("kind", "builtin")
    if kind not in kinds:
        raise Invalid(f"{path}.kind", f'there is no agent "{kind}" here', nearest(str(kind), kinds))
    own = {key: value for key, value in table.items() if key != "kind"}
    return tables.read(own, plugins.agent_keys(kind), path)


def _store(section: StoreSection, folder: Path, data: Path, references: References) -> Path | Secret:
    if section.url is None:
        return folder / Path(section.path).expanduser() if section.path else data / "segue.db"
    try:
        return _server(section.url, references)
    except Invalid as error:
        raise within("store.url", error) from error


def _server(url: str, references: References) -> Secret:
    """Return the address of a PostgreSQL server.

    The file may contain an address without a password; one with a password needs a reference.
    """
    written = url.startswith(_POSTGRES)
    address = Secret(url) if written else references.fetch(url, Fetch.STORE)
    if not address.reveal().startswith(_POSTGRES):
        raise Invalid("", "it is not the address of a PostgreSQL server", "Begin it with postgresql://")
    if written and urlsplit(url).password:
        fix = 'Keep the whole address elsewhere and say where, such as "env:DATABASE_URL".'
        raise Invalid("", "a password is in it", fix)
    return address


def mistakes(file: Path, environ: Mapping[str, str]) -> list[Invalid]:
    """Return every mistake in a file; the list is empty if the file loads."""
    try:
        said = read_file(file)
    except Invalid as error:
        return [error]
    whole = _mistakes(said, file, environ)
    if not whole:
        return []
    parts = [error for part in _parts(said) for error in _mistakes(part, file, environ)]
    # Two tables may each be right and still contradict each other.
    return list({str(error): error for error in parts or whole}.values())


def _mistakes(said: Mapping[str, Any], file: Path, environ: Mapping[str, str]) -> list[Invalid]:
    found: list[Invalid] = []
    try:
        from_tables(said, file.absolute(), environ, mistakes=found)
    except Incomplete:
        """Its mistakes are in the list already."""
    except Invalid as error:
        found.append(error)
    return found


def _parts(said: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Split the tables into parts to check separately: a section, or an account with its owners."""
    owners = said.get("owners")
    owners = [str(owner) for owner in owners] if isinstance(owners, list) else []
    for key, table in said.items():
        if key == "owners":
            continue
        if key in ("lanes", "people") and isinstance(table, Mapping):
            # These sections name places and people, so they are checked together with the accounts.
            yield {key: {own: value for own, value in table.items() if not isinstance(value, Mapping)}}
            continue
        if key in SECTIONS or not isinstance(table, Mapping):
            yield {key: table}
            continue
        for name, account in table.items():
            known = [owner for owner in owners if owner.startswith(f"{key}.{name}/")]
            yield {key: {name: account}, "owners": known, "agents": said.get("agents", {})}
