"""What an ACP agent may do without being asked again, and what comes of a question that nobody answers."""

from pathlib import Path

from segue.core.settings import GatewaySettings, QuestionSettings
from tests.stories.square import Square, both
from tests.stories.test_acp import Told, made, talking, until
from tests.stories.test_questions import heard


@both
async def test_always_holds_for_one_thing_in_every_session_until_it_is_taken_back(
    square: Square, tmp_path: Path
) -> None:
    told = Told(tmp_path)
    async with talking(square, made(tmp_path)):
        assert "rm old.txt" in await square.says("remove old.txt")
        assert await square.says("always", answers=2) == "old.txt is gone"
        assert await square.says("remove old.txt") == "old.txt is gone"
        await square.says("/new")
        assert await square.says("remove old.txt") == "old.txt is gone"
        assert "rm new.txt" in await square.says("remove new.txt"), "what was allowed is that one thing"
        assert await square.says("no", answers=2) == "new.txt stays (n)"
    async with talking(square, made(tmp_path)):
        assert await square.says("remove old.txt") == "old.txt is gone", "it is kept"
        assert "1. Remove a file: rm old.txt [" in await square.says("/questions")
        await square.says("/questions revoke 1")
        assert "rm old.txt" in await square.says("remove old.txt")
        assert await square.says("no", answers=2) == "old.txt stays (n)"
    assert told.lines.count("permission old.txt y") == 4


@both
async def test_a_permission_that_nobody_gives_in_time_is_a_no_and_the_turn_goes_on(
    square: Square, tmp_path: Path
) -> None:
    told = Told(tmp_path)
    async with talking(square, made(tmp_path), GatewaySettings(questions=QuestionSettings(60.0))):
        assert "rm old.txt" in await square.says("remove old.txt")
        square.passes(61.0)
        await heard(square, "old.txt stays (n)")
        await heard(square, "Nobody answered in time.")
        assert await square.says("/yes") == "That came too late: nobody had answered in time."
        assert await square.says("hello") == "You said: hello"
        assert "Colour" in await square.says("form")
        square.passes(61.0)
        await heard(square, "decline null")
    await until(lambda: told.lines.count("permission old.txt n") == 1)
    assert "permission old.txt y" not in told.lines
