"""WhatsApp, by a business's number on the Cloud API."""

from segue.adapters.whatsapp.account import WhatsAppAccount
from segue.adapters.whatsapp.adapter import WhatsApp

__all__ = ["WhatsApp", "WhatsAppAccount"]
