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
    said: int
    """Messages at each number at once, end to end."""
    soaked: int
    """Turns over which memory is watched."""
    bomb: int
    """Characters of a text that is made to be slow."""
    at_once: int = 64
    long: tuple[int, ...] = (10, 1_000, 20_000)
    """Entries of sessions that go on."""


FULL = Scale(
    "full",
    few=40,
    some=1_000,
    many=100_000,
    messages=10,
    entries=5_000,
    times=200,
    peer_turns=400,
    said=2_000,
    soaked=20_000,
    bomb=20_000,
)
QUICK = Scale(
    "quick",
    few=40,
    some=200,
    many=10_000,
    messages=4,
    entries=500,
    times=60,
    peer_turns=100,
    said=256,
    soaked=2_000,
    bomb=2_000,
)
