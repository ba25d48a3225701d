"""The smaller sections of segue.toml, such as [resets], [lanes] and [server]."""

from collections.abc import Collection, Mapping
from ipaddress import ip_network
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Meta, field
from msgspec.structs import asdict

from segue.config.tables import Tables, as_table, joined, nearest
from segue.config.zone import machine_zone
from segue.core.lanes import Address, Kind, Place, Sharing
from segue.core.moves import Limits
from segue.core.people import STRANGERS, Allowance, Allowances
from segue.core.resets import Policies, Policy, When, time_zone
from segue.core.settings import DmThreads, GatewaySettings, Quotes, check_commands, check_tools
from segue.core.values import Count, Live, Secret, Value
from segue.errors import Invalid

ENDING = "ending"
_STRANGER = "stranger"
_KINDS = (*map(str, Kind), "thread")
_NEEDS = {
    "idle_minutes": (When.IDLE, When.BOTH),
    "hour": (When.DAILY, When.BOTH),
    "zone": (When.DAILY, When.BOTH),
    "notice": (When.IDLE, When.DAILY, When.BOTH),
}


def read_resets(table: object, platforms: Collection[str], tables: Tables) -> Policies:
    """Read [resets].

    [resets] is the default. [resets.KIND] overrides it for a kind of lane, and [resets.PLATFORM] overrides both.
    """
    table = as_table(table, "resets")
    default = {key: value for key, value in table.items() if not isinstance(value, Mapping) and key != ENDING}
    special = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    for key in special:
        if key not in _KINDS and key not in platforms:
            fix = nearest(key, [*_KINDS, *platforms])
            tables.refuse(Invalid(f"resets.{key}", "there is no such kind or platform", fix))
    # The machine's time zone, unless the table names another.
    here = {"zone": machine_zone()}
    policy = tables.read({**here, **default}, Policy, "resets")
    if not special:
        _refuse_idle_talk(default, policy, "resets", tables)
    policies = {key: _special(key, {**here, **default}, own, tables) for key, own in special.items()}
    return Policies(
        default=policy,
        kinds={key: found for key, found in policies.items() if key in _KINDS},
        platforms={key: found for key, found in policies.items() if key not in _KINDS},
    )


def _special(key: str, default: Mapping[str, Any], own: Mapping[str, Any], tables: Tables) -> Policy:
    path = f"resets.{key}"
    policy = tables.read({**default, **own}, Policy, path)
    _refuse_idle_talk(own, policy, path, tables)
    return policy


def _refuse_idle_talk(own: Mapping[str, Any], policy: Policy, path: str, tables: Tables) -> None:
    """Refuse a key that has no effect, because its host expects one."""
    for key, whens in _NEEDS.items():
        if key in own and policy.when not in whens:
            fix = f'Add when = "{whens[0]}" or "{whens[1]}", or remove it.'
            tables.refuse(Invalid(joined(path, key), f'it does nothing while when is "{policy.when}"', fix))


_DEFAULT = GatewaySettings()


class StoreSection(Value, frozen=True):
    """[store]: an SQLite file or a PostgreSQL server."""

    path: str | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        if self.path is not None and self.url is not None:
            raise Invalid("url", "there is a path too", "Keep one of the two.")
        for key, value in (("path", self.path), ("url", self.url)):
            if value is not None and not value.strip():
                raise Invalid(key, "it is blank", "Remove it, or say where the database is.")


class LanesSection(Value, frozen=True):
    """[lanes]: which people share a conversation."""

    groups: Sharing = Sharing.APART
    threads: Sharing = Sharing.TOGETHER
    dm_threads: DmThreads = DmThreads.FORK
    quotes: Quotes = _DEFAULT.quotes
    labels: bool = _DEFAULT.labels
    max_live_per_lane: Count = Limits().live_per_lane
    """The most sessions begun in one place that may be open at once."""


class ChosenAgent(Value, frozen=True):
    """[people."PLATFORM.ACCOUNT/USER"]: the agent for the person's new sessions."""

    agent: str


class LaneTable(Value, frozen=True):
    """[lanes."ADDRESS"]: the agent for new sessions in the lane, its tools, and the commands of strangers."""

    agent: str | None = None
    tools: tuple[str, ...] | None = None
    commands: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_tools(self.tools)
        check_commands(self.commands)


def read_lanes(table: object, tables: Tables) -> dict[str, LaneTable]:
    """Read the tables of single lanes."""
    own = {key: value for key, value in as_table(table, "lanes").items() if isinstance(value, Mapping)}
    return {key: tables.read(value, LaneTable, f'lanes."{key}"') for key, value in own.items()}


def read_chosen(table: object, path: str, tables: Tables) -> dict[str, str]:
    """Read the agents that lanes or people chose."""
    if path == "lanes":
        return {key: lane.agent for key, lane in read_lanes(table, tables).items() if lane.agent is not None}
    own = {key: value for key, value in as_table(table, path).items() if isinstance(value, Mapping)}
    return {key: tables.read(value, ChosenAgent, f'{path}."{key}"').agent for key, value in own.items()}


class ContextSection(Value, frozen=True):
    """[context]: the facts about place and people that an agent receives."""

    redact_pii: bool = False
    """Whether phone numbers and ids become pseudonyms, except in mentions by id."""


class StrangersSection(Allowance, frozen=True):
    """[limits.stranger]: the limits of one stranger, and of all strangers of an account together."""

    account_day: Annotated[int, Meta(ge=1_000, le=10**15)] = Allowances().account_day


def read_limits(table: object, tables: Tables) -> Allowances:
    """Read the limits of people and of strangers."""
    said = as_table(table, "limits")
    own = {key: value for key, value in said.items() if key != _STRANGER}
    strangers = {**asdict(STRANGERS), **as_table(said.get(_STRANGER, {}), f"limits.{_STRANGER}")}
    stranger = tables.read(strangers, StrangersSection, f"limits.{_STRANGER}")
    one = Allowance(**{name: getattr(stranger, name) for name in Allowance.__struct_fields__})
    return Allowances(tables.read(own, Allowance, "limits"), one, stranger.account_day)


class SchedulesSection(Value, frozen=True):
    """[schedules]: the interpretation of times."""

    zone: str = field(default_factory=machine_zone)

    def __post_init__(self) -> None:
        time_zone(self.zone)


class ServerSection(Live, frozen=True):
    """[server]: the addresses of the gateway."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8800
    url: str = ""
    """The browsers' address behind a proxy. With https, cookies are sent over TLS only."""
    hosts: tuple[str, ...] = ()
    """The host names that the gateway answers to, besides the local names and that of `url`."""
    proxies: tuple[str, ...] = ()
    """The addresses or networks of trusted proxies.

    Segue believes their X-Forwarded-For header.
    """
    tracing: Literal["none", "otel"] = "none"
    """The receiver of traces: none, or the collector in the usual OTEL_ variables."""
    status_token: Secret | None = None
    """The bearer token for reading metrics and the reasons for an unhealthy status."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if self.url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/")):
            fix = 'Write scheme and name, without a path: "https://segue.example.org".'
            raise Invalid("url", f'"{self.url}" is not the address of a page', fix)
        for proxy in self.proxies:
            try:
                ip_network(proxy, strict=False)
            except ValueError as error:
                fix = 'Write the address of the proxy, or its network: "10.0.0.5" or "10.1.0.0/16".'
                raise Invalid("proxies", f'"{proxy}" is no address', fix) from error
        for name in self.hosts:
            if not name or "/" in name or any(c.isspace() for c in name) or (":" in name and not name.startswith("[")):
                fix = 'Write the name alone, without scheme and port: "segue.example.org".'
                raise Invalid("hosts", f'"{name}" is not a name', fix)


class HomeSection(Value, frozen=True):
    """home = { ... }: a place of an account."""

    chat: str
    kind: Kind
    space: str = ""
    thread: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        if not self.chat.strip():
            raise Invalid("chat", "it is blank", "Give the platform's id of the chat.")

    def place(self, platform: str, account: str) -> Place:
        """Return the place."""
        return Place(Address(platform, account, self.space, self.chat, self.thread), self.kind, self.name)
