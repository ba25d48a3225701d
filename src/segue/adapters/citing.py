"""What somebody else said, shown as such: the agent mustn't take it for the words of whoever brings it up."""

from __future__ import annotations

BEGINNING = 1000
"""Characters of a message that are shown with an answer to it."""


def cite(text: str) -> str:
    """A text as a citation, with the empty line that ends it; empty if nothing was said."""
    lines = text.splitlines()
    return "".join(f"> {line}\n" for line in lines) + "\n" if lines else ""
