"""What the terminal suggests while somebody types."""

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from segue.cli.terminal.screen import Suggestions
from segue.core.values import SessionId
from segue.runtime.windows.frames import ShownCommand, ShownSession


def suggested(typed: str) -> list[str]:
    suggestions = Suggestions()
    suggestions.commands = [
        ShownCommand("resume", "", "Go back."),
        ShownCommand("retry", "", "Ask again."),
        ShownCommand("title", "", "Name it."),
    ]
    titled = [ShownSession(SessionId(title), title) for title in ("Lisbon in May", "lists", "Tax")]
    suggestions.sessions = [*titled, ShownSession(SessionId("1a2b"), "", "what is tea?")]
    found = suggestions.get_completions(Document(typed), CompleteEvent())
    return [typed[: len(typed) + each.start_position] + each.text for each in found]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/re", ["/resume", "/retry"]),
        ("/q", ["/quit"]),
        ("/", ["/resume", "/retry", "/title", "/quit"]),
        ("/resume li", ["/resume Lisbon in May", "/resume lists"]),
        ("/resume ", ["/resume Lisbon in May", "/resume lists", "/resume Tax", "/resume 1a2b"]),
        ("/resume what", ["/resume 1a2b"]),
        ("/title Li", []),
        ("re", []),
        ("say /re", []),
    ],
)
def test_commands_and_titles_are_completed(typed: str, expected: list[str]) -> None:
    assert suggested(typed) == expected
