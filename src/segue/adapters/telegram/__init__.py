"""Telegram, by a bot of the host's."""

from segue.adapters.telegram.account import TelegramAccount
from segue.adapters.telegram.adapter import Telegram, TelegramByWebhook

__all__ = ["Telegram", "TelegramAccount", "TelegramByWebhook"]
