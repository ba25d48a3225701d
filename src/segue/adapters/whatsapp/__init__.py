"""WhatsApp, by a business's number on the Cloud API, or by a device that is linked to a phone's account."""

from segue.adapters.whatsapp.account import WhatsAppAccount
from segue.adapters.whatsapp.adapter import WhatsApp
from segue.adapters.whatsapp.phone import WhatsAppByPhone

__all__ = ["WhatsApp", "WhatsAppAccount", "WhatsAppByPhone"]
