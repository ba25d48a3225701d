"""When a conversation has grown too long for its model, and what is asked of an agent to sum it up.

Law: it goes by the prompt size that the provider last reported, never by a guess of ours, and nothing is deleted: the
summary is an entry that stands for those before it.
"""

from segue.core.contracts.agents import Usage

FULL = 0.8
"""The share of a window above which the next turn might not fit."""


def compaction_due(last: Usage | None, window: int) -> bool:
    """Whether a conversation is to be summed up before its next turn, by the last request of the turn before."""
    return last is not None and window > 0 and last.input + last.output - last.reasoning > FULL * window


def request_to_sum_up(focus: str = "") -> str:
    """The request to an agent without a way of its own, as a turn like any other."""
    matters = f" Keep above all what concerns this: {focus}." if focus else ""
    return (
        "Sum up this conversation for yourself, to go on from the summary alone: who takes part and what each wants, "
        "what was decided and done, names, numbers and file names exactly, what is still open, and what was said last."
        f"{matters} Answer with the summary only, and use no tools."
    )
