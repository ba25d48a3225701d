"""How an agent names a session: by a label that it gave to a child, or by an id."""

from __future__ import annotations

from segue.errors import Invalid

SESSION = "the id of a session, as sessions_list shows it, instead of a label."


def named(label: str, session: str) -> None:
    """Raise `Invalid` unless exactly one of the two is there."""
    if not label and not session:
        raise Invalid("label", "it is missing, and so is session", "Give the label of a child, or a session's id.")
    if label and session:
        raise Invalid("session", "there is a label too", "Give one of the two.")
