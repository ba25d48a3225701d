"""Settings of a gateway, as values: what the host decided, with a sentence a choice."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from segue.core.commands import ANSWERS, SPECS
from segue.core.destinations import names_of
from segue.core.handoffs import Patience
from segue.core.lanes import Address, Identity, Kind, Lane, Place, Rules
from segue.core.limits.budgets import Budgets
from segue.core.moves import Limits
from segue.core.people import Allowances
from segue.core.resets import Policies
from segue.core.values import Count, Seconds, Value
from segue.errors import Invalid


class DmThreads(StrEnum):
    """The beginning of a thread in a private chat."""

    FORK = "fork"
    """With all that the private chat's session has said so far; copies nothing."""
    FRESH = "fresh"
    """With nothing."""
    ONE = "one"
    """Not at all: it speaks to the private chat's session, which answers where it was asked."""


class Settings(Value, frozen=True):
    """The host's settings that decide where an arrival goes."""

    rules: Rules = Rules()
    resets: Policies = Policies()
    limits: Limits = Limits()
    dm_threads: DmThreads = DmThreads.FORK


class Busy(StrEnum):
    """The fate of a message that comes while its session's turn runs."""

    QUEUE = "queue"
    """It waits; what one person has waiting is one turn."""
    STEER = "steer"
    """It goes into the speaker's own running turn where the agent can take it, else it waits."""
    INTERRUPT = "interrupt"
    """It ends the speaker's own running turn and is answered next."""


class Blind(StrEnum):
    """The fate of a message when nobody knows whether it was sent and the platform can't tell."""

    AT_LEAST_ONCE = "at_least_once"
    """It is sent again, marked as perhaps a duplicate."""
    AT_MOST_ONCE = "at_most_once"
    """It isn't sent again; it is a dead letter."""


class Mentions(StrEnum):
    """Whether the agent must be named before it answers where several people talk; in private it never must."""

    NEEDED = "needed"
    """It answers only what mentions it or replies to it."""
    OPTIONAL = "optional"
    """It answers everything."""


class Quotes(StrEnum):
    """The effect of a reply to one of the agent's messages from another session than the current one."""

    OFF = "off"
    """Nothing: it is a message like any other."""
    ONCE = "once"
    """That message alone goes to the session that wrote the quoted one."""
    SWITCH = "switch"
    """The place goes back to that session."""


class Streams(StrEnum):
    """Whether a reply is shown while it is written."""

    WHOLE = "whole"
    """The final text comes once."""
    LIVE = "live"
    """The message grows by edits, where the platform has them."""


class ProgressShown(StrEnum):
    """How much is shown of what an agent does before it answers; what it did is folded away with the answer."""

    OFF = "off"
    """Nothing."""
    LINE = "line"
    """Its present work, in one line that changes."""
    FULL = "full"
    """Each thing that it did so far, a line each."""


class Deletions(StrEnum):
    """The effect of a message's deletion on its platform, by its author."""

    HIDE = "hide"
    """It is hidden from lists, searches and prompts; /undo shows it again."""
    FORGET = "forget"
    """Its exchange is forgotten for good."""


class Redaction(StrEnum):
    """The ids and phone numbers that an agent is told."""

    NONE = "none"
    """The real ones."""
    PSEUDONYMS = "pseudonyms"
    """Stable pseudonyms, except on platforms that mention people by their ids."""


Days = Annotated[int, Meta(ge=0, le=36_500)]


TOOLS = (
    "ask",
    "notes_read",
    "notes_write",
    "schedule",
    "schedule_cancel",
    "schedules_list",
    "sessions_close",
    "sessions_history",
    "sessions_list",
    "sessions_send",
    "sessions_spawn",
)
"""The names of the tools that a gateway has."""


def check_tools(chosen: Collection[str] | None) -> None:
    """Refuse a choice of tools that names one which isn't there."""
    for name in chosen or ():
        if name.removeprefix("-") not in TOOLS:
            raise Invalid("tools", f'there is no tool "{name.removeprefix("-")}"', f"There are {', '.join(TOOLS)}.")


def check_commands(chosen: Collection[str] | None) -> None:
    """Refuse a choice of commands that names one which isn't there."""
    known = [spec.name for spec in SPECS]
    for name in chosen or ():
        if name not in known:
            raise Invalid("commands", f'there is no command "{name}"', f"There are {', '.join(known)}.")


def chosen_tools(chosen: Collection[str] | None, offered: Iterable[str]) -> list[str]:
    """The tools that a choice leaves: those that it names, or, of all others, those that it doesn't take away."""
    if chosen is None:
        return list(offered)
    named = {name for name in chosen if not name.startswith("-")}
    if named or not chosen:
        return [name for name in offered if name in named]
    return [name for name in offered if f"-{name}" not in chosen]


class Retention(Value, frozen=True):
    """[retention]: days after its last message that a session is forgotten; 0 is never.

    An account's own number beats that of the kind of place, which beats the default.
    """

    days: Days = 0
    dm: Days | None = None
    group: Days | None = None
    thread: Days | None = None

    def of(self, lane: Lane, kind: Kind, account: int | None) -> int:
        """The days that hold in a lane; `account` is what its account says."""
        own = self.thread if lane.address.thread else self.dm if kind is Kind.DM else self.group
        return next((days for days in (account, own) if days is not None), self.days)


class AccountSettings(Value, frozen=True):
    """The host's settings for one account of a platform."""

    public: bool = False
    """Strangers may talk to the agent and own what they start."""
    allow: frozenset[str] = frozenset()
    """User ids that may talk to the agent in private."""
    allow_groups: frozenset[str] = frozenset()
    """Chat ids of the groups and channels in which the agent may be talked to."""
    mentions: Mentions = Mentions.OPTIONAL
    dm_threads: DmThreads | None = None
    """The beginning of a thread in a private chat there; None if the account has no rule of its own."""
    home: Place | None = None
    """Fallback place for output that has no lane."""
    streams: Streams = Streams.LIVE
    progress: ProgressShown = ProgressShown.LINE
    tools: tuple[str, ...] | None = None
    """The tools that agents have there, of those that they have: names, or names after a minus that they don't have."""
    deletions: Deletions = Deletions.HIDE
    retention_days: Days | None = None
    """Days after its last message that a session is forgotten; None if the account has no rule of its own."""
    agent: str = ""
    """The agent of sessions that begin there, by its name; empty for the default one."""
    agents: tuple[str, ...] = ()
    """Names of the agents that people other than the host may swap to there; none: the default one."""
    commands: tuple[str, ...] | None = None
    """The only commands that strangers may use there, beside answers to what they are asked; None: as anybody."""
    approvers: tuple[str, ...] = ()
    """Identities, as PLATFORM.ACCOUNT/USER, that answer what agents ask there; none: whoever they talk with does."""

    def __post_init__(self) -> None:
        for key, ids in (("allow", self.allow), ("allow_groups", self.allow_groups)):
            if any(not id.strip() for id in ids):
                raise Invalid(key, "one of its ids is blank", "Remove it.")
            if "*" in ids:
                raise Invalid(key, '"*" is not an id', "List ids, or let everybody in with public = true.")
        check_tools(self.tools)
        check_commands(self.commands)


NO_ACCOUNT = AccountSettings()
"""The settings of an account that the host didn't name."""


class QuestionSettings(Value, frozen=True):
    """The host's settings for what agents ask."""

    deadline: Seconds = 86400.0
    """Seconds for which a question stays open."""


class GatewaySettings(Value, frozen=True):
    """The host's settings for a gateway; a name that differs in segue.toml is told beside the default."""

    routing: Settings = Settings()
    hosts: tuple[Identity, ...] = ()
    """Every identity of the one person who runs this gateway."""
    accounts: Mapping[tuple[str, str], AccountSettings] = {}
    """By platform and account."""
    redaction: Redaction = Redaction.NONE
    quotes: Quotes = Quotes.OFF
    labels: bool = True
    """Whether a session without a title is known by its first question."""
    busy: Busy = Busy.QUEUE
    handoff: Patience = Patience()
    limits: Allowances = Allowances()
    """How much one person may have of each thing."""
    blind: Blind = Blind.AT_LEAST_ONCE
    slots: Count = 64
    """Turns that one replica runs at once."""
    attempts: Count = 3
    """Tries of a turn before its person gets an honest error."""
    deaths: Count = 5
    """Lives of the process that a turn may cost before its person gets an honest error; from the second on it is tried
    apart from others over which one died."""
    overload: Seconds = 20.0
    """Seconds that sessions may wait for a slot before no more is taken in."""
    turn_silence: Seconds = field(default=300.0, name="silence")
    """Seconds: an agent that says nothing for so long is hung."""
    turn_total: Seconds = field(default=3600.0, name="deadline")
    """Seconds that one try of a turn may take."""
    give_up_after: Seconds = 86400.0
    """Seconds: a delivery that failed for so long is a dead letter."""
    lease: Seconds = 5.0
    """Seconds after which a replica that doesn't beat counts as dead."""
    poll: Seconds = 1.0
    """Seconds between looks at the database when no hint comes."""
    grace: Annotated[float, Meta(ge=0, le=3600)] = 10.0
    """Seconds that running turns get to finish when the gateway stops."""
    ending: str = ""
    """The agent's last task in a session that is over, unless it has one of its own; empty: none."""
    zone: str = "UTC"
    """The time zone in which people mean the times of scheduled work, unless they name another."""
    data: str = ""
    """The data folder, where scheduled work leaves its files; empty if there is none."""
    sweep: float = 30.0
    """Seconds between looks for sessions that are over."""
    retention: Retention = Retention()
    questions: QuestionSettings = QuestionSettings()
    budget: Budgets = Budgets()
    agents_of_lanes: Mapping[str, str] = {}
    """Agents of sessions that begin in a place, by its name (`names_of`)."""
    commands_of_lanes: Mapping[str, tuple[str, ...]] = {}
    """The only commands that strangers may use in a place, by its name."""
    tools_of_lanes: Mapping[str, tuple[str, ...]] = {}
    """The tools that agents have in a place, of those that they have on its account, by its name."""
    agents_of_people: Mapping[str, str] = {}
    """Agents of sessions that somebody begins, by the key of one of their identities."""

    def agent_of(self, address: Address, identities: Iterable[str]) -> str:
        """The agent of a session that begins: its person's, else its place's, else its account's, if one is named.

        `identities` are the keys of those that its person has.
        """
        own = [self.agents_of_people[key] for key in identities if key in self.agents_of_people]
        own += [self.agents_of_lanes[name] for name in names_of(address) if name in self.agents_of_lanes]
        return own[0] if own else self.accounts.get((address.platform, address.account), NO_ACCOUNT).agent

    def stranger_may(self, command: str, address: Address) -> bool:
        """Whether whoever talks in a place only because everybody may can use a command there."""
        account = self.accounts.get((address.platform, address.account), NO_ACCOUNT).commands
        lists = [account, *(self.commands_of_lanes.get(name) for name in names_of(address))]
        return command in ANSWERS or all(command in listed for listed in lists if listed is not None)

    def kept_days(self, lane: Lane, kind: Kind) -> int:
        """Days after its last message that a session of a lane is forgotten; 0 is never."""
        account = self.accounts.get((lane.address.platform, lane.address.account), NO_ACCOUNT)
        return self.retention.of(lane, kind, account.retention_days)

    @property
    def shortest_kept(self) -> int:
        """Days after which the first sessions are forgotten; 0 if all are kept for ever."""
        own, accounts = self.retention, self.accounts.values()
        kept = (own.days, own.dm, own.group, own.thread, *(account.retention_days for account in accounts))
        return min((days for days in kept if days), default=0)
