"""How much is measured: the whole, or enough of it for a minute."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """The sizes of one run."""

    name: str
    few: int
    """Sessions in the small database: so many that its host has twenty to list."""
    some: int
    """Conversations that have turns."""
    many: int
    """Sessions in the large database."""
    messages: int
    """Turns of each conversation."""
    entries: int
    """Entries of each session in the small database, so that both databases hold about as much text."""
    times: int
    """How often a single operation is timed."""
    peer_turns: int
    """Turns of each peer, which take longer."""
    at_once: int = 64


FULL = Scale("full", few=40, some=1_000, many=100_000, messages=10, entries=5_000, times=200, peer_turns=400)
QUICK = Scale("quick", few=40, some=200, many=10_000, messages=4, entries=500, times=60, peer_turns=100)
