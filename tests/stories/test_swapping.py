"""Another agent takes a conversation over, and knows all of it."""

from collections.abc import Awaitable, Callable

from segue.agents.given import as_agent
from segue.core.contracts.agents import Work
from segue.core.messages import plain_text
from segue.core.settings import GatewaySettings
from segue.core.transcripts import Role
from segue.errors import Refusal
from tests.stories.square import Square, both


def agent(name: str) -> Callable[[Work], Awaitable[str]]:
    """An agent that says its name, and what people have told so far."""

    async def answers(work: Work) -> str:
        told = [plain_text(entry.parts) for entry in work.transcript if entry.author.person]
        return f"{name} knows: {', '.join(told)}"

    return answers


@both
async def test_a_swap_keeps_the_conversation_and_undo_takes_it_back(square: Square) -> None:
    square.agents = {"": as_agent(agent("one")), "poet": as_agent(agent("two"))}
    async with square.open():
        await square.says("my cat is Tom")
        assert await square.says("/agent") == (
            "default, which answers here\npoet\n/agent NAME lets another one answer; the conversation stays."
        )
        assert await square.says("/agent Poet") == "poet answers from here on."
        assert await square.says("hello") == "two knows: my cat is Tom"
        assert await square.says("/agent poet") == "poet answers here already."
        assert await square.says("/agent default") == "default answers from here on."
        assert await square.says("hello again") == "one knows: my cat is Tom, hello"
        assert await square.says("/undo 2") == "Took back the last 2 exchanges."
        assert await square.says("once more") == "two knows: my cat is Tom, hello"
        assert await square.says("/agent nobody") == Refusal.NO_AGENT.value


@both
async def test_the_new_agent_answers_a_message_again_and_branches_know_the_swap(square: Square) -> None:
    square.agents = {"": as_agent(agent("one")), "poet": as_agent(agent("two"))}
    async with square.open():
        await square.says("my cat is Tom")
        assert await square.says("who is my cat?") == "one knows: my cat is Tom"
        await square.says("/agent poet")
        assert await square.says("/retry") == "two knows: my cat is Tom"
        await square.says("/branch")
        assert (await square.says("and now?")).startswith("two knows: my cat is Tom, who is my cat?")
        assert (await square.says("/compress")).startswith("A summary stands for")
        assert (await square.says("still there?")).startswith("two knows:")
        assert "poet, which answers here" in await square.says("/agent")


@both
async def test_others_choose_among_what_the_account_lists(square: Square) -> None:
    square.agents = {"": as_agent(agent("one")), "poet": as_agent(agent("two"))}
    bob = square.platform.person("Bob")
    his = square.platform.dm(bob)
    async with square.open():
        await square.says("hello", who=bob, where=his)
        assert "poet" not in await square.says("/agent", who=bob, where=his)
        assert await square.says("/agent poet", who=bob, where=his) == Refusal.NO_AGENT.value


@both
async def test_a_place_and_a_person_have_agents_of_their_own_which_are_shown_by_name(square: Square) -> None:
    square.agents = {name: as_agent(agent(name or "default")) for name in ("", "poet", "coder")}
    bob, lobby = square.platform.person("Bob"), square.platform.group("lobby")
    his = square.platform.dm(bob)
    place = f"{square.platform.name}.{square.platform.account}:{lobby.id}"
    chosen = GatewaySettings(agents_of_lanes={place: "poet"}, agents_of_people={bob.identity.key: "coder"})
    async with square.open(chosen):
        assert (await square.says("hello")).startswith("default knows")
        assert (await square.says("hello", where=lobby)).startswith("poet knows")
        assert "poet, which answers here" in await square.says("/agent", where=lobby)
        assert (await square.says("hello", who=bob, where=lobby)).startswith("coder knows")
        assert (await square.says("hello", who=bob, where=his)).startswith("coder knows")
        last = (await square.store.path((await square.session(his)).id))[-1]
        assert (last.author.role, last.author.name) == (Role.AGENT, "coder")
