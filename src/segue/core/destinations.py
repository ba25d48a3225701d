"""Destinations of handoffs, as people name them: PLATFORM, ACCOUNT, PLATFORM.ACCOUNT, each perhaps with :CHAT."""

from collections.abc import Iterable

from segue.core.lanes import Address
from segue.core.values import Value
from segue.errors import Invalid

OWN = {"terminal": "local", "web": "local", "editor": "local"}
"""The platforms that Segue itself serves, and their one account."""
_ALIASES = {"page": "web", "browser": "web"}


class Wanted(Value, frozen=True):
    """A destination as somebody typed it."""

    name: str
    chat: str = ""


def parse(typed: str) -> Wanted:
    """A destination, split at the first colon: ids of chats may have more of them."""
    name, colon, chat = typed.strip().partition(":")
    name, chat = name.strip(), chat.strip()
    if not name or (colon and not chat):
        raise Invalid(
            "destination", f"{typed!r} is no place", "Type PLATFORM, ACCOUNT or PLATFORM.ACCOUNT, or one with :CHAT."
        )
    return Wanted(_ALIASES.get(name.casefold(), name), chat)


def matching(wanted: Wanted, accounts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The accounts, as platform and name, that somebody may have meant; as it was typed goes before other capitals."""
    known = list(accounts)
    exact = [account for account in known if wanted.name in _names(account)]
    folded = wanted.name.casefold()
    return exact or [account for account in known if folded in map(str.casefold, _names(account))]


def shown(platform: str, account: str) -> str:
    """An account as people name it."""
    return platform if OWN.get(platform) == account else f"{platform}.{account}"


def spot(address: Address) -> str:
    """An address as people read it."""
    account = shown(address.platform, address.account)
    if address.platform in OWN:
        return account
    parts = {"space": address.space, "chat": address.chat, "thread": address.thread}
    return ", ".join([account, *(f"{part} {id}" for part, id in parts.items() if id)])


def names_of(address: Address) -> tuple[str, ...]:
    """The names by which a host writes an address in settings, the narrowest first: a thread is a part of its chat."""
    account = shown(address.platform, address.account)
    if address.platform in OWN:
        return (account,)
    chats = (f"{address.chat}/{address.thread}", f"{address.space}/{address.chat}", address.chat)
    return tuple(f"{account}:{chat}" for chat in chats)


def _names(account: tuple[str, str]) -> tuple[str, str, str]:
    platform, name = account
    return platform, name, f"{platform}.{name}"
