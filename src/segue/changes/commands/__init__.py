"""Commands: what people type, run inside the transaction that takes it in, so that it happens and is answered once."""

from segue.changes.commands.request import Answer, Request
from segue.changes.commands.table import Commands

__all__ = ["Answer", "Commands", "Request"]
