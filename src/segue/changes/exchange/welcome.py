"""The welcome where somebody has just brought the agent: how to talk to it there, and who may."""

from segue.core.lanes import Lane, Place
from segue.core.settings import AccountSettings

WELCOME = "Hello. Mention me or answer a message of mine to talk to me, or type /help."


def welcome(place: Place, lane: Lane, account: AccountSettings) -> str:
    """The one line; it holds whether or not the account hears what isn't meant for it."""
    address = place.address
    if account.public or not account.allow_groups.isdisjoint((address.chat, lane.address.chat)):
        return WELCOME
    table = f"[{address.platform}.{address.account}]"
    return f'{WELCOME} Others here are answered once allow_groups of {table} lists "{address.chat}".'
