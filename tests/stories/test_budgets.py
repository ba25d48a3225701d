"""A budget pauses a turn at its edge and asks the host, wherever the turn is and however often it is tried."""

from collections.abc import Iterable

import pytest

from segue.core.contracts.agents import Usage, Work
from segue.core.limits.budgets import Amount, Budgets
from segue.core.settings import GatewaySettings
from segue.testing import PERSONAS, ScriptedAgent
from segue.testing.agents import Step
from segue.testing.chats import Chat
from tests.stories.square import DATABASES, BehindHttp, Square, recalls

over_http = pytest.mark.parametrize(
    "square", [pytest.param((BehindHttp, name), id=f"http-{name}") for name in DATABASES], indirect=True
)
in_a_chat = pytest.mark.parametrize("square", [pytest.param((PERSONAS[0], "sqlite"), id="chat")], indirect=True)
TWO_TURNS = GatewaySettings(budget=Budgets(session=Amount(turns=2)))


async def heard(square: Square, chat: Chat, words: str) -> str:
    """Wait until a reply with some words stands in a chat."""
    return await square.platform.changes.until(
        lambda: next((reply for reply in reversed(chat.replies) if words in reply), None),
        lambda: f"never heard {words!r}: {chat.replies!r}",
    )


def spends(work: Work) -> Iterable[Step]:
    """Take ten tokens and a cent."""
    return [Usage("toy", 6, 4, cost=0.01), *recalls(work)]


@over_http
async def test_a_turn_waits_at_the_edge_for_the_hosts_yes_over_a_restart(square: Square) -> None:
    square.agent = ScriptedAgent(otherwise=spends)
    async with square.open(TWO_TURNS):
        await square.says("one")
        await square.says("two")
        asked = await square.says("three")
        assert asked.startswith("The budget of this session is used up: 2 of 2 turns. Allow 2 turns more?")
        assert len(square.works) == 2, "nothing is asked of the agent before there is room"
        assert (await square.says("/usage")).endswith("Budget of this session: 2 of 2 turns.")
    async with square.open(TWO_TURNS):
        assert await square.says("/yes", answers=2) == "You said: three"
        assert "Budget of this session: 3 of 4 turns." in await square.says("/usage")
        await square.says("four")
        assert "4 of 4 turns" in await square.says("five")
        await square.says("/no")
        refused = await heard(square, square.dm, "Nobody allowed more")
        assert refused.startswith("The budget of this session is used up: 4 of 4 turns. Nobody allowed more.")
        assert [text for text in await square.texts() if text == "five"] == ["five"], "it is kept"


@over_http
async def test_it_is_the_host_who_allows_and_one_yes_is_for_all_who_wait(square: Square) -> None:
    bob, cem = square.platform.person("Bob"), square.platform.person("Cem")
    his, cems = square.platform.dm(bob), square.platform.dm(cem)
    async with square.open(GatewaySettings(budget=Budgets(person_day=Amount(turns=9), day=Amount(turns=3)))):
        await square.says("hello")
        await square.says("hello", who=bob, where=his)
        await square.says("hello", who=cem, where=cems)
        words = "The budget for today is used up: 3 of 3 turns. Allow 3 turns more?"
        assert (await square.says("more", who=bob, where=his)).startswith(words)
        assert (await square.says("more", who=cem, where=cems)).startswith(words)
        await heard(square, square.dm, words)
        # Whoever isn't the host can't allow it.
        assert "You said" not in await square.says("/yes", who=bob, where=his)
        await square.says("/questions")
        await square.says("/answer 1 yes", answers=0)
        await heard(square, his, "You said: more")
        await heard(square, cems, "You said: more")
        assert "day" not in (await square.says("/usage", who=bob, where=his)).replace("today", "")
        assert "Budget for today: 5 of 6 turns." in await square.says("/usage")


@in_a_chat
async def test_a_no_holds_for_the_day_and_tokens_and_cost_have_edges_too(square: Square) -> None:
    square.agent = ScriptedAgent(otherwise=spends)
    bob = square.platform.person("Bob")
    his = square.platform.dm(bob)
    settings = GatewaySettings(budget=Budgets(session=Amount(cost=0.02), person_day=Amount(tokens=25)))
    async with square.open(settings):
        await square.says("hello")
        await square.says("one", who=bob, where=his)
        await square.says("two", who=bob, where=his)
        asked = await square.says("three", who=bob, where=his)
        assert asked.startswith("The budget of this session is used up: $0.02 of $0.02. Allow $0.02 more?")
        await heard(square, square.dm, "Allow $0.02")
        await square.says("/questions")
        await square.says("/answer 1 no", answers=0)
        await heard(square, his, "Nobody allowed more")
        again = await square.says("four", who=bob, where=his)
        assert again.startswith("The budget of this session is used up"), "he isn't asked about again today"
        assert again.endswith("Your message is kept; /retry asks again.")
        await square.says("/new", who=bob, where=his)
        assert await square.says("five", who=bob, where=his) == "You said: five"
        assert "30 of 25 tokens" in await square.says("six", who=bob, where=his), "by one call, without a bound"
