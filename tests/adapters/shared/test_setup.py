"""Keys of an account that is being added."""

from enum import StrEnum

import pytest

from segue.adapters.shared.setup import greeted, keys_of, written
from segue.core.values import Secret, Value
from segue.errors import Disconnected, Invalid, SendError, SendLater, SendNever


class Look(StrEnum):
    PLAIN = "plain"
    FANCY = "fancy"


class Keys(Value, frozen=True):
    token: Secret
    number: str
    word: Secret = Secret("")
    look: Look = Look.PLAIN
    api: str = "https://example.org"


def test_an_empty_answer_leaves_the_default() -> None:
    keys = keys_of(Keys, {"token": " t ", "number": "7", "look": "fancy", "api": " ", "road": "another question's"})
    assert keys == Keys(Secret("t"), "7", look=Look.FANCY)
    assert keys_of(Keys, {}) == Keys(Secret(""), ""), "what is needed is there, for the keys to say what is wrong"


def test_what_is_no_choice_is_refused_by_its_name() -> None:
    with pytest.raises(Invalid, match=r'^look\b.*Write "plain" or "fancy"'):
        keys_of(Keys, {"token": "t", "number": "7", "look": "loud"})


def test_only_what_is_no_default_is_written() -> None:
    assert written(Keys(Secret("t"), "7")) == ({"number": "7"}, {"token": Secret("t")})
    assert written(Keys(Secret("t"), "7", Secret("w"), Look.FANCY, "http://a.example")) == (
        {"number": "7", "look": "fancy", "api": "http://a.example"},
        {"token": Secret("t"), "word": Secret("w")},
    )


class Mouth:
    """An API that says hello, or can't."""

    def __init__(self, error: SendError | None = None) -> None:
        self._error = error
        self.closed = False

    async def close(self) -> None:
        self.closed = True

    async def hello(self) -> None:
        if self._error is not None:
            raise self._error


async def test_whoever_adds_an_account_is_told_what_became_of_the_first_message() -> None:
    assert await greeted("Irc", Mouth(), Mouth.hello) == "Said hello to you on Irc."
    refuses = Mouth(SendNever("no strangers"))
    assert await greeted("Irc", refuses, Mouth.hello) == "Irc didn't let me say hello: no strangers"
    assert refuses.closed
    with pytest.raises(Disconnected, match="not now"):
        await greeted("Irc", Mouth(SendLater("not now")), Mouth.hello)
