"""Search: every word in any script, one's own sessions only, and no query that can break it."""

import asyncio

import pytest

from segue.core.lanes import Person
from segue.core.messages import Text, ToolCall
from segue.core.transcripts import AGENT
from segue.core.values import PersonId, SessionId
from tests.changes.world import World, words


async def say(world: World, person: Person, *texts: str) -> SessionId:
    """Somebody says these things in a session of their own, and they are indexed."""
    session = await world.renew(await world.dm(person), person, *texts)
    assert await world.store.index() == len(texts)
    return session


async def found(world: World, person: Person, query: str, count: int = 20) -> list[str]:
    return words(await world.store.search(query, person, count))


async def test_the_newest_entries_with_all_words_come_first(world: World) -> None:
    ann = await world.person("ann")
    await say(world, ann, "the red fox", "a red car", "fox and hound, both RED")
    assert await found(world, ann, "red fox") == ["fox and hound, both RED", "the red fox"]
    assert await found(world, ann, "red", 2) == ["fox and hound, both RED", "a red car"]
    assert await found(world, ann, "blue") == []


async def test_only_the_last_word_is_a_beginning(world: World) -> None:
    ann = await world.person("ann")
    await say(world, ann, "conversation history")
    assert await found(world, ann, "conversation hist") == ["conversation history"]
    assert await found(world, ann, "conv history") == []
    assert await found(world, ann, "c") == ["conversation history"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("\uff26\uff35\uff2c\uff2c width", "full"),
        ("ﬁne ligature", "fine"),
        ("Straße", "STRASSE"),
        ("cafe\u0301 au lait", "café"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
        ("ｶﾀｶﾅ", "カタカナ"),
        ("私は東京都に住んでいます", "東京都"),
        ("私は東京都に住んでいます", "住んで"),
        ("関東", "東"),
        ("ab東京cd", "cd"),
        ("안녕하세요 세계", "안녕"),
        ("สวัสดีชาวโลก", "สวัส"),
        ("user_name-42", "name 42"),
        ("v2.0.1", "0"),
        ("naïve", "naïve"),
    ],
)
async def test_words_are_found_in_any_script_and_form(world: World, text: str, query: str) -> None:
    ann = await world.person("ann")
    await say(world, ann, text, "something else")
    assert await found(world, ann, query) == [text]


@pytest.mark.parametrize("query", ["東都", "京東", "都東京"])
async def test_characters_that_are_not_side_by_side_are_not_found(world: World, query: str) -> None:
    ann = await world.person("ann")
    await say(world, ann, "東京都")
    assert await found(world, ann, query) == []


@pytest.mark.parametrize(
    "query",
    [
        *(
            '"',
            "'",
            '""',
            "' or '1'='1",
            'tokens : "x"',
            "owner:*",
            "*",
            "a* OR b",
            "NEAR(a b)",
            "a AND",
            "NOT a",
            "(",
            ")",
        ),
        *(
            "a:*",
            "a & b | !c",
            "<->",
            "'a':*",
            "\\",
            "%",
            "_",
            "^a",
            "-a",
            "+a",
            "a\x00b",
            "\ud800",
            "\N{PILE OF POO}",
            "",
        ),
        *("; drop table entries", "{a b}", "@owner", "a" * 100_000, "x " * 50_000, " ".join(map(str, range(5_000)))),
    ],
)
async def test_no_query_breaks_it_or_finds_what_is_not_there(world: World, query: str) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await say(world, bob, "a b c x 1 or owner tokens near not and drop table entries")
    await say(world, ann, "unrelated")
    assert await found(world, ann, query) == []


async def test_operators_are_words_like_others(world: World) -> None:
    ann = await world.person("ann")
    await say(world, ann, "to be OR not to be", "neither")
    assert await found(world, ann, '"not" OR "be"') == ["to be OR not to be"]


async def test_nobody_finds_what_others_said(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await say(world, ann, "my secret")
    assert await found(world, bob, "secret") == []
    assert await found(world, Person(PersonId("ghost"), "", 0.0), "secret") == []
    assert await found(world, ann, f"secret {bob.id}") == []


async def test_what_both_said_is_found_after_a_merge_and_apart_again_after_its_undo(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await say(world, ann, "apples by ann")
    await say(world, bob, "apples by bob")
    merge = await world.store.link(ann, bob)
    for person in (ann, bob):
        assert await found(world, person, "apples") == ["apples by bob", "apples by ann"]
    await say(world, ann, "apples by both")
    assert await found(world, bob, "apples both") == ["apples by both"]
    await world.store.unlink(merge)
    assert await found(world, ann, "apples") == ["apples by both", "apples by ann"]
    assert await found(world, bob, "apples") == ["apples by bob"]


async def test_a_shared_sessions_words_belong_to_its_owner(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    session = await world.renew(await world.thread(ann), ann, "ours")
    await world.store.say(session, bob, "said by bob")
    await world.store.say(session, AGENT, "said by the agent")
    await world.store.index()
    assert await found(world, ann, "said") == ["said by the agent", "said by bob"]
    assert await found(world, bob, "said") == []


async def test_what_was_undone_or_forked_is_found_once(world: World) -> None:
    ann = await world.person("ann")
    session = await say(world, ann, "findable")
    await world.store.undo(session, ann)
    await world.fork(await world.dm(ann), session, ann)
    assert await world.store.index() == 0
    assert await found(world, ann, "findable") == ["findable"]


async def test_tools_and_thoughts_are_not_searched(world: World) -> None:
    ann = await world.person("ann")
    session = await world.renew(await world.dm(ann), ann)
    await world.store.say(session, AGENT, (ToolCall("1", "hidden", {"hidden": 1}), Text("shown")))
    await world.store.index()
    assert await found(world, ann, "hidden") == []
    assert await found(world, ann, "shown") == ["shown"]


async def test_an_entry_has_at_most_64_kb_of_words(world: World) -> None:
    ann = await world.person("ann")
    text = " ".join(f"word{n}" for n in range(20_000))
    await say(world, ann, text)
    assert await found(world, ann, "word0 ") == [text]
    assert await found(world, ann, "word19999") == []
    longest = "y" * 500
    await say(world, ann, longest)
    assert await found(world, ann, "y" * 70) == [longest]


async def test_what_was_just_said_is_found_once_the_index_caught_up(world: World) -> None:
    ann = await world.person("ann")
    session = await world.renew(await world.dm(ann), ann, *(f"said {n}" for n in range(300)))
    assert await found(world, ann, "said") == []
    assert await world.store.index() == 300
    assert await world.store.index() == 0
    assert len(await found(world, ann, "said", 1000)) == 300
    await world.store.say(session, ann, "said last")
    await world.store.index()
    assert await found(world, ann, "last") == ["said last"]


async def test_several_processes_index_everything_once(world: World) -> None:
    ann = await world.person("ann")
    for n in range(10):
        await world.renew(await world.dm(ann), ann, *(f"said {n} {m}" for m in range(30)))
    other = await world.beside()
    await asyncio.gather(world.store.index(), other.store.index(), world.store.index())
    assert len(await found(world, ann, "said", 1000)) == 300
    assert await world.raw("select sum(indexed), sum(length) from sessions") == [(300, 300)]
