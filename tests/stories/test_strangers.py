"""Nobody can resume, list, search, guess or squat what is another's: it reads exactly as if it weren't there."""

import asyncio
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from segue.core.commands import SPECS
from segue.errors import Invalid
from segue.testing.chats import Chat, Someone
from tests.stories.square import Square, both, quoting

MINE, NOBODYS = "Diary of a cat", "Quarry of a bat"
NAMING = [
    *("/resume {}", "/resume {} #1", "/resume {} #2", "/search {}", "/title {}", "/branch {}", "/help {}"),
    *("/sessions {}", "/sessions close {}", "/sessions new {}", "/new {}", "/undo {}", "/export {}", "/link {}"),
    *("/resume 1", "/resume 2", "/sessions 1", "/sessions 2", "/sessions close 1", "/resume", "/sessions", "/tree"),
    *("/status", "/usage", "/who", "/why", "/yes", "/no", "/retry", "/compress {}", "/title", "/undo", "/undo 9"),
    *("/redo", "/rewind 1", "/tree b", "/forget 1", "/answer {}", "/answer 1 {}", "/questions", "/agent {}"),
    *("/notes", "/notes clear 1", "/notes {}"),
]
"""All that names a session, by whatever means."""


def without_ids(text: str, name: str) -> str:
    """An answer without what differs from one session to the next: the name, times and ids."""
    return re.sub(
        r"[0-9a-z]{20,}|\d{6,}|\d\d\d\d-\d\d-\d\d|\d\d:\d\d:\d\d|[A-Z0-9]{4,}-[A-Z0-9]{4,}",
        "?",
        text.replace(name, "NAME"),
    )


async def ask_all(square: Square, who: Someone, chat: Chat, name: str) -> list[str]:
    """Everything that somebody who wonders about a name can type, and the answers."""
    answers = [await square.says("hello", who=who, where=chat)]
    for line in NAMING:
        said = await square.says(line.format(name), who=who, where=chat)
        answers.append(f"{line}: {without_ids(said, name)}")
    return answers


def test_every_command_that_could_name_a_session_is_tried() -> None:
    tried = {line.split()[0].removeprefix("/") for line in NAMING}
    quoting_only, elsewhere = {"rewind", "stop", "home", "unlink", "revoke"}, {"handoff", "schedule", "schedules"}
    assert {spec.name for spec in SPECS} - tried - quoting_only <= elsewhere


@both
async def test_what_is_anothers_reads_exactly_as_if_it_werent_there(square: Square) -> None:
    eve, mallory = square.platform.person("Eve"), square.platform.person("Eve")
    async with square.open():
        for line in ("a secret", f"/title {MINE}", "/branch", "more secrets"):
            await square.says(line)
        await square.store.index()
        of_hers = await ask_all(square, eve, square.platform.dm(eve), MINE)
        of_nobodys = await ask_all(square, mallory, square.platform.dm(mallory), NOBODYS)
        assert of_hers == of_nobodys
        assert not any("secret" in answer for answer in of_hers)
        # And hers is as she left it.
        assert await square.says("/title") == f"{MINE} #2"
        assert (await square.texts())[-1] == "You said: more secrets"


@quoting
async def test_a_message_of_anothers_chat_leads_nowhere(square: Square) -> None:
    eve = square.platform.person("Eve")
    hers = square.platform.dm(eve)
    async with square.open():
        await square.says("a secret")
        await square.says("hello", who=eve, where=hers)
        unknown = "That message isn't part of what was said here. Reply to one that is."
        for line in ("/rewind", "/why"):
            theirs, own = square.message("You said: a secret"), square.message("a secret")
            for message in (theirs, own):
                # Some platforms number the messages of each chat for themselves: then it is one of Eve's.
                if all(message.id != mine.id for mine in hers.messages):
                    assert await square.says(line, message, eve, hers) == unknown
        assert not any("secret" in reply for reply in hers.replies)


@both
async def test_in_a_group_nobody_is_told_which_way_anothers_message_went(square: Square) -> None:
    lobby, eve = square.platform.group(), square.platform.person("Eve")
    async with square.open():
        await square.says("a question", where=lobby)
        await square.says("hello", who=eve, where=lobby)
        unknown = "That message isn't part of what was said here. Reply to one that is."
        for message in (square.message("a question", lobby), square.message("You said: a question", lobby)):
            assert await square.says("/why", message, eve, lobby) == unknown
            assert await square.says("/rewind", message, eve, lobby) == unknown
            assert "received from Ann" in await square.says("/why", message, where=lobby)


@both
def test_no_title_can_be_guessed_by_its_shape(square: Square) -> None:
    """Whatever the title, somebody else's attempts at it read the same whether or not it is taken."""

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40))
    def check(title: str) -> None:
        runner.run(attempt(title))

    async def attempt(title: str) -> None:
        ann = await square.store.person(square.ann.identity)
        taken = (await square.store.sessions(ann, 1))[0]
        eve, mine = square.platform.person("Eve"), f"/resume {title}"
        chat = square.platform.dm(eve)
        free = await square.says(mine, who=eve, where=chat)
        try:
            await square.store.set_title(taken.id, title, ann)
        except Invalid:
            return
        assert await square.says(mine, who=eve, where=chat) == free

    async def enter() -> None:
        await opened.__aenter__()
        await square.says("a secret")

    opened = square.open()
    with asyncio.Runner() as runner:
        runner.run(enter())
        try:
            check()
        finally:
            runner.run(opened.__aexit__(None, None, None))
