"""Asking: a model wants to know something of its person, and waits for the answer."""

from typing import Annotated, Any

from msgspec import Meta

from segue.core.questions import LONGEST, LONGEST_CHOICE, MOST_CHOICES
from segue.core.values import Value
from segue.errors import Unanswered
from segue.runtime.tools.table import Calling, Offer

_Choice = Annotated[str, Meta(min_length=1, max_length=LONGEST_CHOICE)]


class AskArguments(Value, frozen=True):
    """The arguments of `ask`."""

    question: Annotated[
        str, Meta(min_length=1, max_length=LONGEST, description="what to ask, in one or two sentences.")
    ]
    choices: Annotated[
        tuple[_Choice, ...],
        Meta(
            max_length=MOST_CHOICES, description="the answers to choose from, two or more; none if any words will do."
        ),
    ] = ()


async def ask(calling: Calling, arguments: AskArguments) -> dict[str, Any]:
    """The person's answer, or that there is none."""
    try:
        return {"answer": await calling.ask(arguments.question, arguments.choices, calling.key)}
    except Unanswered as error:
        return {"answer": None, "note": str(error)}


ASK = Offer(
    "ask",
    "Ask the person you talk with something that you need to know before you go on, and wait for the answer.",
    AskArguments,
    ask,
)
