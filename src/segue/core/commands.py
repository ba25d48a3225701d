"""Commands that people type, parsed: one table, and a function that reads a line by it."""

from __future__ import annotations

import re

from segue.core.values import Value

_LINE = re.compile(r"^/(?P<word>[a-zA-Z][a-zA-Z_-]*)(?:@(?P<to>[^\s@]+))?(?:\s+(?P<rest>.*))?$", re.DOTALL)


class Spec(Value, frozen=True):
    """A command: its name, what may follow, what it does, and the other names it goes by."""

    name: str
    usage: str
    does: str
    aliases: tuple[str, ...] = ()


SPECS: tuple[Spec, ...] = (
    Spec("new", "[TEXT]", "Start a new session here; the old one stays resumable.", ("reset", "clear")),
    Spec("resume", "[NAME or N]", "Go back to an earlier session; alone, list them.", ("continue", "switch")),
    Spec("sessions", "[new [TEXT], N or close N]", "List, start, switch or close this chat's sessions."),
    Spec("title", "[NAME]", "Name this session; alone, show its title.", ("rename", "name")),
    Spec("branch", "[NAME]", "Go on in a copy of this session and leave the original as it is.", ("fork",)),
    Spec("handoff", "[DESTINATION]", "Move this conversation to another place, live."),
    Spec("undo", "[N]", "Take back the last move or exchange, or the last N exchanges."),
    Spec("retry", "", "Ask the last message again.", ("regenerate",)),
    Spec("rewind", "", "As a reply to a message: go back to it."),
    Spec("compress", "[FOCUS]", "Let a summary stand for what was said; nothing is deleted.", ("compact", "summarize")),
    Spec("tree", "", "Show the branches of this session."),
    Spec("stop", "", "End your running turn.", ("cancel", "abort")),
    Spec("yes", "", "Allow what was just asked.", ("approve",)),
    Spec("no", "", "Refuse what was just asked.", ("deny",)),
    Spec("status", "", "Show this session, its place and what runs."),
    Spec("usage", "", "Show tokens and cost.", ("cost",)),
    Spec("search", "WORDS", "Search your own sessions."),
    Spec("export", "[markdown or jsonl]", "Send this session as a file.", ("save",)),
    Spec("link", "[CODE]", "Join your identities across platforms.", ("pair",)),
    Spec("who", "", "Show who you are and who is here.", ("whoami",)),
    Spec("why", "", "As a reply to a message, or of the last one: show which way it went.", ("trace",)),
    Spec("home", "", "Make this place the home of its platform.", ("sethome",)),
    Spec("schedule", "WHEN TASK [--to DESTINATION]", "Have something done later, or again and again."),
    Spec("schedules", "[cancel N]", "List scheduled work, or cancel some."),
    Spec("help", "[COMMAND]", "Show what you can type.", ("commands", "start")),
)
BY_NAME: dict[str, Spec] = {word: spec for spec in SPECS for word in (spec.name, *spec.aliases)}


class Command(Value, frozen=True):
    """A command as somebody typed it."""

    name: str
    """The name in the table, whichever alias was typed."""
    rest: str = ""


class Unknown(Value, frozen=True):
    """A line that looks like a command but is none of ours; the agent may know it."""

    word: str


def parse(text: str, agent: str = "") -> Command | Unknown | None:
    """The command in a message; None if it is ordinary text.

    `/new@other_bot` in a group is for somebody else, so it is ordinary text; two slashes at the start escape.
    """
    found = _LINE.match(text.strip())
    if found is None or (found["to"] and found["to"].casefold() != agent.casefold()):
        return None
    word, rest = found["word"].casefold(), (found["rest"] or "").strip()
    # A start link says /start with the code that it was made for.
    spec = BY_NAME.get("link" if word == "start" and rest else word)
    return Command(spec.name, rest) if spec else Unknown(found["word"])
