"""A handoff as the terminal shows it: a line for each step, and the way back at the end."""

from segue.core.handoffs import LIVE, HandoffProgress, State
from segue.runtime.windows.frames import HandoffFrame

STEPS = {
    HandoffProgress.REQUESTED: "asked for",
    HandoffProgress.CLAIMED: "on its way",
    HandoffProgress.OPENED: "the place is open",
    HandoffProgress.WRITING: "the agent writes there",
    HandoffProgress.SENDING: "its first words are being sent",
    HandoffProgress.ENDED: "ended",
}


class Departure:
    """The handoff from this terminal and its last shown step."""

    def __init__(self) -> None:
        self._shown: HandoffFrame | None = None

    def see(self, shown: HandoffFrame) -> list[str]:
        """Process a frame; return the lines to print."""
        self._shown = shown
        if shown.state in LIVE:
            # The answer to /handoff reports the request.
            return [] if shown.step is HandoffProgress.REQUESTED else [f"{self.under_way} …"]
        # A notice reports the reason of a failure or cancellation.
        return [f"To {shown.to}: sent"] if self.done else []

    @property
    def id(self) -> str:
        """The id of the last handoff; empty if there was none."""
        return self._shown.id if self._shown else ""

    @property
    def under_way(self) -> str:
        """Its step; empty if no handoff is in progress."""
        shown = self._shown
        return f"To {shown.to}: {STEPS[shown.step]}" if shown and shown.state in LIVE else ""

    @property
    def done(self) -> bool:
        """Whether the conversation has moved."""
        return self._shown is not None and self._shown.state is State.DONE

    @property
    def farewell(self) -> str:
        """Explain how to come back, or why the conversation didn't move."""
        if self._shown is None or not self.done:
            return f"The conversation is still here: {self._shown.error if self._shown else ''}."
        return (
            f"This conversation goes on in {self._shown.to}.\n"
            "To come back, run `segue`; to bring it back, type /handoff terminal there while one is open here."
        )
