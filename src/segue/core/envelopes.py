"""What a model is sent of somebody's words: the author is data beside the text, never a prefix that it could forge."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from segue.core.transcripts import Draft, Entry, Role


class Voices(StrEnum):
    """How many people an agent hears in a session."""

    ONE = "one"
    """One person: their words are sent as they are."""
    SEVERAL = "several"
    """Several people, or one in several places: each message is an envelope that names its author."""


def words(said: Draft | Entry, voices: Voices) -> str:
    """The text of what was said as a model is to get it."""
    if voices is Voices.ONE or said.author.role is not Role.PERSON:
        return said.text
    return msgspec.json.encode({"author": said.author.name, "text": said.text}).decode()
