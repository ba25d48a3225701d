"""A clock that only the test moves."""

from segue.core.values import Moment


class HandClock:
    """A clock that stands still until it is moved; it serves wherever Segue takes a clock."""

    def __init__(self, now: Moment = 1_750_000_000.0) -> None:
        self.now = now

    def __call__(self) -> Moment:
        """The time that it shows."""
        return self.now

    def passes(self, seconds: float) -> Moment:
        """Let time pass; back in time too, if negative, as clocks that are set do."""
        self.now += seconds
        return self.now
