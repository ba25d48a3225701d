"""Windows: the terminals, pages and editors that Segue itself serves, by name, and what tells who looks at one."""

from typing import Protocol, runtime_checkable

from segue.core.lanes import Identity

TERMINAL = "terminal"
WEB = "web"
EDITOR = "editor"
PROGRAM = "mcp"
"""Programs that act for somebody: nobody looks there, and nothing goes there."""
ACCOUNT = "local"

HOSTS = tuple(Identity(platform, ACCOUNT, "host") for platform in (TERMINAL, WEB, EDITOR))
"""Identities of whoever opens a terminal, a page or an editor here: the host, since the sign-in made sure."""


def of_script(chat: str) -> bool:
    """Whether a window is a script's own, which comes and goes; the id of a person's has no colon."""
    return ":" in chat


@runtime_checkable
class ShowsWindows(Protocol):
    """An adapter whose chats are windows: a message reaches whoever looks now."""

    platform: str

    @property
    def chats(self) -> list[str]:
        """Chats that somebody looks at now."""
        ...

    def watched(self, chat: str) -> bool:
        """Whether anybody looks."""
        ...
