"""Words that a person has forgotten are in no row, index, log, free page or file; a stone stands where they were."""

import asyncio

import pytest
from msgspec.structs import replace

from segue.changes.forgetting import cleaning
from segue.core.messages import Stone, Summary
from segue.core.settings import Deletions, GatewaySettings, Retention
from segue.core.transcripts import Role
from segue.runtime import forgetting
from segue.runtime.forgetting import Retaining
from segue.runtime.lifecycle.failures import Failures
from segue.runtime.retrying import Patient
from segue.testing import Matrix, Pause, ScriptedAgent, Signal
from tests.drills.remains import remains
from tests.stories.square import BehindHttp, Square, both, quoting, recalls
from tests.stories.test_asking import TOGETHER

CANARY = "zyxwcanary"


async def agreed(square: Square, command: str, **more: object) -> tuple[str, str]:
    """Ask for it and say yes; returns the question and the receipt."""
    asked = await square.says(command, **more)  # type: ignore[arg-type]  # what `says` takes
    return asked, await square.says("/yes", **{k: v for k, v in more.items() if k != "quoting"})  # type: ignore[arg-type]


async def cleaned(square: Square) -> None:
    """Wait until the gateway has cleaned up after what was forgotten."""
    async with asyncio.timeout(90):
        while await square.store.driver.read(cleaning.to_clean, 1):  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.01)


@quoting
async def test_a_reply_takes_the_exchange_and_leaves_a_stone(square: Square) -> None:
    async with square.open():
        await square.says("about cats")
        await square.says(f"my secret is {CANARY}")
        await square.says("about dogs")
        await square.store.index()
        session = await square.session()
        asked, receipt = await agreed(square, "/forget", quoting=square.message(f"my secret is {CANARY}"))
        assert asked == (
            "This deletes the exchange: 2 messages. Nothing brings it back. Type /yes within five minutes to have it "
            "forgotten, /no to keep it."
        )
        assert receipt.startswith("Forgotten: 2 messages.\nNot in my reach: your own messages on ")
        path = await square.store.path(session.id)
        assert [entry.text for entry in path if entry.author.role is not Role.GATEWAY] == [
            "about cats",
            "You said: about cats",
            "",
            "",
            "about dogs",
            "You said: about dogs",
        ]
        ann = await square.store.person(square.ann.identity)
        stones = [entry.parts for entry in path if not entry.text and entry.author.role is not Role.GATEWAY]
        assert [(part.by, len(parts)) for parts in stones for part in parts if isinstance(part, Stone)] == [
            (ann.id, 1)
        ] * 2
        assert await square.store.search(CANARY, ann) == []
        assert [entry.text for entry in await square.store.search("dogs", ann)] == [
            "You said: about dogs",
            "about dogs",
        ]
        # The next turn's agent is told nothing of it.
        await square.says("and what else?")
        assert CANARY not in repr(square.works[-1].transcript)
        assert await remains(square.where, CANARY) == []


@both
async def test_no_keeps_it_and_numbers_are_those_of_the_tree(square: Square) -> None:
    async with square.open():
        await square.says(f"my secret is {CANARY}")
        n = next(e.tip.n for e in await square.store.path((await square.session()).id) if CANARY in e.text)
        await square.says(f"/forget {n}")
        assert await square.says("/no") == "All stays as it is."
        assert CANARY in (await square.texts())[0]
        assert await square.says("/forget 99") == "That message isn't part of what was said here. Reply to one that is."
        assert await square.says("/forget all") == (
            "Reply with /forget to a message, or type /forget N as /tree numbers it, or /forget session."
        )
        await agreed(square, f"/forget {n}")
        assert await square.texts() == []
        assert await remains(square.where, CANARY) == []


@both
async def test_a_session_goes_whole_and_the_place_begins_anew(square: Square) -> None:
    async with square.open():
        await square.says(f"about {CANARY}")
        await square.says(f"/title The {CANARY}")
        await square.says(f"/schedule in 3 days feed the {CANARY}")
        await square.says("more")
        await square.says("/branch Other")
        await square.says("on its own")
        branch = await square.session()
        await square.says(f"/resume The {CANARY}")
        gone = await square.session()
        asked, receipt = await agreed(square, "/forget session")
        assert asked.startswith(f"This deletes “The {CANARY}” whole: 4 messages. Nothing brings it back.")
        assert receipt.startswith("Forgotten: 4 messages.")
        ann = await square.store.person(square.ann.identity)
        assert [session.id for session in await square.store.sessions(ann)] == [branch.id]
        assert await square.texts(branch) == ["on its own", "You said: on its own"]
        await square.says("hello again")
        assert (await square.session()).id != gone.id
        assert (
            await square.says("/schedules") == "You have nothing scheduled. /schedule WHEN TASK does something later."
        )
        assert await remains(square.where, CANARY) == []


@both
async def test_summaries_retries_edits_and_citations_of_it_go_too(square: Square) -> None:

    async with square.open():
        await square.says(f"tell me of {CANARY}")
        await square.says("/retry")
        await square.says("something else", quoting=square.message(f"You said: tell me of {CANARY}"))
        session = await square.session()
        ann = await square.store.person(square.ann.identity)
        upto = (await square.store.path(session.id))[-1].tip
        await square.store.compress(session.id, f"They spoke of {CANARY}.", upto, ann)
        await square.says("/branch Other")
        await square.says("after the summary")
        await square.store.index()
        asked, _ = await agreed(square, "/forget", quoting=square.message(f"tell me of {CANARY}"))
        assert "1 summary" in asked
        assert await remains(square.where, CANARY) == []
        assert not any(isinstance(p, Summary) for e in await square.store.path(session.id) for p in e.parts)


@both
async def test_a_running_turn_is_stopped_first_and_writes_nothing_any_more(square: Square) -> None:
    pause = Pause()
    square.agent = ScriptedAgent(["It is ", pause, CANARY], otherwise=recalls)
    async with square.open():
        square.ann.says(f"think about {CANARY}", square.dm)
        await pause.reached()
        session = await square.session()
        await square.says("/forget session")
        assert (await square.says("/yes")).startswith("Forgotten:")
        pause.over()
        assert await square.says("hello") == "You said: hello"
        assert await remains(square.where, CANARY) == []
        assert (await square.session()).id != session.id


@pytest.mark.parametrize("square", [(BehindHttp, "sqlite")], indirect=True)
async def test_messages_are_deleted_where_the_platform_lets_us_and_the_receipt_names_the_rest(square: Square) -> None:
    platform = square.platform
    assert isinstance(platform, BehindHttp)
    async with square.open():
        await square.says(f"tell me of {CANARY}")
        await square.says("and more")
        answer = square.message(f"You said: tell me of {CANARY}")
        _, receipt = await agreed(square, "/forget", quoting=answer)
        assert platform.deleted == [answer.id]
        assert receipt == (
            "Forgotten: 2 messages.\nNot in my reach: your own messages on http.main; "
            "copies and backups of the database file; exports that were sent, and an agent's own session."
        )


@pytest.mark.parametrize("square", [(BehindHttp, "sqlite")], indirect=True)
async def test_a_platform_that_cannot_delete_now_is_asked_again(
    square: Square, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "_WAITS", (0.0, 0.0))
    platform = square.platform
    assert isinstance(platform, BehindHttp)
    async with square.open():
        for busy, deleted in ((2, True), (3, False)):
            await square.says(f"tell me of {CANARY} {busy}")
            answer = square.message(f"You said: tell me of {CANARY} {busy}")
            platform.busy = busy
            _, receipt = await agreed(square, "/forget", quoting=answer)
            assert (answer.id in platform.deleted) is deleted
            assert ("my messages on http.main" in receipt) is not deleted


@both
async def test_words_that_stand_elsewhere_are_listed_not_hunted(square: Square) -> None:
    async with square.open(TOGETHER):
        await square.says(f"tell me of {CANARY}")
        await square.says("/new")
        await square.says(f"again {CANARY}")
        await square.says("/title Again")
        await square.store.index()
        _, receipt = await agreed(square, "/forget", quoting=square.message(f"tell me of {CANARY}"))
        assert receipt.endswith("Some of its words stand elsewhere: “Again” (2), “Again” (1).")
        assert f"again {CANARY}" in await square.texts()
        # Among others, and to anybody else, nobody is told what stands in Ann's private sessions.
        lobby, bob = square.platform.group("lobby"), square.platform.person("Bob")
        for who in (square.ann, bob):
            said = f"{who.name} heard of {CANARY}"
            await square.says(said, who=who, where=lobby)
            _, receipt = await agreed(square, "/forget", quoting=square.message(said, lobby), who=who, where=lobby)
            assert "Again" not in receipt


@both
async def test_whoever_wrote_it_may_and_others_learn_nothing(square: Square) -> None:
    bob = square.platform.person("Bob")
    club = square.platform.group("club")
    async with square.open():
        await square.says("first of all", where=club)
        await square.says(f"I am {CANARY}", where=club)
        message = square.message(f"I am {CANARY}", club)
        await square.says("I am Bob", who=bob, where=club)
        refused = await square.says("/forget", quoting=message, who=bob, where=club)
        unknown = await square.says("/forget 77", who=bob, where=club)
        assert refused == unknown


@both
async def test_a_session_is_forgotten_so_many_days_after_its_last_message(
    square: Square, caplog: pytest.LogCaptureFixture
) -> None:
    settings = GatewaySettings(retention=Retention(days=0, dm=30))
    async with square.open(settings):
        await square.says(f"my secret is {CANARY}")
        first = await square.session()
        assert (await square.says("/status")).endswith("It is forgotten 30 days after its last message.")
        await square.says("/new")
        await square.says("/schedule in 90 days feed the cats")
        await square.says("something that stays")
        kept = await square.session()
        looking = Retaining(Patient(square.store.driver), replace(settings, accounts={}), square.clock, Failures())
        for _ in range(30):
            assert await looking.once() == 0
            square.passes(86400)
        with caplog.at_level("INFO", "segue.runtime.forgetting"):
            assert await looking.once() == 1
        assert "[retention]: 1 sessions were forgotten" in caplog.text
        await cleaned(square)
        assert await remains(square.where, CANARY) == []
        path = await square.store.path(first.id)
        assert {part.by for entry in path for part in entry.parts if isinstance(part, Stone)} == {""}
        # What is still to be done keeps its session.
        assert (await square.session()).id == kept.id
        assert await looking.once() == 0


@both
async def test_a_clock_that_is_wrong_once_forgets_nothing(square: Square) -> None:
    settings = GatewaySettings(retention=Retention(days=7))
    async with square.open(settings):
        await square.says("something that stays")
        looking = Retaining(Patient(square.store.driver), replace(settings, accounts={}), square.clock, Failures())
        square.passes(9 * 86400)
        assert await looking.once() == 0
        square.passes(-8 * 86400)
        for _ in range(5):
            assert await looking.once() == 0
            square.passes(86400)
        assert await square.texts() == ["something that stays", "You said: something that stays"]
        square.passes(86400)
        assert await looking.once() == 1


@pytest.mark.parametrize("square", [(Signal, "sqlite"), (Matrix, "postgres")], indirect=True)
async def test_a_deletion_on_the_platform_forgets_where_the_host_lets_it(square: Square) -> None:
    square.deletions = Deletions.FORGET
    async with square.open():
        await square.says(f"my secret is {CANARY}")
        await square.says("about dogs")
        square.ann.deletes(square.message(f"my secret is {CANARY}"))
        await square.platform.settles()
        await cleaned(square)
        assert await remains(square.where, CANARY) == []
        assert await square.texts() == ["about dogs", "You said: about dogs"]
