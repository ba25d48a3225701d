"""Errors: the tree that the docstring draws is the tree there is, and a message says what to do."""

import inspect
import re

from segue import errors
from segue.errors import Fenced, Invalid, Refusal, Refused


def test_the_tree_that_is_drawn_is_the_tree_there_is() -> None:
    drawn: dict[str, str] = {}
    above = ["Exception"]
    for branch, name in re.findall(r"^    ([│├└─ ]*)([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE):
        depth = 1 + len(branch) // 4
        drawn[name] = above[depth - 1]
        above[depth:] = [name]
    classes = [error for _, error in inspect.getmembers(errors, inspect.isclass) if issubclass(error, Exception)]
    assert drawn == {error.__name__: error.__base__.__name__ for error in classes if error.__base__}


def test_an_error_says_what_happened_and_what_to_do() -> None:
    assert str(Invalid("zone", "'Mars' is not a time zone", "Give a name such as Europe/Lisbon.")) == (
        "zone: 'Mars' is not a time zone. Give a name such as Europe/Lisbon."
    )
    assert str(Refused(Refusal.NOT_ALLOWED)) == "You may not do that here."
    assert (
        str(Fenced("The session s1")) == "The session s1 is held by another replica now; this one must drop its work."
    )


def test_an_error_about_a_long_value_does_not_quote_all_of_it() -> None:
    told = str(Invalid("name" * 9_000, "x" * 100_000, "Give another."))
    assert len(told) < 3_000
    assert told.endswith("…. Give another.")
