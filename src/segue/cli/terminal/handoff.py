"""A handoff as a terminal tells of it: a line for each step, and how to come back once it is over."""

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
    """The handoff from this terminal, as far as it was shown."""

    def __init__(self) -> None:
        self._shown: HandoffFrame | None = None

    def see(self, shown: HandoffFrame) -> list[str]:
        """Take note of a frame; returns the lines to print."""
        self._shown = shown
        if shown.state in LIVE:
            # That it was asked for, the answer to /handoff says.
            return [] if shown.step is HandoffProgress.REQUESTED else [f"{self.under_way} …"]
        # Why one failed or was cancelled is said in a notice.
        return [f"To {shown.to}: sent"] if self.done else []

    @property
    def id(self) -> str:
        """The handoff that was shown last; empty if none was."""
        return self._shown.id if self._shown else ""

    @property
    def under_way(self) -> str:
        """Its step; empty if none is on its way."""
        shown = self._shown
        return f"To {shown.to}: {STEPS[shown.step]}" if shown and shown.state in LIVE else ""

    @property
    def done(self) -> bool:
        """Whether the conversation is there."""
        return self._shown is not None and self._shown.state is State.DONE

    @property
    def farewell(self) -> str:
        """The way back, or why the conversation never left."""
        if self._shown is None or not self.done:
            return f"The conversation is still here: {self._shown.error if self._shown else ''}."
        return (
            f"This conversation goes on in {self._shown.to}.\n"
            "To come back, run `segue`; to bring it back, type /handoff terminal there while one is open here."
        )
