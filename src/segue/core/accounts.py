"""Accounts: how each one stands with its platform, as values; nothing looks at the words for it."""

from enum import StrEnum

from segue.core.values import Value


class Reach(StrEnum):
    """Whether an account reaches its platform now."""

    CALLED = "called"
    """Nothing has to be kept up: the platform calls."""
    CONNECTING = "connecting"
    CONNECTED = "connected"
    ELSEWHERE = "elsewhere"
    """Another replica holds the one connection."""
    BROKEN = "broken"


_WORDS = {
    Reach.CALLED: "waits to be called",
    Reach.CONNECTING: "is connecting",
    Reach.CONNECTED: "is connected",
    Reach.ELSEWHERE: "is held by another replica",
    Reach.BROKEN: "isn't connected",
}


_GRAVEST = (Reach.BROKEN, Reach.CONNECTING, Reach.CONNECTED, Reach.ELSEWHERE, Reach.CALLED)


class Health(Value, frozen=True):
    """The health of an account with its platform now."""

    reach: Reach
    why: str = ""
    """The cause, and what is done about it."""

    def beside(self, other: "Health") -> "Health":
        """The health of an account that has both connections: the graver, and what is here before elsewhere."""
        return min(self, other, key=lambda health: _GRAVEST.index(health.reach))

    @property
    def words(self) -> str:
        """The health and its cause, as a person reads it after the account's name."""
        return f"{_WORDS[self.reach]}: {self.why}" if self.why else _WORDS[self.reach]
