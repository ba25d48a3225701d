"""Bad input at the store's door: a typed error that names the thing, and nothing changes."""

from collections.abc import Awaitable, Callable

import pytest

from segue.changes.accept import Queued
from segue.changes.people import persons
from segue.core.lanes import Address, Identity, Kind, Lane, Person, Place
from segue.core.messages import LONGEST_TEXT, Notice, Reasoning, Text, ToolCall, ToolResult
from segue.core.moves import Fork, Release, Renew, Resume, Spawn
from segue.core.transcripts import Author, Role, Tip
from segue.core.values import PersonId, SessionId
from segue.errors import Invalid, Refusal, Refused, SegueError
from tests.changes.sessions.test_moves import everything
from tests.changes.world import World, public, words

UNSOUND = ["\0", "a\0b", "\ud800", "a\udfffb", "\ud83d"]
GHOST = Person(PersonId("ghost"), "", 0.0)
NONE = SessionId("none")
NOWHERE = Lane(Address("telegram", "bot", chat="nowhere"))


class Branded(str):
    """A text of a library's own kind."""

    __slots__ = ()


async def at_home(world: World) -> tuple[Person, Lane, SessionId]:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    return ann, lane, await world.renew(lane, ann, "hello")


async def refused(world: World, attempt: Callable[[], Awaitable[object]]) -> SegueError:
    """It raises one of our errors, and changes nothing."""
    before = await everything(world)
    with pytest.raises(SegueError) as error:
        await attempt()
    assert await everything(world) == before
    return error.value


@pytest.mark.parametrize("text", UNSOUND)
async def test_text_that_cannot_be_kept_is_refused_wherever_it_hides(world: World, text: str) -> None:
    ann, _, session = await at_home(world)
    for parts in (
        (Text(text),),
        (Text("fine"), Notice(text)),
        (ToolCall("c", "f", {"deep": [{"in": text}]}),),
        (ToolCall("c", "f", {text: 1}),),
        (ToolResult("c", text),),
        (Reasoning("p", [text]),),
    ):
        error = await refused(world, lambda parts=parts: world.store.say(session, ann, "before", parts))  # type: ignore[misc]
        assert isinstance(error, Invalid)
        assert error.field == "text"
    error = await refused(world, lambda: world.store.compress(session, text, Tip(session, 1), ann))
    assert isinstance(error, Invalid)
    for name in (text, Branded(text)):
        author = Author(Role.PERSON, ann.id, name)
        error = await refused(world, lambda author=author: world.store.say(session, author, "hello"))  # type: ignore[misc]
        assert isinstance(error, Invalid)
        assert error.field == "name"


@pytest.mark.parametrize("text", UNSOUND)
async def test_what_names_something_is_cleaned_or_refused(world: World, text: str) -> None:
    ann, lane, session = await at_home(world)
    # Names and titles are shown, so they are cleaned.
    assert (await world.person("bob", name=f"Bob{text}")).name in {"Bob", "Bobab"}
    assert str(await world.store.set_title(session, f"plan {text}", ann)) in {"plan", "plan ab"}
    with pytest.raises(Refused):
        await world.store.find(f"{text} other", ann)
    assert await world.store.nearest_title(text, ann) is None
    assert await world.store.search(text, ann) == []
    # Ids are kept exactly, whatever is in them.
    strange = await world.store.person(Identity("telegram", "bot", f"id{text}"))
    assert await world.store.identities(strange) == [Identity("telegram", "bot", f"id{text}")]
    there = await world.store.lane(Place(Address("telegram", "bot", chat=f"chat{text}"), Kind.DM), strange)
    await world.renew(there, strange, "hello")
    assert there in [standing.lane for standing in await world.store.lanes()]
    # The rest is refused.
    fresh = world.store.new_session_id()
    child = Spawn(session, fresh, label=f"label{text}")
    for attempt, field in (
        (lambda: world.store.move(child, ann), "label"),
        (lambda: world.store.move(Renew(lane, SessionId(text)), ann), "session"),
        (lambda: world.store.show_list(lane, ann, [], f"kind{text}"), "kind"),
        (lambda: world.store.session(SessionId(text), ann), "session"),
    ):
        error = await refused(world, attempt)
        assert isinstance(error, Invalid)
        assert error.field == field


@pytest.mark.parametrize("text", UNSOUND)
async def test_a_chat_with_a_broken_name_is_heard(world: World, text: str) -> None:
    place = public("g", name=f"Team{text}", topic=f"all{text}\nof it")
    for n in range(2):
        assert isinstance(await world.accept(world.arrival("ann", str(n), place)), Queued)
    person = await world.person("ann")
    await world.store.lane(public("h", name=f"Team{text}", topic=f"all{text}\nof it"), person)
    for name, topic in await world.raw("select name, topic from addresses"):
        assert name in {"Team", "Teamab"}
        assert topic in {"all of it", "allab of it"}


async def test_ten_megabytes_are_kept_and_too_much_is_refused(world: World) -> None:
    ann, _, session = await at_home(world)
    large = "ab c" * (10 * 1024 * 1024 // 4)
    await world.store.say(session, ann, large)
    assert words(await world.store.path(session)) == ["hello", large]
    assert await world.store.index() == 2
    assert len(await world.store.search("ab cab", ann)) == 1
    error = await refused(world, lambda: world.store.say(session, ann, "x" * (LONGEST_TEXT + 1)))
    assert isinstance(error, Invalid)
    assert error.field == "text"
    assert "16 MB" in error.fix


async def test_a_session_that_is_not_there_is_not_found(world: World) -> None:
    ann, lane, _ = await at_home(world)
    fresh = world.store.new_session_id()
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: world.store.move(Resume(lane, NONE), ann),
        lambda: world.store.move(Fork(lane, NONE, fresh), ann),
        lambda: world.store.move(Spawn(NONE, fresh), ann),
        lambda: world.store.session(NONE, ann),
        lambda: world.store.close_session(NONE, ann),
        lambda: world.store.reopen_session(NONE, ann),
        lambda: world.store.set_title(NONE, "plan", ann),
        lambda: world.store.child(NONE, "label"),
        lambda: world.store.say(NONE, ann, "hello"),
        lambda: world.store.path(NONE),
        lambda: world.store.undo(NONE, ann),
    ]
    for attempt in attempts:
        error = await refused(world, attempt)
        assert isinstance(error, Refused)
        assert error.why is Refusal.NOT_FOUND
    assert await world.store.lanes_of(NONE) == []
    assert await world.store.history(NONE) == []
    assert await world.store.usage(NONE) == []


async def test_a_lane_where_nobody_was_is_named(world: World) -> None:
    ann, _, session = await at_home(world)
    fresh = world.store.new_session_id()
    for move in (
        *(Renew(NOWHERE, fresh), Resume(NOWHERE, session), Fork(NOWHERE, session, fresh), Release(NOWHERE)),
        Spawn(session, fresh, lane=NOWHERE),
    ):
        error = await refused(world, lambda move=move: world.store.move(move, ann))  # type: ignore[misc]
        assert isinstance(error, Invalid)
        assert error.field == "lane"
        assert NOWHERE.key in error.problem
    assert await world.store.bound(NOWHERE) is None
    assert await world.store.history(NOWHERE) == []
    assert await world.store.last_move(NOWHERE) is None


async def test_a_person_whom_nobody_knows_is_named(world: World) -> None:
    ann, lane, session = await at_home(world)
    merge = persons.Merge("none", ann.id, ann.id, 0.0)
    attempts: dict[str, Callable[[], Awaitable[object]]] = {
        "move": lambda: world.store.move(Renew(lane, world.store.new_session_id()), GHOST),
        "undo": lambda: world.store.undo_move("none", GHOST),
        "close": lambda: world.store.close_session(session, GHOST),
        "title": lambda: world.store.set_title(session, "plan", GHOST),
        "lane": lambda: world.store.lane(public(), GHOST),
        "home": lambda: world.store.set_home(public(), GHOST),
        "list": lambda: world.store.show_list(lane, GHOST, []),
        "link": lambda: world.store.link(ann, GHOST),
    }
    for attempt in attempts.values():
        error = await refused(world, attempt)
        assert isinstance(error, Invalid)
        assert (error.field, "'ghost'" in error.problem) == ("person", True)
    error = await refused(world, lambda: world.store.unlink(merge))
    assert isinstance(error, Invalid)
    assert (error.field, "'none'" in error.problem) == ("merge", True)
    assert await world.store.sessions(GHOST) == []


@pytest.mark.parametrize("count", [0, -1, -(10**30), 10**30])
async def test_a_count_that_is_none_is_named(world: World, count: int) -> None:
    ann, lane, session = await at_home(world)
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: world.store.sessions(ann, count),
        lambda: world.store.sessions_here(lane, count),
        lambda: world.store.history(lane, count),
        lambda: world.store.lanes(count=count),
        lambda: world.store.tip_changes(session, count),
        lambda: world.store.search("hello", ann, count),
    ]
    for attempt in attempts:
        error = await refused(world, attempt)
        assert isinstance(error, Invalid)
        assert error.field == "count"


@pytest.mark.parametrize("n", [10**30, -(10**30)])
async def test_a_number_that_no_entry_can_have_is_named(world: World, n: int) -> None:
    _, _, session = await at_home(world)
    error = await refused(world, lambda: world.store.path(Tip(session, n)))
    assert isinstance(error, Invalid)
    assert error.field == "n"
