"""Contracts: what only some adapters can do is told by what they have, without a flag."""

import pytest

from segue.core.contracts.adapters import Closes, EditsMessages, MentionsById, OpensThreads, ReadsBack, ShowsTyping
from segue.core.contracts.probes import Point
from segue.core.lanes import Address
from segue.core.messages import Delivery


class Plain:
    """An adapter that can only take in and send."""

    async def send(self, delivery: Delivery) -> str:
        return delivery.key


class Able(Plain):
    """An adapter that can do all there is."""

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        return Address(parent.platform, parent.account, parent.space, parent.chat, title + key)

    async def edit(self, delivery: Delivery) -> None:
        pass

    async def typing(self, address: Address) -> None:
        pass

    def mention(self, user: str) -> str:
        return f"@{user}"

    async def find(self, delivery: Delivery) -> str | None:
        return delivery.message or None

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("ability", [OpensThreads, EditsMessages, ShowsTyping, MentionsById, ReadsBack, Closes])
def test_an_ability_is_told_by_its_verb(ability: type) -> None:
    assert isinstance(Able(), ability)
    assert not isinstance(Plain(), ability)


def test_every_point_says_where_it_is_and_what_has_happened() -> None:
    assert all(point.value == point.name.lower().replace("_", ".", 1) for point in Point)
