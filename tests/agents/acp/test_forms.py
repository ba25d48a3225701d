"""Forms that agents want filled in, as people answer them."""

from typing import Any

import pytest
from acp.schema import ElicitationSchema

from segue.agents.acp.forms import fill

TEA = [{"const": "g", "title": "Green"}, {"const": "b", "title": "Black", "description": "with milk"}]
ONE: dict[str, Any] = {"tea": {"type": "string", "title": "Tea", "oneOf": TEA}, "tea_custom": {"type": "string"}}
SEVERAL: dict[str, Any] = {"teas": {"type": "array", "items": {"anyOf": TEA}}}
MANY: dict[str, Any] = {"day": {"type": "string", "enum": [str(n) for n in range(1, 32)]}}
SURE: dict[str, Any] = {"sure": {"type": "boolean"}}
HOW: dict[str, Any] = {"litres": {"type": "number"}}


class Person:
    """Somebody who answers in turn, and then not any more."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def __call__(self, words: str, choices: tuple[str, ...]) -> str | None:
        self.asked.append((words, choices))
        answer = self._answers.pop(0) if self._answers else None
        assert not choices or answer in (*choices, None), f"{answer} isn't offered: {choices}"
        return answer


@pytest.mark.parametrize(
    ("fields", "required", "answers", "content"),
    [
        (ONE, ["tea"], ("Black",), {"tea": "b"}),
        (ONE, [], ("skip",), {}),
        (ONE, [], ("something else", "Mint"), {"tea_custom": "Mint"}),
        (ONE, [], (), None),
        (SEVERAL, ["teas"], ("green, Black",), {"teas": ["g", "b"]}),
        (SEVERAL, ["teas"], ("red", "Green"), {"teas": ["g"]}),
        (SEVERAL, [], ("skip",), {}),
        (MANY, ["day"], ("17",), {"day": "17"}),
        (MANY, ["day"], ("32", "33", "34"), None),
        (SURE, ["sure"], ("no",), {"sure": False}),
        (HOW, ["litres"], ("some", "1.5"), {"litres": 1.5}),
        ({}, [], ("yes",), {}),
        ({}, [], ("no",), None),
    ],
)
async def test_a_form_is_asked_a_field_after_the_other(
    fields: dict[str, Any], required: list[str], answers: tuple[str, ...], content: dict[str, Any] | None
) -> None:
    person = Person(*answers)
    schema = ElicitationSchema.model_validate({"type": "object", "properties": fields, "required": required})
    assert await fill("About the tea", schema, person) == content
    assert person.asked[0][0].startswith("About the tea")


async def test_what_an_option_means_is_told() -> None:
    person = Person("Green")
    await fill("About the tea", ElicitationSchema.model_validate({"properties": ONE}), person)
    [(words, choices)] = person.asked
    assert words == "About the tea\nTea\n- Black: with milk"
    assert choices == ("Green", "Black", "something else", "skip")
