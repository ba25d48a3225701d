"""A handoff as a terminal tells of it: a line for each step, and how to come back once it is over."""

from __future__ import annotations

from segue.core.handoffs import Progress, State

HANDING = "Handing "
"""How the answer to /handoff begins if one is on its way."""


class Moved:
    """What is known of the handoff from this terminal."""

    def __init__(self) -> None:
        self.under_way = ""
        """How far it is; empty if none is."""
        self.done = False
        self.ended = False
        self._to = ""
        self._error = ""

    def see(self, shown: dict[str, str]) -> list[str]:
        """A frame about it; returns what to print."""
        self._to, self._error = shown["to"], shown["error"]
        if shown["state"] in (State.REQUESTED, State.CLAIMED):
            self.ended = False
            self.under_way = f"To {self._to}: {shown['step']}"
            # That it was asked for, the answer to /handoff says.
            return [] if shown["step"] == Progress.REQUESTED else [f"{self.under_way} …"]
        self.under_way, self.ended = "", True
        # Why one failed or was cancelled is said in a notice.
        self.done = shown["state"] == State.DONE
        return [f"To {self._to}: sent"] if self.done else []

    @property
    def farewell(self) -> str:
        """How to come back, or why it never left."""
        if not self.done:
            return f"The conversation is still here: {self._error}."
        return (
            f"This conversation goes on in {self._to}.\n"
            "To come back, run `segue`; to bring it back, type /handoff terminal there while one is open here."
        )
