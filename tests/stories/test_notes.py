"""An agent keeps notes about a person: told in that person's private sessions alone, and gone when they want."""

import asyncio
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from segue import Resume
from segue.changes.forgetting import cleaning, erasure
from segue.changes.forgetting.erasure import Cause, Reason
from segue.core.contracts.agents import Work
from segue.core.lanes import Rules, Sharing
from segue.core.messages import ToolResult
from segue.core.moves import Consent
from segue.core.resets import Policies, Policy, When
from segue.core.settings import GatewaySettings, Settings
from segue.testing import PERSONAS, ScriptedAgent
from segue.testing.agents import Step, Uses, said
from tests.drills.remains import remains
from tests.stories.square import DATABASES, BehindHttp, Square

CANARY = "zyxwcanary"
LESS = "Write less, or put it in the place of a note that matters less: notes_read lists them."
TOGETHER = GatewaySettings(routing=Settings(rules=Rules(groups=Sharing.TOGETHER)))
over_http = pytest.mark.parametrize(
    "square", [pytest.param((BehindHttp, name), id=f"http-{name}") for name in DATABASES], indirect=True
)
in_a_chat = pytest.mark.parametrize("square", [pytest.param((PERSONAS[0], "sqlite"), id="chat")], indirect=True)


class Noter(ScriptedAgent):
    """Notes what it is told to, tells all that it knows, and is one that keeps notes."""

    notes = True

    def __init__(self) -> None:
        super().__init__(otherwise=self._does)
        self._calls = 0

    def _does(self, work: Work) -> Iterable[Step]:
        self._calls += 1
        verb, _, rest = said(work).partition(" ")
        if verb == "note":
            yield Uses(f"call{self._calls}", "notes_write", arguments={"text": rest})
        elif verb == "instead":
            of, _, text = rest.partition(" ")
            yield Uses(f"call{self._calls}", "notes_write", arguments={"text": text, "instead_of": of})
        elif verb == "read":
            yield Uses(f"call{self._calls}", "notes_read")
        elif not verb:
            yield Uses(f"call{self._calls}", "notes_write", arguments={"text": "they like tea"})
        yield f"told: {', '.join(work.notes)}".strip() if work.notes is not None else "no notebook"


def noter(square: Square) -> Noter:
    """The square's agent."""
    square.agent = agent = Noter()
    return agent


async def results(square: Square) -> list[ToolResult]:
    """What the agent's tools gave in Ann's private chat, the oldest first."""
    path = await square.store.path((await square.session()).id)
    return [part for entry in path for part in entry.parts if isinstance(part, ToolResult)]


async def cleaned(square: Square) -> None:
    """Wait until the gateway has cleaned up after what was forgotten."""
    async with asyncio.timeout(90):
        while await square.store.driver.read(cleaning.to_clean, 1):  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.01)


@over_http
async def test_a_note_is_told_from_the_next_session_on_and_people_take_it_out(square: Square) -> None:
    agent = noter(square)
    async with square.open():
        assert await square.says("note likes tea") == "told:"
        assert await square.says("note hates rain") == "told:", "what a session was begun with stays, for the cache"
        assert len({work.context for work in agent.works}) == 1
        before = agent.works[-1].context.partition("# Your notebook")[0]
        await square.says("/new")
        assert await square.says("hello") == "told: likes tea, hates rain"
        assert agent.works[-1].context.startswith(before), "the notes come last"
        assert agent.works[-1].context.endswith('- "likes tea"\n- "hates rain"')
        listed = await square.says("/notes")
        assert listed.startswith("1. likes tea\n2. hates rain\n\nYour agent reads these")
        assert await square.says("/notes clear 7") == (
            "/notes shows no note 7. Type /notes to read them, /notes clear N to take one out, or /notes clear to take "
            "out all."
        )
        assert await square.says("/notes clear 1") == "Taken out for good: 1 note."
        assert await square.says("hello") == "told: hates rain", "at once, in every session"
        await cleaned(square)
        left = await remains(square.where, "likes tea")
        assert not [place for place in left if place.startswith(("notes", "contexts"))], left
        assert (await square.says("/notes")).startswith("1. hates rain\n")
        assert await square.says("/memory clear") == "Taken out for good: 1 note."
        assert await square.says("/notes") == "No agent has noted anything about you."
        assert (await square.says("/notes burn")).startswith("Type /notes to read them")


@over_http
async def test_nobody_else_is_told_and_a_stranger_has_none(square: Square) -> None:
    agent = noter(square)
    lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
    async with square.open(TOGETHER):
        await square.says("note my secret")
        await square.says("/new")
        assert await square.says("hello") == "told: my secret"
        private = await square.session()
        assert await square.says("note in public", where=lobby) == "no notebook"
        assert "notes_write" not in [tool.name for tool in agent.works[-1].tools.offered]
        assert "my secret" not in agent.works[-1].context
        assert await square.says("note me", who=bob, where=square.platform.dm(bob)) == "no notebook", "a stranger"
        assert "secret" not in await square.says("/notes", who=bob, where=square.platform.dm(bob))
        # Others read on with the owner's yes: from then on nothing is told of the notes, in whichever place.
        ann = await square.store.person(square.ann.identity)
        lane = await square.store.lane(lobby.place, ann, TOGETHER.routing.rules)
        await square.store.move(Resume(lane, private.id, consent=Consent.GIVEN), ann)
        assert await square.says("hello") == "no notebook"
        assert await square.says("hello", where=lobby) == "no notebook"
        assert "my secret" not in "".join(work.context for work in agent.works[-2:])
        assert "my secret" in await square.alone("/notes", lobby)
        await square.says("/new")
        assert await square.says("hello") == "told: my secret"


@over_http
async def test_what_is_forgotten_takes_its_notes_and_what_agents_were_told_of_them(square: Square) -> None:
    agent = noter(square)
    async with square.open():
        await square.says(f"note {CANARY}")
        await square.says("note stays")
        await square.says("/title Diary")
        await square.says("/new")
        assert await square.says("hello") == f"told: {CANARY}, stays"
        [old] = [note["id"] for note in await notes_read(square) if note["text"] == CANARY]
        # A note in the place of another comes of that one's words, too.
        await square.says(f"instead {old} still {CANARY}")
        second = await square.session()
        await square.says("/resume Diary")
        asked = await square.says("/forget", quoting=square.message(f"note {CANARY}"))
        assert "1 note." in asked
        receipt = await square.says("/yes")
        assert "1 note" in receipt
        ann = await square.store.person(square.ann.identity)
        lane = await square.store.lane(square.dm.place, ann)
        await square.store.move(Resume(lane, second.id), ann)
        assert await square.says("hello") == "told: stays"
        reason = Reason(ann.id, Cause.ASKED, square.clock())
        await square.store.driver.write(erasure.session, second.id, reason)
        await cleaned(square)
        assert await remains(square.where, CANARY) == []
        # `segue people forget` takes all that is left.
        while step := await square.store.driver.read(erasure.next_of_person, ann.id, 0):
            await square.store.driver.write(erasure.person_step, step, replace(reason, why=Cause.HOST))
        await square.store.driver.write(erasure.person_end, ann.id, replace(reason, why=Cause.HOST))
        assert await square.says("/notes") == "No agent has noted anything about you."
        assert len(agent.works) > 3


async def notes_read(square: Square) -> list[dict[str, str]]:
    """The notebook as the agent's tool shows it."""
    await square.says("read")
    content = (await results(square))[-1].content
    assert isinstance(content, dict)
    return list(content["notes"])


@in_a_chat
async def test_the_end_of_a_session_is_a_time_for_notes_where_there_is_a_notebook(square: Square) -> None:
    agent, lobby = noter(square), square.platform.group("lobby")
    idle = replace(TOGETHER.routing, resets=Policies(Policy(When.IDLE)))
    async with square.open(replace(TOGETHER, routing=idle, sweep=0.02)):
        await square.says("hello")
        await square.says("hello", where=lobby)
        square.passes(2 * 86_400.0)
        work = await agent.asked(3)
        assert "Write down with notes_write" in str(work.asked[0].parts)
        await agent.idle()
        assert (await square.says("hello")) == "told: they like tea"
        await square.says("hello", where=lobby)
        assert len(agent.works) == 5, "the group's session had nothing to note"


@in_a_chat
async def test_bad_input_is_said_and_nothing_is_lost(square: Square) -> None:
    noter(square)
    async with square.open():
        await square.says("note first")
        await square.says("note")
        await square.says(f"note {'x' * 8190}")
        await square.says("instead nothing at all")
        await square.says(f"note {'y' * 9000}")
        await square.says("instead " + (await notes_read(square))[0]["id"] + " second")
        await square.says("instead " + (await notes_read(square))[0]["id"])
        assert await notes_read(square) == []
        found = [part.content for part in await results(square) if part.failed]
        assert found == [
            "text: it is blank. Write the note.",
            "text: it has 8,190 bytes, and the notebook has room for 8,187. " + LESS,
            'instead_of: there is no note "nothing". notes_read lists them with their ids.',
            "text: expected str of length <= 8192. Give the note; empty to take out the one it is instead of.",
        ]
