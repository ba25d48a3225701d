"""What was said is taken back, asked again, gone back to, summed up and branched, and nothing is ever deleted."""

import pytest

from segue.changes.rows import each
from segue.changes.sessions import transcripts
from segue.core.contracts.agents import SummedUp, Usage, Work
from segue.core.contracts.database import Statement, Transaction
from segue.core.messages import Summary, Text, plain_text
from segue.core.prompt.compaction import request_to_sum_up
from segue.core.resets import Policies, Policy, When
from segue.core.settings import GatewaySettings, Settings
from segue.core.transcripts import AGENT, Draft, Entry, Role, visible
from segue.testing import Pause, ScriptedAgent, Telegram
from tests.stories.square import Square, both, everywhere, quoting, recalls


@everywhere
async def test_undo_takes_back_the_newest_of_a_move_and_an_exchange_and_says_which(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        await square.says("and kittens")
        await square.says("/new")
        await square.says("about dogs")
        assert await square.says("/undo") == "Took back the last exchange."
        assert await square.says("/undo") == "Took back the last move: renew. You are in “Cats”."
        assert await square.says("/undo") == "Took back the last exchange."
        assert await square.texts() == ["about cats", "You said: about cats"]
        await square.says("and tigers")
        await square.says("and lions")
        assert await square.says("/undo 2") == "Took back the last 2 exchanges."
        assert await square.says("/undo") == "Took back the last exchange."
        assert await square.says("/undo") == "There is nothing to take back."
        assert await square.texts() == []
        for nonsense in ("nonsense", "0", "-1", "1.5"):
            assert await square.says(f"/undo {nonsense}") == "Type /undo, or /undo N to take back the last N exchanges."


@everywhere
async def test_redo_takes_back_the_last_undo_if_nothing_was_said_since(square: Square) -> None:
    nothing = "There is no /undo to take back: nothing was undone, or something was said since."
    async with square.open():
        await square.says("about cats")
        assert await square.says("/redo") == nothing
        await square.says("/title Cats")
        await square.says("and kittens")
        await square.says("/undo 2")
        assert await square.texts() == []
        assert await square.says("/redo") == "What was undone stands again."
        assert await square.texts() == ["about cats", "You said: about cats", "and kittens", "You said: and kittens"]
        assert await square.says("/redo") == nothing
        await square.says("/undo")
        await square.says("and tigers")
        assert await square.says("/redo") == nothing
        await square.says("/new")
        dogs = await square.session()
        await square.says("/undo")
        assert await square.says("/redo") == "You are in an untitled session again."
        assert (await square.session()).id == dogs.id
        await square.says("/undo")
        assert (await square.session()).title == "Cats"


@both
async def test_a_redo_that_waits_behind_a_message_changes_nothing(square: Square) -> None:
    pause = Pause()
    square.agent = ScriptedAgent("one", [pause, "two"], otherwise=recalls)
    async with square.open():
        await square.says("1")
        await square.says("/undo")
        square.ann.says("2", square.dm)
        await pause.reached()
        square.ann.says("/redo", square.dm)
        await square.platform.settles()
        pause.over()
        heard = await square.hears(square.dm, 4)
        assert heard[-1].startswith("There is no /undo to take back")
        assert await square.texts() == ["2", "two"]


@both
async def test_the_tree_is_walked_and_its_messages_are_gone_back_to_by_number(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        first = (await square.says("/tree")).splitlines()
        assert first[0] == "“Cats” (here) · 3 entries"
        number = next(line for line in first if line.endswith(": about cats")).partition(":")[0]
        await square.says("and kittens")
        assert (await square.says(f"/rewind {number}")).startswith("Went back to that message.")
        assert await square.texts() == ["about cats"]
        kittens = int(number) + 2
        # What was left is in reach by its number, too.
        assert (await square.says(f"/rewind {kittens}")).startswith("Went back to that message.")
        assert await square.texts() == ["about cats", "You said: about cats", "and kittens"]
        for nonsense in ("99", "9" * 5000, "x", "-1"):
            assert (await square.says(f"/rewind {nonsense}")).startswith("No message here has the number")
        await square.says("/branch")
        tree = await square.says("/tree")
        assert "a) “Cats #1”" in tree
        assert "b) “Cats #2” (here)" in tree
        assert await square.says("/tree A") == "You are in “Cats #1”."
        assert (await square.session()).title == "Cats #1"
        assert (await square.says("/tree z")).startswith("/tree shows no such branch.")


@pytest.mark.parametrize("square", [(Telegram, "sqlite"), (Telegram, "postgres")], indirect=True)
async def test_undo_leaves_a_thread_where_it_began(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        topic = square.ann.opens_thread("Kittens", square.dm)
        await square.says("about kittens", where=topic)
        # Nobody named it: what forks by itself takes no title and no number.
        assert (await square.session(topic)).title == ""
        assert await square.says("/undo", where=topic) == "Took back the last exchange."
        assert await square.texts(await square.session(topic)) == ["about cats", "You said: about cats"]
        assert await square.says("/undo", where=topic) == "Took back the last exchange."
        assert await square.says("/undo", where=topic) == "There is nothing to take back."
        assert await square.texts() == ["about cats", "You said: about cats"]


@everywhere
async def test_a_reset_and_the_message_that_caused_it_are_taken_back_in_one_step(square: Square) -> None:
    idle = Settings(resets=Policies(Policy(When.IDLE, idle_minutes=60)))
    async with square.open(GatewaySettings(routing=idle)):
        await square.says("about cats")
        await square.says("/title Cats")
        square.passes(3601)
        assert await square.says("do they purr?") == "You said: do they purr?"
        fresh = await square.session()
        assert fresh.title == ""
        answer = await square.says("/undo", answers=2)
        assert answer == "You said: do they purr?"
        assert (
            "Took back the reset. You are in “Cats” again, and your message is asked again there." in square.dm.replies
        )
        assert await square.texts() == [
            *("about cats", "You said: about cats"),
            *("do they purr?", "You said: do they purr?"),
        ]
        await square.says("/undo")
        assert await square.texts() == ["about cats", "You said: about cats"]


@both
async def test_a_reset_is_taken_back_only_with_the_message_that_caused_it_and_by_no_number(square: Square) -> None:
    idle = Settings(resets=Policies(Policy(When.IDLE, idle_minutes=60)))
    async with square.open(GatewaySettings(routing=idle)):
        await square.says("about cats")
        square.passes(3601)
        await square.says("about dogs")
        await square.says("and birds")
        dogs = await square.session()
        assert await square.says("/undo") == "Took back the last exchange."
        assert await square.texts() == ["about dogs", "You said: about dogs"]
        assert await square.says("/undo 1") == "Took back the last exchange."
        assert (await square.session()).id == dogs.id
        assert await square.texts() == []


@both
async def test_undo_waits_behind_what_runs_and_takes_the_reset_back_then(square: Square) -> None:
    pause = Pause()
    square.agent = ScriptedAgent("purr", [pause, "too late"], otherwise=recalls)
    idle = Settings(resets=Policies(Policy(When.IDLE, idle_minutes=60)))
    async with square.open(GatewaySettings(routing=idle)):
        await square.says("about cats")
        square.passes(3601)
        square.ann.says("do they purr?", square.dm)
        await pause.reached()
        square.ann.says("/undo", square.dm)
        await square.platform.settles()
        assert square.dm.replies == ["purr"]
        pause.over()
        heard = await square.hears(square.dm, 4)
    assert heard == [
        "purr",
        "too late",
        "Took back the reset. You are in the session before again, and your message is asked again there.",
        "You said: do they purr?",
    ]


@both
async def test_what_was_said_with_a_move_is_newer_than_the_move_answered_or_not(square: Square) -> None:
    pause = Pause()
    square.agent = ScriptedAgent("meow", [pause, "woof"], otherwise=recalls)
    async with square.open():
        await square.says("about cats")
        cats = await square.session()
        square.ann.says("/new about dogs", square.dm)
        await pause.reached()
        square.ann.says("/undo", square.dm)
        await square.platform.settles()
        pause.over()
        assert await square.hears(square.dm, 3) == ["meow", "woof", "Took back the last exchange."]
        assert await square.texts() == []
        await square.says("/undo")
        assert (await square.session()).id == cats.id


@both
async def test_while_a_turn_runs_looking_acts_at_once_and_what_moves_the_tip_waits(square: Square) -> None:
    pause = Pause()
    square.agent = ScriptedAgent("one", [pause, "two"], otherwise=recalls)
    async with square.open():
        await square.says("1")
        square.ann.says("2", square.dm)
        await pause.reached()
        assert (await square.says("/status")).endswith("1 turn runs or waits.")
        assert await square.says("/title Cats") == "This session is called Cats."
        square.ann.says("/retry", square.dm)
        await square.platform.settles()
        for text in ("3", "/undo", "4"):
            square.ann.says(text, square.dm)
            await square.platform.settles()
        assert (await square.says("/status")).endswith("5 turns run or are waiting.")
        pause.over()
        heard = await square.hears(square.dm, 9)
        assert heard[-5:] == ["two", "You said: 2", "You said: 3", "Took back the last exchange.", "You said: 4"]
        assert await square.texts() == ["1", "one", "2", "You said: 2", "4", "You said: 4"]


@everywhere
async def test_retry_asks_the_last_message_again(square: Square) -> None:
    square.agent = ScriptedAgent("blue", "green", "red")
    async with square.open():
        await square.says("a colour?")
        await square.says("another?")
        assert await square.says("/retry") == "red"
        assert await square.texts() == ["a colour?", "blue", "another?", "red"]
        assert await square.count() == 7
    assert [entry.text for entry in square.works[-1].transcript if entry.text] == ["a colour?", "blue"]


@quoting
async def test_rewind_goes_back_to_the_message_that_it_replies_to(square: Square) -> None:
    async with square.open():
        for animal in ("ants", "bees", "cats"):
            await square.says(animal)
        before = await square.count()
        assert "Reply with /rewind" in await square.says("/rewind")
        assert "Went back" in await square.says("/rewind", square.message("You said: bees"))
        assert await square.texts() == ["ants", "You said: ants", "bees", "You said: bees"]
        assert "Went back" in await square.says("/rewind", square.message("ants"))
        assert await square.texts() == ["ants"]
        # What was left stays in reach; what the gateway said never was a part of it.
        back = await square.says("/rewind", square.message("You said: cats"))
        assert await square.texts() == [
            text for animal in ("ants", "bees", "cats") for text in (animal, f"You said: {animal}")
        ]
        gone = await square.says("/rewind", square.message(back))
        assert gone == "That message isn't part of what was said here. Reply to one that is."
        assert await square.count() == before


@both
async def test_rewind_goes_back_to_a_message_that_was_asked_again(square: Square) -> None:
    square.agent = ScriptedAgent("blue", "green", "red", "yellow", otherwise=recalls)
    async with square.open():
        await square.says("a colour?")
        await square.says("another?")
        await square.says("/retry")
        await square.says("/retry")
        assert "Went back" in await square.says("/rewind", square.message("another?"))
        assert await square.texts() == ["a colour?", "blue", "another?"]
        assert "Went back" in await square.says("/rewind", square.message("a colour?"))
        assert await square.texts() == ["a colour?"]
        # What was taken back isn't what was asked again in its place.
        await square.says("a shape?")
        await square.says("/undo")
        await square.says("a taste?")
        await square.says("/retry")
        await square.says("/rewind", square.message("a shape?"))
        assert await square.texts() == ["a colour?", "a shape?"]


@everywhere
async def test_a_summary_stands_for_what_was_said_and_nobody_is_sent_it(square: Square) -> None:
    async with square.open():
        assert (
            await square.says("/compress")
            == "No session is open here. Write something to start one, or /resume an old one."
        )
        await square.says("about cats")
        await square.says("about dogs")
        assert isinstance(square.agent, ScriptedAgent)
        square.agent.will("they talked of pets")
        said = await square.says("/compress the cats")
        assert said.startswith("A summary stands for 4 messages now. Nothing is deleted")
        assert await square.says("/compress") == "Nothing was said since the last summary."
        assert "they talked of pets" not in square.dm.replies
        await square.says("and birds")
        assert [plain_text(entry.parts) for entry in square.works[-1].transcript] == ["they talked of pets"]
        assert await square.says("/undo 2") == "Took back the last 2 exchanges."
        assert await square.texts() == ["about cats", "You said: about cats"]
    asked = square.works[2]
    assert plain_text(asked.asked[0].parts) == request_to_sum_up("the cats")


class Forgetful(ScriptedAgent):
    """An agent with a small window, who reports how large each prompt was."""

    window = 1000

    async def summary(self, work: Work, focus: str) -> SummedUp:
        assert not focus
        return SummedUp(f"summary of {len(work.transcript)} entries", (Usage("m", 2000, 20),))


@both
async def test_what_would_not_fit_is_summed_up_before_the_turn_by_the_size_last_reported(square: Square) -> None:
    square.agent = Forgetful(
        ["one", Usage("m", 100, 10)],
        ["two", Usage("m", 600, 10), Usage("m", 900, 10)],
        # It is summed up once, also if the turn then has to be tried again; what was spent is spent.
        [Usage("m", 200, 0), RuntimeError("too much")],
        ["three", Usage("m", 300, 10)],
        ["four", Usage("m", 400, 10)],
    )
    async with square.open():
        for number in ("1", "2", "3", "4"):
            await square.says(number)
        path = await square.store.path((await square.session()).id)
        replies = list(square.dm.replies)
        # The summary counts, and so does the try that failed.
        assert "m: 4 turns, 4,500 tokens in" in await square.says("/usage")
        await square.says("/compress")
        assert "m: 5 turns, 6,500 tokens in" in await square.says("/usage")
    assert replies == ["one", "two", "three", "four"]
    sums = [part for entry in path for part in entry.parts if isinstance(part, Summary)]
    assert len(sums) == 1
    sent = [[entry.text for entry in work.transcript if entry.text] for work in square.works]
    assert sent[:2] == [[], ["1", "one"]]
    assert sent[2:4] == [[sums[0].text]] * 2
    assert sent[4] == [sums[0].text, "3", "three"]


@everywhere
async def test_a_branch_goes_on_by_itself_and_the_tree_shows_it(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        await square.says("/title Cats")
        assert await square.says("/branch") == "You go on in “Cats #2”; the original stays as it is."
        await square.says("about lions")
        assert await square.texts() == ["about cats", "You said: about cats", "about lions", "You said: about lions"]
        assert await square.says("/branch Tigers") == "You go on in “Tigers”; the original stays as it is."
        tree = (await square.says("/tree")).splitlines()
        assert [line.lstrip("└─ ") for line in tree] == [
            "a) “Cats #1” · 3 entries",
            "after 3: b) “Cats #2” · 2 entries",
            "after 2: c) “Tigers” (here) · 0 entries",
            "/tree LETTER goes to a branch.",
        ]
        # A branch of a branch is the next of the same lineage, and the bare name is the newest.
        await square.says("/resume Cats #2")
        assert await square.says("/branch") == "You go on in “Cats #3”; the original stays as it is."
        assert await square.says("/resume Cats") == "You are already in that session."
        await square.says("/resume Cats #1")
        assert await square.texts() == ["about cats", "You said: about cats"]
        await square.says("/undo 1")
        assert "after 1: abandoned, 2 entries up to 3, “about cats”" in await square.says("/tree")
        await square.says("/rewind 3")
        assert await square.texts() == ["about cats", "You said: about cats"]


@both
@pytest.mark.parametrize(("typed", "left"), [("/undo", 604), ("/undo 2", 602), ("/rewind", 605), ("/retry", 606)])
async def test_of_a_long_session_only_the_end_is_read_to_take_it_back(
    square: Square, typed: str, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0

    def counted(kind: type[Entry], statement: Statement) -> Transaction[list[Entry]]:
        nonlocal read
        entries = yield from each(kind, statement)
        read += len(entries)
        return entries

    async with square.open():
        await square.says("first")
        session = await square.session()
        by = (await square.store.path(session.id))[1].author
        drafts = [Draft(AGENT if n % 2 else by, (Text(f"{n}"),)) for n in range(600)]
        await square.store.driver.write(transcripts.append, session.id, drafts, square.clock())
        await square.says("almost last")
        await square.says("last")
        # The gateway was told the whole of it a moment ago, and keeps that; what a tip needs it reads anew.
        monkeypatch.setattr(transcripts, "each", counted)
        await square.says(typed, square.message("last") if typed == "/rewind" else None)
        assert 0 < read < 600 or typed == "/retry"
        monkeypatch.undo()
        before = await square.store.path(session.id)
        assert len([entry for entry in before if entry.text]) == left
        await square.says("and now?")
        assert list(square.works[-1].transcript) == visible(before)


@both
async def test_the_model_is_sent_exactly_the_persisted_path_and_entries_only_grow(square: Square) -> None:
    async with square.open():
        assert isinstance(square.agent, ScriptedAgent)
        grown = 0

        async def sent(text: str, *, quoting: str = "") -> list[Entry]:
            """Say something, and compare what the agent was sent with what was persisted before it."""
            nonlocal grown
            if text.startswith("/"):
                await square.says(text, square.message(quoting) if quoting else None)
            before = await square.store.path((await square.session()).id)
            await square.says("and now?")
            assert list(square.works[-1].transcript) == visible(before)
            assert [plain_text(draft.parts) for draft in square.works[-1].asked] == ["and now?"]
            count = await square.count()
            assert count > grown
            grown = count
            return before

        for animal in ("ants", "bees", "cats"):
            await square.says(animal)
        await sent("/undo")
        await sent("/undo 2")
        retried = await sent("/retry")
        assert retried[-1].author.role is Role.AGENT
        await sent("/rewind", quoting="You said: ants")
        branched = await sent("/branch")
        assert branched[-1].tip.session != (await square.session()).id
        square.agent.will("what they said, in short")
        summed = await sent("/compress")
        assert [entry.text for entry in visible(summed)] == ["what they said, in short"]
        await sent("/undo")
