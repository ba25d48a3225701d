"""Things in a locker as values: what one drawer keeps another reads, and neither undoes the other's work."""

import pytest

from segue.adapters.shared.drawers import Drawer, Kept
from segue.core.values import Value
from segue.errors import Outdated
from segue.testing import Chest


class Plan(Value, frozen=True):
    what: str


async def test_what_is_kept_is_read_by_whoever_comes_next() -> None:
    chest = Chest()
    drawer = Drawer(chest, "plans/")
    await drawer.keep({"a": Plan("cake"), "b": ["tea"]})
    await drawer.keep({"a": Plan("pie"), "b": None})
    await drawer.keep({})
    assert await Drawer(chest, "plans/").read() == {"a": {"what": "pie"}}
    assert list(chest.things) == ["plans/a"]


async def test_a_change_that_rests_on_an_old_reading_is_refused_whole() -> None:
    chest = Chest()
    one, other = Drawer(chest, "plans/"), Drawer(chest, "plans/")
    await one.keep({"a": 1})
    await other.read()
    await one.keep({"a": 2})
    with pytest.raises(Outdated):
        await other.keep({"a": 3, "b": 4})
    assert await other.read() == {"a": 2}
    await other.keep({"a": 3})
    assert await one.read("a") == {"a": 3}


async def test_values_are_known_after_they_were_recalled() -> None:
    chest, kept, again = Chest(), Kept("plans/", Plan), Kept("plans/", Plan)
    for one in (kept, again):
        one.remember(chest)
    await kept.put("a", Plan("cake"))
    await kept.put("b", Plan("tea"))
    await again.recall()
    assert again.values == kept.values == {"a": Plan("cake"), "b": Plan("tea")}
    await again.drop("b", "c")
    assert again.values == {"a": Plan("cake")}
    assert list(chest.things) == ["plans/a"]
    await kept.recall()
    await kept.put("b", Plan("tea again"))
    assert kept.values == {"a": Plan("cake"), "b": Plan("tea again")}
