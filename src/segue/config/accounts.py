"""[PLATFORM.ACCOUNT]: the accounts and the identities of the host."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from segue import plugins
from segue.config.sections import HomeSection
from segue.config.tables import Tables, as_table, joined, keys_of, nearest
from segue.core.contracts.setup import BeginsDmThreads
from segue.core.destinations import OWN
from segue.core.lanes import Identity
from segue.core.settings import AccountSettings
from segue.core.values import Live, Value
from segue.errors import Invalid
from segue.plugins import MakesAdapter

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class AccountTable(Live, frozen=True):
    """One account of a platform: its adapter's settings, and who may talk to it."""

    platform: str
    name: str
    keys: MakesAdapter
    settings: AccountSettings

    @property
    def path(self) -> str:
        """The name of its table."""
        return joined(self.platform, self.name)


def read_accounts(said: Mapping[str, Any], sections: Iterable[str], tables: Tables) -> tuple[AccountTable, ...]:
    """Read the accounts: every table that isn't a section belongs to a platform."""
    platforms, sections = plugins.platforms(), list(sections)
    found = []
    for platform, accounts in said.items():
        if platform in sections:
            continue
        if platform not in platforms:
            fix = nearest(platform, [*sections, *platforms])
            raise Invalid(platform, "there is no such key or platform", fix)
        found += [_account(platform, name, table, tables) for name, table in as_table(accounts, platform).items()]
    return tuple(found)


def read_owners(said: Mapping[str, Any], accounts: Iterable[AccountTable], tables: Tables) -> tuple[Identity, ...]:
    """Read the identities of the host."""
    owners = tables.read(_only(said, {"owners"}), Owners, "").owners
    known = {account.path: account for account in accounts}
    return tuple(dict.fromkeys(_identity(owner, known, "owners") for owner in owners))


def check_approvers(accounts: Collection[AccountTable]) -> None:
    """Refuse approvers whose accounts are missing from this file."""
    known = {account.path: account for account in accounts}
    for account in accounts:
        for approver in account.settings.approvers:
            _identity(approver, known, joined(account.path, "approvers"))


def read_people(chosen: Mapping[str, str], accounts: Iterable[AccountTable]) -> dict[str, str]:
    """Read the agents that people chose, by the keys of their identities."""
    known = {account.path: account for account in accounts}
    return {_identity(name, known, f'people."{name}"').key: agent for name, agent in chosen.items()}


def check_lanes(chosen: Iterable[str], accounts: Iterable[AccountTable]) -> None:
    """Refuse a lane whose account isn't in this file."""
    known = [*(account.path for account in accounts), *OWN]
    for name in chosen:
        account, colon, chat = name.partition(":")
        if account not in known:
            raise Invalid(f'lanes."{name}"', "it is on no account of this file", nearest(account, known))
        if account not in OWN and not (colon and chat.strip()):
            raise Invalid(f'lanes."{name}"', "it names no chat", 'Write it as "PLATFORM.ACCOUNT:CHAT".')


def refuse_silence(accounts: Iterable[AccountTable], owners: Collection[Identity]) -> None:
    """Refuse an account that nobody may talk to. Its host surely wants somebody to reach it."""
    heard = {(owner.platform, owner.account) for owner in owners}
    for account in accounts:
        open_to = account.settings
        if open_to.public or open_to.allow or open_to.allow_groups or (account.platform, account.name) in heard:
            continue
        fix = "List user ids in allow, name yourself in owners, or let everybody in with public = true."
        raise Invalid(account.path, "nobody may talk to it", fix)


class Owners(Value, frozen=True):
    """owners = [...]."""

    owners: tuple[str, ...] = ()


def _account(platform: str, name: str, table: object, tables: Tables) -> AccountTable:
    path = joined(platform, name)
    if not isinstance(table, Mapping):
        fix = f"Write it under [{platform}.NAME], with a name of your own for the account."
        raise Invalid(path, "it belongs to no account", fix)
    if not _NAME.fullmatch(name):
        raise Invalid(path, "that can't be an account's name", "Use letters, digits, - and _, at most 64.")
    kind = plugins.adapter_keys(platform)
    common, own = set(keys_of(AccountSettings)), set(keys_of(kind))
    tables.refuse_unknown(table, common | own, path)
    settings = tables.read(_only(table, common - {"home"}), AccountSettings, path)
    if "home" in table:
        home = tables.read(table["home"], HomeSection, joined(path, "home"))
        settings = replace(settings, home=home.place(platform, name))
    keys = tables.read(_only(table, own), kind, path)
    if settings.dm_threads is None and isinstance(keys, BeginsDmThreads):
        settings = replace(settings, dm_threads=keys.dm_threads)
    return AccountTable(platform, name, keys, settings)


def _identity(owner: str, accounts: Mapping[str, AccountTable], key: str) -> Identity:
    where, slash, user = owner.partition("/")
    if not slash or "." not in where or not user.strip():
        raise Invalid(key, f'"{owner}" is not an identity', 'Write it as "PLATFORM.ACCOUNT/USER".')
    account = accounts.get(where)
    if account is None:
        raise Invalid(key, f'"{owner}" names no account of this file', nearest(where, accounts))
    return Identity(account.platform, account.name, user)


def _only(table: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key in keys}
