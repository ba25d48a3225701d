"""Commands: what is one, what is only text, and who it was meant for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.commands import BY_NAME, SPECS, Command, Means, Unknown, parse

WORDS = [(word, spec.name) for spec in SPECS for word in (spec.name, *spec.aliases)]
ALWAYS = [(word, name) for word, name in WORDS if word != "start"]
"""Telegram's word is another command when something follows it."""


@pytest.mark.parametrize(("word", "name"), ALWAYS, ids=[word for word, _ in ALWAYS])
def test_every_name_and_alias_is_understood(word: str, name: str) -> None:
    assert parse(f"/{word}") == Command(name)
    assert parse(f"  /{word.upper()}  some  words \n") == Command(name, "some  words")
    assert parse(f"/{word}@segue_bot x", agent="Segue_Bot") == Command(name, "x")
    assert parse(f"/{word}@another_bot x", agent="segue_bot") is None


def test_no_two_commands_share_a_name() -> None:
    assert len(WORDS) == len(BY_NAME)
    assert all(word == word.casefold() for word in BY_NAME)


def test_every_command_says_what_it_does_in_a_sentence() -> None:
    assert [spec.name for spec in SPECS if not (spec.does[:1].isupper() and spec.does.endswith("."))] == []


@pytest.mark.parametrize(
    ("text", "command"),
    [
        pytest.param("/new", Command("new"), id="alone"),
        pytest.param("/new  ", Command("new"), id="trailing space"),
        pytest.param("\n /new", Command("new"), id="leading space"),
        pytest.param("/new Plan my trip", Command("new", "Plan my trip"), id="with text"),
        pytest.param("/new\nPlan\nmy trip", Command("new", "Plan\nmy trip"), id="text on the next lines"),
        pytest.param("/title\tTax", Command("title", "Tax"), id="a tab"),
        pytest.param("/title\u00a0Tax", Command("title", "Tax"), id="a space that doesn't break"),
        pytest.param("/title Café 税金 😀", Command("title", "Café 税金 😀"), id="unicode"),
        pytest.param("/title /new", Command("title", "/new"), id="a command inside"),
        pytest.param("/resume Tax #2", Command("resume", "Tax #2"), id="a numbered title"),
        pytest.param("/handoff telegram:-100", Command("handoff", "telegram:-100"), id="a destination"),
        pytest.param("/New", Command("new"), id="a phone's capital letter"),
        pytest.param("/RESET", Command("new"), id="an alias in capitals"),
        pytest.param("/start", Command("help", "", Means.FOLLOWED), id="what Telegram sends first"),
        pytest.param("/start CDFG-HJ34", Command("link", "CDFG-HJ34", Means.FOLLOWED), id="what a start link sends"),
        pytest.param("/nwe", Unknown("nwe"), id="a slip"),
        pytest.param("/nwe x", Unknown("nwe"), id="a slip with text"),
        pytest.param("/Plan-it now", Unknown("Plan-it"), id="the agent's own, as it was typed"),
        pytest.param("/usr", Unknown("usr"), id="the root of a path"),
    ],
)
def test_a_line_that_is_a_command(text: str, command: Command | Unknown) -> None:
    assert parse(text) == command


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("   ", id="spaces"),
        pytest.param("hello", id="words"),
        pytest.param("type /new to start over", id="a command in a sentence"),
        pytest.param("hello\n/new", id="a command on the second line"),
        pytest.param("/", id="a slash"),
        pytest.param("/ new", id="a slash and a space"),
        pytest.param("//new", id="escaped"),
        pytest.param("/usr/bin", id="a path"),
        pytest.param("/new/session", id="a path that begins like a command"),
        pytest.param("/usr/bin is a folder", id="a path and words"),
        pytest.param("/etc/hosts\n/new", id="a path and lines"),
        pytest.param("/2", id="a number"),
        pytest.param("/new!", id="an exclamation"),
        pytest.param("/new.", id="a full stop"),
        pytest.param("/new\0", id="a NUL"),
        pytest.param("/néw", id="a letter that no command has"),
        pytest.param("/ѕtop", id="a letter that only looks like one"),  # noqa: RUF001
        pytest.param("／new", id="a slash that only looks like one"),  # noqa: RUF001
        pytest.param("/new@", id="for nobody"),
        pytest.param("/new@a@b", id="for two"),
        pytest.param("/new@other", id="for somebody else"),
    ],
)
def test_a_line_that_is_only_text(text: str) -> None:
    assert parse(text, agent="segue_bot") is None


def test_without_a_name_of_its_own_the_agent_is_never_meant_by_name() -> None:
    assert parse("/new@segue_bot") is None


@given(st.text(st.characters(exclude_categories=())), st.text())
def test_whatever_was_typed_a_command_is_in_the_table_and_its_rest_was_typed(text: str, agent: str) -> None:
    for line in (text, "/" + text, "/new " + text, "/new@" + text):
        match parse(line, agent):
            case Command(name, rest):
                assert name in {spec.name for spec in SPECS}
                assert rest in line
            case Unknown(word):
                assert line.strip().startswith("/" + word)
                assert word.casefold() not in BY_NAME
            case None:
                pass


@given(st.text(st.characters(exclude_categories=())))
def test_what_follows_a_command_arrives_whole(text: str) -> None:
    assert parse(f"/new {text}") == Command("new", text.strip())
