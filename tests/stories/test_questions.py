"""An agent asks in the middle of its turn, and whoever is asked answers wherever they are."""

import asyncio

import apsw
import pytest
from msgspec.structs import replace

from segue.agents.given import as_agent
from segue.core.contracts.agents import Work
from segue.core.messages import ToolCall
from segue.core.people import Allowance, Allowances
from segue.core.settings import Blind, GatewaySettings, QuestionSettings
from segue.core.turns import SUSPECT
from segue.errors import Invalid, Unanswered
from segue.testing import PERSONAS, Fault, To
from segue.testing.chats import Chat
from tests.changes.world import MARK
from tests.stories.square import Square, both, everywhere, quoting
from tests.stories.test_asking import TOGETHER

CITIES = ("Berlin", "Paris", "São Paulo")


async def travels(work: Work) -> str:
    """Ask where to go, and go there."""
    return f"Off to {await work.ask('Where to?', CITIES)}."


async def deletes(work: Work) -> str:
    """Delete something, if that is allowed."""
    answer = await work.ask("Delete the old files?", allows="delete_files")
    return "Deleted." if answer == "yes" else "Kept."


async def wonders(work: Work) -> str:
    """Ask for any words."""
    return f"Hello, {await work.ask('What is your name?')}."


@everywhere
async def test_a_choice_is_made_by_its_words_or_its_number_and_the_turn_goes_on(square: Square) -> None:
    square.agent = as_agent(travels)
    async with square.open():
        for said in ("paris", "2"):
            asked = await square.says("a trip please")
            assert asked.startswith("Where to?")
            assert await answered(square, said, "Off to Paris.")


@pytest.mark.parametrize("square", [pytest.param((PERSONAS[0], "sqlite"), id="flat")], indirect=True)
async def test_a_reply_to_a_question_counts_though_nobody_knows_yet_that_it_was_sent(square: Square) -> None:
    went: asyncio.Queue[str] = asyncio.Queue()

    async def goes(work: Work) -> str:
        await went.put(await work.ask("Where to?", CITIES))
        return "Off."

    square.agent = as_agent(goes)
    async with square.open():
        await square.says("/status")
        await square.says("a trip please")
        question = square.dm.messages[-1]
    # As a kill between the calls and their record leaves them; they are sent again only later.
    file = apsw.Connection(square.where)
    unsent = "update deliveries set message = null, sent = null, doubtful = 1, due = due + 1e6 where address = ?"
    file.execute(unsent, (square.dm.address.key,))
    file.close()
    async with square.open():
        square.ann.says("not now", square.dm, question, To.AGENT)
        square.ann.says("paris", square.dm, question, To.AGENT)
        async with asyncio.timeout(90):
            assert await went.get() == "Paris"


@quoting
async def test_anything_else_is_an_ordinary_message_and_waits_its_turn(square: Square) -> None:
    square.agent = as_agent(travels)
    async with square.open():
        await square.says("a trip please")
        square.ann.says("how is the weather?", square.dm)
        assert await answered(square, "/answer 1", "Off to Berlin.")
        await asked(square, "Where to?")
        assert await answered(square, "Paris", "Off to Paris.")


async def asked(square: Square, words: str, where: Chat | None = None) -> str:
    """Wait until a question is the last thing that stands in a chat; returns it."""
    chat = where or square.dm

    def stands() -> str | None:
        last = chat.replies[-1] if chat.replies else ""
        return last if last.startswith(words) and "\n\nAnswered" not in last else None

    return await square.platform.changes.until(stands, lambda: f"{chat.replies!r}")


async def heard(square: Square, words: str, where: Chat | None = None) -> None:
    """Wait until somebody has read something in a chat."""
    chat = where or square.dm
    await square.platform.changes.until(
        lambda: True if any(words in reply for reply in chat.replies) else None, lambda: f"{chat.replies!r}"
    )


async def answered(square: Square, said: str, expected: str) -> bool:
    """Say something, and wait until the agent has gone on with it."""
    seen = square.dm.replies.count(expected)
    square.passes(1.0)
    square.ann.says(said, square.dm)
    await square.platform.changes.until(
        lambda: True if square.dm.replies.count(expected) > seen else None, lambda: f"{square.dm.replies!r}"
    )
    return True


@both
async def test_words_are_the_answer_where_any_words_will_do(square: Square) -> None:
    square.agent = as_agent(wonders)
    async with square.open():
        assert await square.says("hi") == "What is your name?"
        assert await answered(square, "Ann of Green Gables", "Hello, Ann of Green Gables.")


@both
async def test_always_is_kept_listed_and_taken_back(square: Square) -> None:
    square.agent = as_agent(deletes)
    async with square.open():
        assert (await square.says("tidy up")).startswith("Delete the old files?")
        assert await answered(square, "always", "Deleted.")
        assert await square.says("again") == "Deleted."
        assert await square.says("/questions") == (
            "Nothing waits for your answer.\n\nYou allow:\n1. delete_files, always\n\n"
            "/questions revoke N allows one of these no more."
        )
        assert await square.says("/questions revoke 1") == "That is allowed no more. I will ask again."
        assert (await square.says("tidy up")).startswith("Delete the old files?")
        assert await answered(square, "/no", "Kept.")


@both
async def test_a_question_is_over_with_its_time_and_a_late_answer_is_told_so(square: Square) -> None:
    square.agent = as_agent(deletes)
    async with square.open(GatewaySettings(questions=QuestionSettings(60.0))):
        await square.says("tidy up")
        square.passes(61.0)
        await heard(square, "Kept.")
        await heard(square, "Nobody answered in time.")
        assert await square.says("/yes") == "That came too late: nobody had answered in time."


@both
async def test_an_agent_learns_that_nobody_answered(square: Square) -> None:
    async def wants_a_name(work: Work) -> str:
        try:
            return await work.ask("What is your name?")
        except Unanswered as error:
            return f"Never mind. {error}"

    square.agent = as_agent(wants_a_name)
    async with square.open(GatewaySettings(questions=QuestionSettings(60.0))):
        await square.says("hi")
        square.passes(61.0)
        await heard(square, "Never mind. Nobody answered in time.")


@pytest.mark.parametrize("square", [(PERSONAS[0], "sqlite")], indirect=True)
async def test_who_is_asked_holds_up_nobody_however_many_processes_died_before(square: Square) -> None:
    square.agent = as_agent(travels)
    bob = square.platform.person("Bob")
    his = square.platform.dm(bob)
    async with square.open():
        await square.says("a trip please")
        await square.says("a trip please", who=bob, where=his)
    file = apsw.Connection(square.where)
    file.execute(f"update sessions set deaths = ? where id not like '%{MARK}%'", (SUSPECT,))
    file.close()
    async with square.open():
        square.passes(1.0)
        bob.says("Berlin", his)
        await heard(square, "Off to Berlin.", his)
        assert await answered(square, "Paris", "Off to Paris.")


@both
async def test_a_turn_that_is_stopped_asks_no_more(square: Square) -> None:
    square.agent = as_agent(travels)
    async with square.open():
        await square.says("a trip please")
        await square.says("/stop")
        await heard(square, "This is asked no more.")
        assert await square.says("/answer 1") == "That came too late. This is asked no more."


@both
async def test_in_a_group_only_whoever_is_asked_answers(square: Square) -> None:
    square.agent = as_agent(travels)
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open(TOGETHER):
        square.ann.says("a trip please", lobby)
        await asked(square, "Where to?", lobby)
        bob.says("Berlin", lobby)
        assert await square.says("/answer 1", who=bob, where=lobby) == "Nothing was asked of you here."
        square.passes(1.0)
        square.ann.says("paris", lobby)
        await heard(square, "Off to Paris.", lobby)


@both
async def test_several_questions_at_once_are_listed_and_answered_by_their_numbers(square: Square) -> None:
    async def two(work: Work) -> str:
        named = await asyncio.gather(work.ask("Where to?", CITIES), work.ask("When?", ("soon", "later")))
        return " ".join(named)

    square.agent = as_agent(two)
    async with square.open():
        await square.says("a trip please", answers=2)
        assert (await square.says("/yes")).startswith("Several things are asked of you here.")
        *lines, _, how = (await square.says("/questions")).splitlines()
        assert sorted(line.partition(" ")[2] for line in lines) == ["When?", "Where to?"]
        assert how == "/answer N TEXT answers one."
        [when] = [line.partition(".")[0] for line in lines if "When?" in line]
        assert await square.says(f"/answer {when} never") == "That is none of the choices:\n1. soon\n2. later"
        square.passes(1.0)
        square.ann.says(f"/answer {when} later", square.dm)
        await heard(square, "Answered: later (Ann).")
        assert await answered(square, "3", "São Paulo later")


@both
async def test_what_cannot_be_asked_is_told_to_the_agent(square: Square) -> None:
    async def asks_badly(work: Work) -> str:
        wrong: list[str] = []
        for words, choices in (("", ()), ("Well?", ("only one",)), ("Well?", ("a", "A")), ("Well?", ("a", ""))):
            try:
                await work.ask(words, choices)
            except Invalid as error:
                wrong.append(str(error))
        return "\n".join(wrong)

    square.agent = as_agent(asks_badly)
    async with square.open():
        told = (await square.says("hi")).splitlines()
        assert len(told) == 4
        assert told[1] == "choices: there is one. Offer 2 to 20, or none: then any words are an answer."


@both
async def test_a_person_is_asked_only_so_much_at_once(square: Square) -> None:
    async def asks_on(work: Work) -> str:
        waiting = [asyncio.create_task(work.ask(f"Number {n}?", ("a", "b"), f"{n}")) for n in range(4)]
        done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
        for task in rest:
            task.cancel()
        await asyncio.wait(rest)
        return str(done.pop().exception())

    square.agent = as_agent(asks_on)
    few = Allowances(replace(Allowance(), questions=3), replace(Allowance(), questions=3))
    bob = square.platform.person("Bob")
    his = square.platform.dm(bob)
    async with square.open(GatewaySettings(limits=few)):
        bob.says("hi", his)
        await heard(square, "its person is asked 3 things already", his)


@both
async def test_a_thousand_questions_at_once_are_refused_beyond_what_a_person_is_asked(square: Square) -> None:
    async def asks_all(work: Work) -> str:
        waiting = [asyncio.create_task(work.ask(f"Number {n}?", ("a", "b"), f"{n}")) for n in range(1000)]
        asked: set[asyncio.Task[str]] = set(waiting)
        refused = 0
        while len(asked) > 20:
            done, asked = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            refused += sum(isinstance(task.exception(), Invalid) for task in done)
        for task in asked:
            task.cancel()
        await asyncio.wait(asked)
        return f"{refused} refused"

    square.agent = as_agent(asks_all)
    bob = square.platform.person("Bob")
    his = square.platform.dm(bob)
    async with square.open(GatewaySettings(limits=Allowances(Allowance(), Allowance()))):
        bob.says("hi", his)
        await heard(square, "980 refused", his)
        square.passes(1.0)
        bob.says("/questions", his)
        await heard(square, "Nothing waits for your answer.", his)


@both
async def test_forgetting_a_session_takes_what_was_asked_in_it(square: Square) -> None:
    square.agent = as_agent(wonders)
    async with square.open():
        await square.says("hi")
        assert await answered(square, "Rumpelstiltskin", "Hello, Rumpelstiltskin.")
        await square.says("hi again")
        shown = square.message("What is your name?")
        await square.says("/forget session")
        square.passes(1.0)
        square.ann.says("/yes", square.dm)
        await heard(square, "Forgotten")
        assert "Rumpelstiltskin" not in await square.says("/why")
        assert await square.says("/answer Bluebeard", shown) == "That came too late. This is asked no more."


@both
async def test_a_message_of_which_nobody_knows_is_sent_again_once_its_owner_wants_it(square: Square) -> None:
    async with square.open(GatewaySettings(blind=Blind.AT_MOST_ONCE)):
        await square.says("hello")
        for answer, times in (("no", 1), ("yes", 2)):
            square.platform.misbehaves(Fault.TAKES_AND_BREAKS)
            square.passes(1.0)
            square.ann.says(f"tell me {answer}", square.dm)
            await asked(square, f"Nobody knows whether this message arrived: “You said: tell me {answer}”")
            square.passes(1.0)
            square.ann.says(answer, square.dm)
            await heard(square, f"Answered: {answer} (Ann).")
            # What is sent to one place goes in order.
            await square.says("/status")
            assert square.dm.replies.count(f"You said: tell me {answer}") == times


@both
async def test_an_approver_answers_instead_of_whoever_talks(square: Square) -> None:
    square.agent = as_agent(deletes)
    bob = square.platform.person("Bob")
    his = square.platform.dm(bob)
    square.approvers = (square.ann.identity.name,)
    async with square.open():
        await square.says("hello")
        await asked(square, "Delete the old files?")
        assert await answered(square, "/no", "Kept.")
        bob.says("tidy up", his)
        await asked(square, "Delete the old files?", his)
        await asked(square, "Delete the old files?")
        assert await square.says("/yes", who=bob, where=his) == "That was asked of somebody else."
        square.passes(1.0)
        square.ann.says("/questions", square.dm)
        await heard(square, "1. Delete the old files?")
        square.ann.says("/answer 1 yes", square.dm)
        await heard(square, "Deleted.", his)
        await heard(square, "Answered: yes (Ann).", his)


@both
async def test_a_child_asks_where_its_person_alone_has_a_share_of_the_place(square: Square) -> None:
    async def starts(text: str, work: Work) -> str:
        if text == "start":
            await work.tools.call(ToolCall("1", "sessions_spawn", {"task": "choose", "mode": "session"}))
            return "Started."
        return f"Off to {await work.ask('Where to?', CITIES)}."

    square.agent = as_agent(starts)
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open():
        bob.says("start", lobby, to=To.AGENT)
        await asked(square, "Where to?", lobby)
        square.passes(1.0)
        bob.says("paris", lobby, to=To.AGENT)
        await heard(square, "Off to Paris.", lobby)
