"""A number that two people had: the platform takes them and their chats for one, and that is taken back."""

import pytest

from segue.core.messages import plain_text
from segue.core.transcripts import Role
from segue.testing import Signal, WhatsApp
from tests.stories.square import Square

numbered = pytest.mark.parametrize("square", [(Signal, "sqlite"), (WhatsApp, "postgres")], indirect=True)
"""Where a number and another id name one person, on either database."""


def known(square: Square) -> list[str]:
    """What people had said, as the agent was told with the last question."""
    said = (entry for entry in square.works[-1].transcript if entry.author.role is Role.PERSON)
    return [plain_text(entry.parts) for entry in said]


@pytest.mark.parametrize("square", [(Signal, "sqlite")], indirect=True)
async def test_a_chat_that_was_taken_for_another_is_parted_alone(square: Square) -> None:
    bob = square.platform.person("Bob")
    dm = square.platform.dm(bob)
    uuid, number = bob.ids[:2]
    async with square.open():
        for text, ids in (("milk", (number,)), ("bread", (uuid,)), ("eggs", (uuid, number))):
            bob.shows(*ids)
            await square.says(text, who=bob, where=dm)
        assert f"2. The chat {uuid}" in await square.says("/unlink", who=bob, where=dm)
        parted = await square.says("/unlink 2", who=bob, where=dm)
        assert parted == f"The chat {uuid} is one of its own again: each has what was said there before."
        left = await square.says("/unlink", who=bob, where=dm)
        assert "The chat" not in left
        assert left.startswith("1. ")
        bob.shows(number)
        await square.says("butter", who=bob, where=dm)
        assert known(square) == ["milk"]


@numbered
async def test_who_was_taken_for_somebody_else_has_what_was_theirs(square: Square) -> None:
    bob = square.platform.person("Bob")
    dm = square.platform.dm(bob)
    uuid, number = bob.ids[:2]

    async def says(text: str, *ids: str) -> str:
        bob.shows(*ids)
        return await square.says(text, who=bob, where=dm)

    async with square.open():
        await says("milk", number)
        await says("bread", uuid)
        await says("eggs", uuid, number)
        assert known(square) == ["bread"]
        listed = await says("/unlink", uuid, number)
        assert "because the platform says so, since " in listed
        assert f"The chat {uuid}, because" in listed
        parted = await says("/unlink 1", uuid, number)
        assert "are two again" in parted
        await says("butter", number)
        assert known(square) == ["milk"]
        # The same ids, told again, join nobody.
        await says("cheese", uuid, number)
        assert known(square) == ["bread", "eggs"]
        assert await says("/unlink", uuid, number) == "You are linked with nobody."
        await says("salt", number)
        assert known(square) == ["milk", "butter"]
