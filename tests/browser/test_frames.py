"""The page's side of the wire is the one that runtime/windows/frames.py defines."""

from typing import Any, get_args

import msgspec
import pytest
from playwright.async_api import Page

from segue.core.handoffs import HandoffProgress, State
from segue.core.messages import File
from segue.core.transcripts import Role, Tip
from segue.core.values import SessionId
from segue.runtime.windows.frames import (
    AcceptedFrame,
    AnsweredFrame,
    CommandsFrame,
    EarlierFrame,
    EntriesFrame,
    FoundFrame,
    GrowingFrame,
    GrowthFrame,
    HandoffFrame,
    InvitationFrame,
    NoticeFrame,
    QuestionsFrame,
    RefusedFrame,
    SessionsFrame,
    Shown,
    ShownCommand,
    ShownEntry,
    ShownQuestion,
    ShownSession,
    ShownTurn,
    TranscriptFrame,
    WaitingFrame,
    requests,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")
TIP = Tip(SessionId("s"), 1)
SESSION = ShownSession(SessionId("s"), "Tea", "tea")
ENTRY = ShownEntry(TIP, Role.AGENT, "", "tea", 1.0, (File("a", "b", "c"),))
EACH: list[Any] = [
    TranscriptFrame(SESSION, (ENTRY,), TIP),
    EntriesFrame(SESSION, (ENTRY,)),
    EarlierFrame((ENTRY,), TIP),
    WaitingFrame((ShownTurn("m", "Ann", "tea", 1.0),)),
    GrowingFrame("tea", begins=True),
    NoticeFrame("tea"),
    AcceptedFrame("m"),
    AnsweredFrame("m"),
    HandoffFrame("h", State.CLAIMED, HandoffProgress.OPENED, "telegram"),
    QuestionsFrame((ShownQuestion("q", "Where to?", ("Berlin", "Paris"), 1.0, here=True),)),
    RefusedFrame("no"),
    InvitationFrame("code", {"telegram": "https://example.org"}, ("matrix",)),
    CommandsFrame((ShownCommand("new", "", "Begin."),)),
    SessionsFrame((SESSION,)),
    FoundFrame("tea", (SESSION,)),
]
SHOWN = """
async (frames) => {
  const { reduce, shows, start } = await import("/page/frames.js");
  const strict = (frame) => new Proxy(frame, {
    get: (of, name) => { if (!(name in of)) throw new Error(`${frame.kind} has no ${String(name)}`); return of[name]; },
  });
  for (const frame of frames) reduce(start, strict(frame));
  return Object.keys(shows);
}
"""
ASKED = """
async (cursor) => {
  const { ask, STEPS } = await import("/page/frames.js");
  const arguments_ = { open: [50], say: ["m", "tea"], earlier: [cursor], resume: ["s"], search: ["tea"] };
  const asked = Object.entries(ask).map(([kind, make]) => [kind, JSON.stringify(make(...(arguments_[kind] ?? [])))]);
  return { asked, steps: Object.keys(STEPS) };
}
"""


async def test_the_page_knows_every_frame_and_reads_no_field_that_it_doesnt_have(page: Page) -> None:
    # A page doesn't ask to be shown thoughts and tools.
    assert {type(frame) for frame in EACH} == set(get_args(Shown)) - {GrowthFrame}
    known = await page.evaluate(SHOWN, [msgspec.to_builtins(frame) for frame in EACH])
    assert set(known) == {msgspec.to_builtins(frame)["kind"] for frame in EACH}


async def test_all_that_the_page_asks_for_is_understood(page: Page) -> None:
    made = await page.evaluate(ASKED, msgspec.to_builtins(TIP))
    for kind, text in made["asked"]:
        assert msgspec.to_builtins(requests.decode(text))["kind"] == kind
    assert made["steps"] == [step.value for step in HandoffProgress]
