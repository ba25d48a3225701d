"""Signal, by a signal-cli daemon of the host's."""

from segue.adapters.signal.account import SignalAccount
from segue.adapters.signal.adapter import Signal

__all__ = ["Signal", "SignalAccount"]
