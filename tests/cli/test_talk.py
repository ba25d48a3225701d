"""`segue` alone: the terminal chat in a real pseudo-terminal, and talking through a pipe."""

import asyncio
import re
from pathlib import Path

import pytest

from segue import AGENT, open_store
from segue.core.messages import Text
from segue.core.windows import HOSTS
from tests.cli.screens import terminal
from tests.forge import done
from tests.served import PATIENCE, served

CTRL_C, DOWN = "\x03", "\x1b[B"


async def piped(home: Path, said: str) -> tuple[int, str, str]:
    """What `segue` does with what comes through a pipe."""
    async with asyncio.timeout(PATIENCE):
        return await done(home=home, typed=said)


async def test_by_itself_it_answers_completes_resizes_and_leaves(tmp_path: Path) -> None:
    async with terminal(tmp_path) as here:
        here.types("add 2 and 3\r")
        await here.shows("2 and 3 make 5.")
        await here.until(lambda screen: screen.count("add 2 and 3") == 1)
        here.types("/ti")
        await here.shows("Name this session")
        here.types("\r")
        await here.shows("> /title")
        here.types(" Tea\r")
        await here.shows("This session is called Tea.")
        await here.shows("Tea · terminal · ready")
        here.resize(12, 40)
        here.types("say still here\r")
        await here.until(lambda screen: "\nstill here" in screen)
        here.resize(40, 100)
        here.types("say **bold** tea\r")
        await here.until(lambda screen: "\nbold tea" in screen)
        here.types("/quit\r")
        assert await here.leaves() == 0
    assert (tmp_path / "segue.db").exists()
    assert (await piped(tmp_path, "what did I say first?\n"))[1].count("add 2 and 3") == 1


async def test_what_is_on_the_screen_already_is_not_shown_again(tmp_path: Path) -> None:
    async with terminal(tmp_path) as here:
        here.types("say the tea is green\r")
        await here.until(lambda screen: "\nthe tea is green" in screen)
        here.types("say the milk is white\r")
        await here.until(lambda screen: "\nthe milk is white" in screen)
        here.types("/title Drinks\r")
        await here.shows("This session is called Drinks.")
        here.types("/branch\r")
        await here.shows("the original stays as it is.")
        assert here.text.count("the tea is green") == 2
        here.types("/undo 1\r")
        await here.shows("Took back the last exchange.")
        assert "── As above, up to “the tea is green” ──" in here.text
        assert here.text.count("the milk is white") == 2
        here.types("/resume Drinks #1\r")
        await here.shows("Back in")
        assert here.text.count("the milk is white") == 4
        assert "\n── " not in here.text.partition("Took back")[2]


async def test_what_is_entered_while_an_answer_grows_leaves_no_half_of_it_behind(tmp_path: Path) -> None:
    async with terminal(tmp_path) as here:
        here.types("count to 8 slowly\r")
        await here.shows("1, 2")
        here.types("say tea\r")
        await here.until(lambda screen: "\ntea" in screen)
        assert here.text.count("1, 2") == 1


async def test_an_export_is_found_where_the_terminal_says(tmp_path: Path) -> None:
    _, said, _ = await piped(tmp_path, "say the tea is green\n/title Tea\n/export\n")
    first, _, file = said.partition("Here is “Tea”.\nTea.md: ")
    assert first
    assert "the tea is green" in await asyncio.to_thread(Path(file.strip()).read_text)


async def test_an_export_is_written_to_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "Tea.md").write_text("mine")
    async with terminal(tmp_path) as here:
        here.types("say the tea is green\r")
        await here.until(lambda screen: "\nthe tea is green" in screen)
        here.types("/title Tea\r")
        await here.shows("This session is called Tea.")
        here.types("/export\r")
        await here.shows("Wrote Tea-2.md")
        here.types("/quit\r")
        assert await here.leaves() == 0
    assert (tmp_path / "Tea.md").read_text() == "mine"
    assert "the tea is green" in (tmp_path / "Tea-2.md").read_text()


async def test_an_earlier_session_is_picked_by_its_first_question(tmp_path: Path) -> None:
    async with terminal(tmp_path) as here:
        here.types("say tea\r")
        await here.until(lambda screen: "\ntea\n" in screen)
        here.types("/new\r")
        await here.shows("A new session.")
        here.types("say milk\r")
        await here.until(lambda screen: "\nmilk" in screen)
        here.types("/resume ")
        await here.until(lambda screen: "\n           say tea" in screen)
        here.types(DOWN)
        await here.until(lambda screen: re.search(r"> /resume 01\w+", screen))
        here.types("\r")
        await here.shows("Back in the session that began with “say tea”.")
        here.types("/quit\r")
        assert await here.leaves() == 0


async def test_of_a_long_session_the_last_screenful_is_shown(tmp_path: Path) -> None:
    await piped(tmp_path, "say tea\n")
    async with await open_store(tmp_path / "segue.db") as store:
        [session] = await store.sessions(await store.person(HOSTS[0]))
        for n in range(200):
            await store.say(session.id, AGENT, (Text(f"cup {n}"),))
    async with terminal(tmp_path) as here:
        await here.until(lambda screen: "\ncup 199" in screen)
        assert "── Earlier messages are left out here; /export has them all ──" in here.text
        assert "\ncup 0\n" not in here.text


async def test_ctrl_c_stops_the_turn_and_not_the_program(tmp_path: Path) -> None:
    async with terminal(tmp_path) as here:
        here.types("count to 200 slowly\r")
        await here.shows("1, 2, 3")
        await here.shows("· answering ·")
        here.types(CTRL_C)
        await here.shows("· ready ·")
        here.types("say alive\r")
        await here.until(lambda screen: "\nalive" in screen)
        here.types("half a thought")
        await here.shows("half a thought")
        here.types(CTRL_C)
        await here.until(lambda screen: "half a thought" not in screen)
        here.types(CTRL_C)
        assert await here.leaves() == 0


async def test_leaving_and_closing_a_terminal_leave_the_gateway_and_its_turns(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway:
        async with terminal(tmp_path) as first:
            first.types("say tea\r")
            await first.until(lambda screen: "\ntea" in screen)
            async with terminal(tmp_path, "--join") as second:
                await second.until(lambda screen: "\ntea" in screen)
                first.types("/quit\r")
                assert await first.leaves() == 0
                assert gateway.runs
                second.types("count to 8 slowly\r")
                await second.shows("1, 2")
                second.close()
        async with terminal(tmp_path) as third:
            await third.shows("1, 2, 3, 4, 5, 6, 7, 8.")
            await third.until(lambda screen: screen.count("count to 8 slowly") == 1)
        assert gateway.runs


async def test_a_second_terminal_has_a_conversation_of_its_own(tmp_path: Path) -> None:
    async with served(tmp_path), terminal(tmp_path) as first:
        first.types("say tea\r")
        await first.until(lambda screen: "\ntea" in screen)
        await first.shows("say tea · terminal · ready")
        first.types("/title Tea\r")
        await first.shows("Tea · terminal · ready")
        async with terminal(tmp_path) as second:
            second.types("say milk\r")
            await second.until(lambda screen: "\nmilk" in screen)
            assert "tea" not in second.text
        # The next one beside it begins anew, too, and one that asks for a new conversation gets one.
        async with terminal(tmp_path) as third:
            await third.shows("untitled session · terminal · ready")
            assert "milk" not in third.text
        async with terminal(tmp_path, "--join", "Tea") as fourth:
            await fourth.until(lambda screen: "\ntea" in screen)
        assert "milk" not in first.text
        first.types("/quit\r")
        assert await first.leaves() == 0
        async with terminal(tmp_path, "--new") as fifth:
            await fifth.shows("untitled session · terminal · ready")


async def test_a_terminal_whose_gateway_goes_waits_for_it_and_goes_on(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, terminal(tmp_path) as here:
        here.types("say tea\r")
        await here.until(lambda screen: "\ntea" in screen)
        await gateway.end()
        await here.shows("The gateway has gone.")
        here.types("say milk\r")
        async with served(tmp_path):
            await here.shows("The gateway is back.")
            await here.until(lambda screen: "\nmilk" in screen)
            assert here.text.count("\ntea") == 1
            here.types("/quit\r")
            assert await here.leaves() == 0


async def test_the_terminal_that_runs_the_gateway_leaves_it_to_those_who_are_attached(tmp_path: Path) -> None:
    async with terminal(tmp_path) as first:
        first.types("say tea\r")
        await first.until(lambda screen: "\ntea" in screen)
        async with terminal(tmp_path) as second:
            second.types("say milk\r")
            await second.until(lambda screen: "\nmilk" in screen)
            first.types("/quit\r")
            await first.shows("the gateway goes on until the last one leaves")
            second.types("say honey\r")
            await second.until(lambda screen: "\nhoney" in screen)
            second.types("/quit\r")
            assert await second.leaves() == 0
        assert await first.leaves() == 0


@pytest.mark.parametrize("there", ["", "log/"], ids=["no folder", "no log"])
async def test_a_data_folder_that_cannot_be_used_is_one_line(tmp_path: Path, there: str) -> None:
    home = tmp_path / "home"
    if there:
        (home / there).mkdir(parents=True)
    else:
        home.touch()
    async with asyncio.timeout(PATIENCE):
        code, _, err = await done(home=home, folder=tmp_path)
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(f"Error: {home}")


async def test_through_a_pipe_only_answers_are_printed(tmp_path: Path) -> None:
    said = "say tea\n\nadd 2 and 3\n/title Tea\n/new say milk\n/retry\n/regenerate\n/quit\nsay never\n"
    answers = "tea\n2 and 3 make 5.\nThis session is called Tea.\nmilk\nmilk\nmilk\n"
    assert await piped(tmp_path, said) == (0, answers, "")
    async with served(tmp_path):
        assert await piped(tmp_path, "what did I say last?") == (0, "You last said “say milk”.\n", "")
