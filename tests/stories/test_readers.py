"""What an agent's tools find is bounded by who reads the answer, and a terminal opens on nothing that others read."""

from collections.abc import Iterable

from segue.core.contracts.agents import Work
from segue.core.lanes import Rules, Sharing
from segue.core.messages import ToolResult
from segue.core.settings import GatewaySettings, Settings
from segue.testing import ScriptedAgent
from segue.testing.agents import Step, Uses
from tests.stories.square import Square, both, recalls

TOGETHER = GatewaySettings(routing=Settings(rules=Rules(groups=Sharing.TOGETHER)))


@both
async def test_in_a_shared_place_tools_reach_nothing_that_was_said_in_private(square: Square) -> None:
    lobby = square.platform.group("lobby")
    heard: list[str] = []

    def asks(work: Work) -> Iterable[Step]:
        if "tell" not in work.asked[0].text:
            return recalls(work)
        private = secret[0]
        return [
            Uses("a", "sessions_list"),
            Uses("b", "sessions_history", arguments={"session": private}),
            Uses("c", "sessions_send", arguments={"session": private, "message": "hello there"}),
            Uses("d", "schedules_list"),
            "that is all",
        ]

    secret: list[str] = []
    square.agent = ScriptedAgent(otherwise=asks)
    async with square.open(TOGETHER):
        await square.says("a secret")
        secret.append((await square.session()).id)
        await square.says("/title Diary")
        await square.says("/schedule in 2h look after the secret")
        await square.says("tell me", where=lobby)
        for entry in await square.store.path((await square.session(lobby)).id):
            heard += [str(part.content) for part in entry.parts if isinstance(part, ToolResult)]
        assert len(heard) == 4
        assert not any("secret" in told or "Diary" in told for told in heard)
        assert heard[1] == heard[2] == "No session of yours goes by that. sessions_list shows them."
        # In private the same tools reach all of it.
        await square.says("/sessions new")
        await square.says("tell me", answers=2)
        heard.clear()
        for entry in await square.store.path((await square.session()).id):
            heard += [str(part.content) for part in entry.parts if isinstance(part, ToolResult)]
        assert "Diary" in heard[0]
        assert "a secret" in heard[1]
        assert "look after the secret" in heard[3]


@both
async def test_a_name_that_nobody_has_offers_no_title_that_was_given_elsewhere(square: Square) -> None:
    lobby = square.platform.group("lobby")
    async with square.open(TOGETHER):
        await square.says("hello", where=lobby)
        await square.says("/title Club", where=lobby)
        near = await square.says("/resume Clubb", where=lobby)
        assert "Did you mean “Club”?" in near
        await square.says("/resume Club")
        await square.says("/new", where=lobby)
        await square.says("/title Diary night")
        told = await square.says("/resume Diary nigh", where=lobby)
        assert "Diary night" not in told
        alone = await square.says("/resume Diary nigh")
        assert "Did you mean “Diary night”?" in alone
