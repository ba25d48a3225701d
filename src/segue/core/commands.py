"""Commands that people type: one table, and a function that reads a line by it.

Law: a command is one row here and one method of its name in `changes/commands`. What reaches only one's own sessions
(resume, search) is for everybody who may speak. A branch is a session of one's own with all that was said before, so it
is the owner's to make.
"""

import re
from difflib import get_close_matches
from enum import Enum

from segue.core.people import ANYBODY, HOST_ONLY, OWNERS, PEOPLE, Standing
from segue.core.values import Value

_LINE = re.compile(r"^/(?P<word>[a-zA-Z][a-zA-Z_-]*)(?:@(?P<to>[^\s@]+))?(?:\s+(?P<rest>.*))?$", re.DOTALL)


class ShownTo(Enum):
    """Who is to see the answer to a command, where several people are."""

    ALL = "everybody there"
    ASKER = "whoever typed it"
    ASKER_OF_A_LIST = "whoever typed it, if nothing follows it: then it is a list"


class Spec(Value, frozen=True):
    """A command: its name, what may follow, what it does, who may, its other names, and who is to see its answer."""

    name: str
    usage: str
    does: str
    may: frozenset[Standing]
    aliases: tuple[str, ...] = ()
    shown_to: ShownTo = ShownTo.ALL


GROUPS: dict[str, tuple[Spec, ...]] = {
    "Conversations": (
        Spec("new", "[TEXT]", "Start a new session here; the old one stays resumable.", PEOPLE, ("reset", "clear")),
        Spec(
            "resume",
            "[NAME or N]",
            "Go back to an earlier session; alone, list them.",
            PEOPLE,
            ("continue", "switch"),
            ShownTo.ASKER_OF_A_LIST,
        ),
        Spec(
            "sessions",
            "[new [TEXT], N, close N or NAME]",
            "List, start, switch or close this chat's sessions.",
            PEOPLE,
            shown_to=ShownTo.ASKER_OF_A_LIST,
        ),
        Spec(
            "title", "[NAME]", 'Name this session; alone, show its title; "" takes it away.', OWNERS, ("rename", "name")
        ),
        Spec("branch", "[NAME]", "Go on in a copy of this session and leave the original as it is.", OWNERS, ("fork",)),
        Spec("handoff", "[DESTINATION]", "Move this conversation to another place, live.", OWNERS),
        Spec("search", "WORDS", "Search your own sessions.", PEOPLE, shown_to=ShownTo.ASKER),
        Spec("export", "[markdown or jsonl]", "Send this session as a file.", OWNERS, ("save",), ShownTo.ASKER),
    ),
    "Who answers": (
        Spec("agent", "[NAME]", "List the agents, or let another one answer; the conversation stays.", OWNERS),
    ),
    "Take back and try again": (
        Spec("undo", "[N]", "Take back the last move or exchange, or the last N exchanges.", OWNERS),
        Spec("redo", "", "Take back the last /undo, if nothing was said since.", OWNERS),
        Spec("retry", "", "Ask the last message again.", OWNERS, ("regenerate",)),
        Spec("rewind", "[N]", "Go back to a message: the one that you reply to, or number N of /tree.", OWNERS),
        Spec(
            "tree",
            "[LETTER]",
            "Show the branches of this session and its newest messages, or go to a branch.",
            OWNERS,
            shown_to=ShownTo.ASKER_OF_A_LIST,
        ),
        Spec(
            "compress",
            "[FOCUS]",
            "Let a summary stand for what was said; nothing is deleted.",
            OWNERS,
            ("compact", "summarize"),
        ),
        Spec(
            "forget",
            "[N or session]",
            "Delete for good what you reply to, exchange N of /tree, or this session; asks first.",
            PEOPLE,
        ),
    ),
    "What it remembers": (
        Spec(
            "notes",
            "[clear [N]]",
            "Show what your agents noted about you; clear deletes it for good.",
            PEOPLE,
            ("memory",),
            ShownTo.ASKER,
        ),
    ),
    "While it answers": (
        Spec("stop", "", "End your running turn; the host's ends anybody's here.", PEOPLE, ("cancel", "abort")),
        Spec("yes", "", "Allow what was just asked.", PEOPLE, ("approve",)),
        Spec("no", "", "Refuse what was just asked.", PEOPLE, ("deny",)),
        Spec("answer", "[N] TEXT", "Answer what was asked, or number N of /questions.", PEOPLE),
        Spec(
            "questions",
            "[revoke N]",
            "List what waits for your answer and what you always allow; revoke N takes one of those back.",
            PEOPLE,
            shown_to=ShownTo.ASKER_OF_A_LIST,
        ),
    ),
    "Later": (
        Spec("schedule", "WHEN TASK [--to DESTINATION]", "Have something done later, or again and again.", OWNERS),
        Spec(
            "schedules", "[cancel N]", "List scheduled work, or cancel some.", OWNERS, shown_to=ShownTo.ASKER_OF_A_LIST
        ),
    ),
    "People and places": (
        Spec("who", "", "Show who you are and who is here.", PEOPLE, ("whoami",)),
        Spec("link", "[CODE]", "Join your identities across platforms.", ANYBODY, ("pair",)),
        Spec("unlink", "[N]", "List the accounts that are linked with yours; with a number, unlink one.", PEOPLE),
        Spec(
            "revoke", "[N]", "List who was let in by a code; with a number, take it back.", HOST_ONLY, (), ShownTo.ASKER
        ),
        Spec("home", "", "Make this place the home of its platform.", HOST_ONLY, ("sethome",)),
    ),
    "What happened": (
        Spec("status", "", "Show this session, its place and what runs.", PEOPLE, shown_to=ShownTo.ASKER),
        Spec("usage", "", "Show tokens and cost.", OWNERS, ("cost",), ShownTo.ASKER),
        Spec(
            "why",
            "",
            "Show which way a message went: the one that you reply to, or the last.",
            PEOPLE,
            ("trace",),
            ShownTo.ASKER,
        ),
        Spec("help", "[COMMAND]", "Show what you can type.", PEOPLE, ("commands", "start")),
    ),
}
"""The commands, in the groups in which /help lists them."""
SPECS: tuple[Spec, ...] = tuple(spec for group in GROUPS.values() for spec in group)
BY_NAME: dict[str, Spec] = {word: spec for spec in SPECS for word in (spec.name, *spec.aliases)}

ANSWERS = frozenset({"yes", "no", "answer"})
"""The commands that answer what somebody is asked."""


class Means(Enum):
    """How a command came about."""

    TYPED = "somebody typed it"
    ANSWERED = "somebody answered a question in another way than by a command"
    FOLLOWED = "somebody opened a start link or pressed Start, perhaps without reading it"


class Command(Value, frozen=True):
    """A command as somebody typed it."""

    name: str
    """The name in the table, whichever alias was typed."""
    rest: str = ""
    means: Means = Means.TYPED

    @property
    def shown_to(self) -> ShownTo:
        """Who is to see the answer."""
        shown_to = BY_NAME[self.name].shown_to
        if shown_to is ShownTo.ASKER_OF_A_LIST:
            return ShownTo.ALL if self.rest else ShownTo.ASKER
        return shown_to


class Unknown(Value, frozen=True):
    """A line that looks like a command but is none of ours; the agent may have it."""

    word: str


def parse(text: str, agent: str = "") -> Command | Unknown | None:
    """The command in a message; None if it is ordinary text.

    `/new@other_bot` in a group is for somebody else, so it is ordinary text; two slashes at the start escape.
    """
    found = _LINE.match(text.strip())
    if found is None or (found["to"] and found["to"].casefold() != agent.casefold()):
        return None
    word, rest = found["word"].casefold(), (found["rest"] or "").strip()
    if word == "start":
        # A start link says so, with the code that it was made for; the button in a new chat without one.
        return Command("link" if rest else "help", rest, Means.FOLLOWED)
    spec = BY_NAME.get(word)
    return Command(spec.name, rest) if spec else Unknown(found["word"])


def nearest(word: str) -> str:
    """The command that was perhaps meant by a word that is none; empty if none is near."""
    return next(iter(get_close_matches(word.casefold(), BY_NAME, 1)), "")


def may_ask(command: Command | Unknown | None) -> frozenset[Standing]:
    """The right that such a line needs; a command that isn't ours is the agent's, so it is spoken."""
    return BY_NAME[command.name].may if isinstance(command, Command) else PEOPLE
