"""Discord, by a bot of the host's."""

from segue.adapters.discord.account import DiscordAccount
from segue.adapters.discord.adapter import Discord

__all__ = ["Discord", "DiscordAccount"]
