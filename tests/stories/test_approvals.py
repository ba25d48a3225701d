"""An agent of pydantic-ai whose tool must be approved: asked about wherever its person is, also over a kill."""

from pathlib import Path

from tests.drills.gateways import Mind, approved
from tests.servers.crabline import Between
from tests.stories.conftest import Stage
from tests.stories.test_telegram import ANN, pressing, running, texts, there

__all__ = ["there"]
_LEASE = 3.0
"""Seconds: no busy machine makes a replica that lives count as dead, and ask its model again."""


async def test_a_call_that_waits_for_a_yes_survives_a_kill_and_its_model_is_not_asked_again(
    stage: Stage, tmp_path: Path
) -> None:
    town, spy = stage.town, tmp_path / "done"
    [chat, *_] = town.chats
    async with stage.gateway(mind=Mind.APPROVED, spy=str(spy), lease=_LEASE):
        await town.say(chat, "m1", text="tidy up")
        await town.hears(chat, "May I use remove(path='old.txt')?")
        # What is sent to one place goes in order: once this is there, the message with the question is known.
        await town.say(chat, "m2", text="/who")
        await town.answer("m2")
    before = spy.read_text()
    [shown] = [call for call in town.calls(chat) if call["choices"]]
    assert shown["question"]
    async with stage.gateway(mind=Mind.APPROVED, spy=str(spy), lease=_LEASE):
        # A choice that isn't offered, and somebody else's answer.
        await town.say(chat, "m3", text="", pressed={"message": shown["key"], "choice": "perhaps"})
        await town.hears(chat, "That is none of the choices:\n1. yes\n2. no\n3. for this session\n4. always")
        eve = {"id": "eve", "name": "Eve"}
        await town.say("Eve's own", "m4", text=f"/answer {shown['question']} yes", person=eve)
        await town.hears("Eve's own", "That was asked of somebody else.")
        assert spy.read_text() == before
        await town.say(chat, "m5", text="", pressed={"message": shown["key"], "choice": "yes"})
        assert await town.hears(chat, "It came to") == "Let me see.\n\nIt came to: old.txt is gone"
        await town.say(chat, "m6", text="", pressed={"message": shown["key"], "choice": "no"})
        await town.hears(chat, "That came too late. Answered: yes (")
    assert spy.read_text().removeprefix(before).startswith("removed old.txt\nasked\n"), "nothing was asked before it"
    assert spy.read_text().count("removed") == 1


async def test_a_tap_on_telegram_lets_the_call_be_made(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    spy = tmp_path / "done"
    async with running(tmp_path, url, approved(spy)):
        await between.says("501", "tidy up")
        asked = await between.shows(ANN, "May I use remove(path='old.txt')?")
    before = spy.read_text()
    async with running(tmp_path, url, approved(spy)):
        await between.says("501", "pressed", doctor=pressing(asked.message, "yes"))
        await between.shows(ANN, "May I use remove(path='old.txt')?\n\nAnswered: yes (Person 501).")
        await between.changes.until(
            lambda: True if any("It came to: old.txt is gone" in text for text in texts(between, ANN)) else None,
            lambda: f"{texts(between, ANN)}",
        )
    assert spy.read_text().removeprefix(before).startswith("removed old.txt\nasked\n"), "nothing was asked before it"
    assert spy.read_text().count("removed") == 1
