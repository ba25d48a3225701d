"""Commands: what people type, run inside the transaction that takes it in, so that it happens and is answered once."""

from segue.runtime.commands.asking import Answer, Request
from segue.runtime.commands.table import Commands

__all__ = ["Answer", "Commands", "Request"]
