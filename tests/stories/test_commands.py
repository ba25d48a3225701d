"""What people type: sessions are named, left, found again, branched and taken back, from any chat."""

from tests.stories.conftest import Stage


class Person:
    """Somebody in a private chat, who says one thing after the other and reads the answers."""

    def __init__(self, stage: Stage, chat: str, name: str = "") -> None:
        self._town = stage.town
        self._chat = chat
        self._who = name or chat
        self._said = 0

    async def says(self, text: str) -> str:
        """Say something and return the answer to it."""
        message = f"{self._chat}-message-{self._said}"
        self._said += 1
        await self._town.say(self._chat, message, text=text, person={"id": self._who, "name": self._who})
        return await self._town.answer(message)


async def test_a_session_is_named_left_found_again_and_branched(stage: Stage) -> None:
    async with stage.gateway():
        ann = Person(stage, "ann")
        assert await ann.says("about cats") == "You said: about cats"
        assert await ann.says("/title Cats") == "This session is called Cats."
        assert "new session" in await ann.says("/new")
        assert await ann.says("about dogs") == "You said: about dogs"
        listed = await ann.says("/resume")
        assert "1. about dogs (here)" in listed
        assert "2. “Cats”: about cats" in listed
        assert await ann.says("/resume 2") == "Back in “Cats”."
        assert await ann.says("/resume Cats") == "You are already in that session."
        assert "Did you mean “Cats”?" in await ann.says("/resume Cast")
        assert "“Cats #2”" in await ann.says("/branch")
        assert await ann.says("/resume Cats #1") == "Back in “Cats #1”."
        assert await ann.says("/undo") == "Took back the last move: resume. You are in “Cats #2”."
        assert await ann.says("/title") == "Cats #2"


async def test_line_three_of_the_list_stays_line_three(stage: Stage) -> None:
    async with stage.gateway():
        ann, phone = Person(stage, "laptop", "ann"), Person(stage, "phone", "ann")
        for animal in ("ants", "bees", "cats"):
            await ann.says("/new")
            await ann.says(f"about {animal}")
            await ann.says(f"/title {animal}")
        assert "3. “ants”" in await ann.says("/resume")
        await phone.says("something new")
        await phone.says("/new")
        await phone.says("something newer")
        assert await ann.says("/resume 3") == "Back in “ants”."


async def test_nobody_finds_anothers_session(stage: Stage) -> None:
    async with stage.gateway():
        ann, eve = Person(stage, "ann"), Person(stage, "eve")
        await ann.says("a secret")
        await ann.says("/title Diary")
        await eve.says("hello")
        unknown = await eve.says("/resume Nothing")
        assert await eve.says("/resume Diary") == unknown.replace("Nothing", "Diary")
        assert "Diary" not in await eve.says("/resume")
        assert "Diary" not in await eve.says("/sessions")
        assert await eve.says("/title Diary") == "This session is called Diary."
        assert "secret" not in await eve.says("/search secret")


async def test_several_conversations_in_one_flat_chat(stage: Stage) -> None:
    async with stage.gateway():
        ann = Person(stage, "ann")
        await ann.says("about cats")
        assert await ann.says("/sessions new about dogs") == "You said: about dogs"
        listed = await ann.says("/sessions")
        assert "2. about dogs (here)" in listed
        assert await ann.says("/sessions 1") == "Back in the session that began with “about cats”."
        assert (
            await ann.says("/sessions close 2")
            == "Closed the session that began with “about dogs”. /undo opens it again."
        )
        assert "dogs" not in await ann.says("/sessions")
        assert await ann.says("/title Cats") == "This session is called Cats."
        assert await ann.says("/sessions close Cows") == "No session of yours is called “Cows”. Did you mean “Cats”?"
        assert await Person(stage, "eve").says("/sessions close Cats") == "No session of yours is called “Cats”."
        assert await ann.says("/sessions close Cats") == "Closed “Cats”. /undo opens it again."


async def test_the_last_exchange_is_taken_back_and_asked_again(stage: Stage) -> None:
    async with stage.gateway():
        ann = Person(stage, "ann")
        await ann.says("one")
        await ann.says("two")
        assert await ann.says("/retry") == "You said: two"
        assert await ann.says("/undo") == "Took back the last exchange."
        assert await ann.says("/undo 1") == "Took back the last exchange."
        assert await ann.says("/undo 5") == "There is nothing to take back."
        assert "waiting" in await ann.says("/status")


async def test_a_command_that_nobody_knows_is_answered_and_never_reaches_the_agent(stage: Stage) -> None:
    async with stage.gateway():
        ann = Person(stage, "ann")
        assert await ann.says("/resme 2") == (
            "There is no command /resme. Did you mean /resume? Two slashes at the start send it as text."
        )
        assert "/help lists what there is." in await ann.says("/etcetera is full")
        assert await ann.says("//etc is full") == "You said: //etc is full"
        assert await ann.says("/etc/hosts is full") == "You said: /etc/hosts is full"
