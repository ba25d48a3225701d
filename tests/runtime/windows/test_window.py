"""Windows show the whole transcript of their session, live, whoever speaks where."""

import asyncio
import time
from pathlib import Path

from segue.agents.given import as_agent
from segue.changes.exchange.traces import TurnState
from segue.core.contracts.agents import Work
from segue.core.lanes import Address, Kind, Lane, Place
from segue.core.messages import Delivery
from segue.core.moves import Consent, Resume
from segue.core.transcripts import Author, Entry, Role, Tip
from segue.core.values import SessionId
from segue.core.windows import ACCOUNT, HOSTS, TERMINAL
from segue.runtime.windows.frames import (
    AcceptedFrame,
    AnsweredFrame,
    FoundFrame,
    GrowingFrame,
    NoticeFrame,
    OpenRequest,
    QuestionsFrame,
    RefusedFrame,
    ResumeRequest,
    SayRequest,
    SearchRequest,
    SessionsFrame,
    SessionsRequest,
    Shown,
    ShownAnswer,
    TranscriptFrame,
    WaitingFrame,
)
from segue.runtime.windows.view import MOST_SESSIONS, WindowView
from segue.runtime.windows.watchers import Arrived, Changed, Growing
from segue.runtime.windows.window import Seat, Window
from segue.testing.agents import Doom, EchoAgent, Pause, ScriptedAgent
from segue.testing.personas import Telegram
from tests.runtime.house import house, said


async def test_what_is_said_is_accepted_then_answered(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here, here.page() as page:
        await page.opened()
        assert page.seen == [TranscriptFrame(None), WaitingFrame()]
        id = await page.says("tea")
        await page.shows("tea", "tea")
        shown = next(i for i, frame in enumerate(page.seen) if said(frame))
        assert page.seen.index(AcceptedFrame(id)) < shown
        assert page.had(NoticeFrame) == []


async def test_a_message_is_acknowledged_before_it_is_shown(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here, here.page() as page:
        await page.opened()
        for n in range(20):
            id = await page.says(f"tea {n}")
            shown = await page.until(lambda frame: isinstance(frame, AcceptedFrame) or said(frame))
            assert shown == AcceptedFrame(id)
            await page.until(said)


async def test_a_second_window_on_the_lane_sees_the_same(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here:
        cookie = here.cookie()
        async with here.page(cookie) as one, here.page(cookie) as two:
            await one.opened()
            await two.opened()
            await one.says("tea")
            await two.shows("tea", "tea")
            await two.says("milk")
            await one.shows("tea", "tea", "milk", "milk")
            await two.shows("tea", "tea", "milk", "milk")
            assert one.session == two.session


async def test_a_window_elsewhere_on_the_session_sees_what_is_said_and_waits(tmp_path: Path) -> None:
    pause = Pause()
    async with house(tmp_path, ScriptedAgent("one", ["tw", pause, "o"])) as here, here.terminal() as terminal:
        await terminal.opened()
        await terminal.says("tea")
        await terminal.shows("tea", "one")
        async with here.page() as page:
            await page.shows("tea", "one")
            assert page.session == terminal.session
            await terminal.says("milk")
            await pause.reached()
            grown = await page.shown(GrowingFrame)
            assert grown == GrowingFrame("tw", begins=True)
            assert page.waiting == ["milk"]
            pause.over()
            await page.shows("tea", "one", "milk", "two")
            assert page.had(NoticeFrame) == []


async def test_what_waits_is_shown_before_anything_is_answered(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedAgent("one", Doom.HANGS)) as here, here.terminal() as terminal:
        await terminal.opened()
        await terminal.says("tea")
        await terminal.shows("tea", "one")
        async with here.page() as page:
            await page.shows("tea", "one")
            await terminal.says("milk")
            await page.until(lambda frame: page.waiting == ["milk"])


async def test_growing_text_comes_before_its_entries_and_never_after(tmp_path: Path) -> None:
    pauses = [Pause() for _ in range(5)]
    agent = ScriptedAgent(*(script for pause in pauses for script in (["1", pause, *" 2" * 300], ["over"])))
    async with house(tmp_path, agent) as here, here.page() as page:
        await page.opened()
        for pause in pauses:
            page.seen.clear()
            await page.says("count")
            await page.until(lambda frame: frame == GrowingFrame("1", begins=True))
            pause.over()
            await page.until(said)
            assert page.session is not None
            here.gateway.watches.tell(page.session.id, Growing(1, "late"))
            await page.says("more")
            await page.until(said)
            first, last = (i for i, frame in enumerate(page.seen) if said(frame))
            assert [f for f in page.seen[first:last] if isinstance(f, GrowingFrame) and f.text != "over"] == []


async def test_a_window_that_comes_back_is_shown_everything_again(tmp_path: Path) -> None:
    pause = Pause()
    async with house(tmp_path, ScriptedAgent("one", ["tw", pause, "o"])) as here:
        cookie = here.cookie()
        async with here.page(cookie) as page:
            await page.says("tea")
            await page.shows("tea", "one")
            await page.says("milk", "m2")
            await pause.reached()
        pause.over()
        async with here.page(cookie) as page:
            # It can't know whether this arrived, so it says it again under the same id.
            await page.says("milk", "m2")
            await page.until(lambda frame: frame == AcceptedFrame("m2"))
            await page.shows("tea", "one", "milk", "two")


async def test_new_shows_an_empty_transcript_in_every_window_on_the_lane(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here:
        cookie = here.cookie()
        async with here.page(cookie) as one, here.page(cookie) as two:
            await one.says("tea")
            await one.shows("tea", "tea")
            await two.shows("tea", "tea")
            await one.says("/new")
            await one.shows()
            await two.shows()
            told = await one.shown(NoticeFrame)
            assert "new session" in told.text


async def test_a_notice_stays_when_nothing_is_open(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here, here.page() as page:
        await page.opened()
        await page.says("/help")
        await page.shown(NoticeFrame)
        await page.says("tea")
        await page.shows("tea", "tea")
        assert page.seen.count(TranscriptFrame(None)) == 1


async def test_a_new_title_is_told_to_every_window(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here, here.terminal() as terminal:
        await terminal.says("tea")
        await terminal.shows("tea", "tea")
        async with here.page() as page:
            await page.opened()
            await terminal.says("/title Tea")
            await page.until(lambda frame: page.session is not None and page.session.title == "Tea")
            assert page.transcript == ["tea", "tea"]


async def test_what_is_taken_back_goes_from_every_window(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here, here.terminal() as terminal:
        await terminal.says("tea")
        await terminal.shows("tea", "tea")
        await terminal.says("milk")
        async with here.page() as page:
            await page.shows("tea", "tea", "milk", "milk")
            await terminal.says("/undo")
            await terminal.shows("tea", "tea")
            await page.shows("tea", "tea")


async def test_an_answer_in_a_session_that_was_left_is_shown_where_it_was_asked(tmp_path: Path) -> None:
    pause = Pause()
    async with house(tmp_path, ScriptedAgent("one", ["tw", pause, "o"])) as here, here.page() as page:
        await page.says("tea")
        await page.shows("tea", "one")
        await page.says("milk")
        await pause.reached()
        await page.says("/new")
        await page.shown(TranscriptFrame, lambda frame: not frame.entries)
        page.seen.clear()
        pause.over()
        told = await page.shown(NoticeFrame, lambda frame: "two" in frame.text)
        assert told.text == "two\n\n(This is from the session before.)"
        assert page.transcript == []


async def test_an_answer_that_was_shown_is_not_shown_again_after_a_move(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here, here.terminal("ann") as terminal:
        await terminal.says("tea")
        await terminal.shows("tea", "tea")
        await terminal.says("/new")
        await terminal.shown(NoticeFrame)
        address = Address(here.terminals.platform, here.terminals.account, chat="ann")
        left = next(entry.tip.session for frame in terminal.seen for entry in said(frame))
        await here.terminals.send(Delivery("d1", address, left, 2, "tea", "k1"))
        await terminal.says("milk")
        await terminal.shows("milk", "milk")
        assert [notice for notice in terminal.had(NoticeFrame) if notice.text == "tea"] == []


async def test_a_turn_that_is_stopped_waits_no_longer(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedAgent(["begun", Doom.HANGS])) as here, here.page() as page:
        await page.says("tea")
        await page.shown(GrowingFrame)
        await page.says("/stop")
        await page.shown(WaitingFrame, lambda frame: not frame.turns)


async def test_that_a_turn_was_stopped_is_said_once(tmp_path: Path) -> None:
    agent = ScriptedAgent([Doom.HANGS])
    async with house(tmp_path, agent) as here, here.page() as page:
        await page.says("tea")
        await agent.asked()
        await page.says("/stop")
        await page.shown(WaitingFrame, lambda frame: not frame.turns)
        await page.says("/who")
        await page.shown(NoticeFrame, lambda frame: "You are" in frame.text)
        told = [notice.text for notice in page.had(NoticeFrame)]
        told += [entry.text for frame in page.seen for entry in said(frame)]
        assert told.count("(Stopped.)") == 1


async def test_only_the_persons_own_sessions_are_listed_found_and_resumed(tmp_path: Path) -> None:
    platform = Telegram()
    bob = platform.person("Bob")
    chat = platform.dm(bob)
    async with house(tmp_path, EchoAgent(), platform.adapter()) as here, platform.reaching(here.gateway.webhooks()):
        bob.says("bobs secret tea", chat)
        await chat.reads("bobs secret tea")
        [theirs] = [standing.session for standing in await here.gateway.store.lanes()]
        async with here.page() as page:
            await page.opened()
            assert page.transcript == []
            await page.says("my own tea")
            await page.shows("my own tea", "my own tea")
            await here.gateway.store.index()
            await page.sends(SessionsRequest())
            listed = await page.shown(SessionsFrame)
            await page.sends(SearchRequest("tea"))
            found = await page.shown(FoundFrame)
            assert theirs
            await page.sends(ResumeRequest(theirs))
            refused = await page.shown(RefusedFrame)
            await page.sends(ResumeRequest(SessionId("nonsense")))
            unknown = await page.shown(RefusedFrame)
            await page.says("more")
            await page.shows("my own tea", "my own tea", "more", "more")
    assert [session.text for session in listed.sessions] == ["my own tea"]
    assert [session.text for session in found.sessions] == ["my own tea"]
    assert refused.text.replace(theirs, "nonsense") == unknown.text


async def test_resuming_turns_every_window_on_the_lane(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here:
        cookie = here.cookie()
        async with here.page(cookie) as one, here.page(cookie) as two:
            await one.says("tea")
            await one.shows("tea", "tea")
            assert one.session is not None
            tea = one.session.id
            await one.says("/new milk")
            await one.shows("milk", "milk")
            await two.shows("milk", "milk")
            await one.sends(ResumeRequest(tea))
            await one.shows("tea", "tea")
            await two.shows("tea", "tea")
            await two.says("sugar")
            await one.shows("tea", "tea", "sugar", "sugar")


async def test_a_window_that_reads_nothing_holds_nobody_up(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedAgent("tea", ["word " * 100] * 20)) as here, here.terminal() as terminal:
        await terminal.says("say tea")
        await terminal.shows("say tea", "tea")
        async with here.page() as page:
            await page.opened()
            await terminal.says("write")
            await terminal.until(said)
            await page.until(said)
        assert page.transcript == terminal.transcript


async def test_a_new_window_begins_on_the_last_session_that_wasnt_closed(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here:
        async with here.terminal() as terminal:
            await terminal.opened()
            await terminal.says("tea")
            await terminal.shows("tea", "tea")
            await terminal.says("/new milk")
            await terminal.shows("milk", "milk")
            for typed in ("/sessions", "/sessions close 2"):
                await terminal.says(typed)
                await terminal.shown(NoticeFrame)
        async with here.page() as page:
            await page.shows("tea", "tea")
            assert page.had(NoticeFrame) == []


async def test_every_message_is_answered_once_whatever_it_was(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedAgent("one", ["begun", Doom.HANGS])) as here, here.page() as page:
        tea = await page.says("tea")
        answered = await page.shown(AnsweredFrame)
        assert (answered.id, answered.said, answered.state) == (tea, (ShownAnswer("one"),), TurnState.ANSWERED)
        assert answered.session == page.session
        title = await page.says("/title Tea")
        said = (ShownAnswer("This session is called Tea."),)
        assert await page.shown(AnsweredFrame) == AnsweredFrame(title, said)
        milk = await page.says("milk")
        await page.shown(GrowingFrame)
        # It says nothing itself: what it stops does.
        stop = await page.says("/stop")
        both = {frame.id: frame for frame in [await page.shown(AnsweredFrame), await page.shown(AnsweredFrame)]}
        assert both[stop] == AnsweredFrame(stop)
        assert (both[milk].turn, both[milk].state) == (2, TurnState.STOPPED)
        await page.says("tea", tea)
        assert (await page.shown(AnsweredFrame)).said == (ShownAnswer("one"),)


async def test_what_was_closed_is_opened_again_from_a_list_as_by_the_command(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here, here.page() as page:
        await page.says("tea")
        await page.shows("tea", "tea")
        assert page.session is not None
        tea, store = page.session.id, here.gateway.store
        await page.says("/new milk")
        await page.shows("milk", "milk")
        await store.close_session(tea, await store.person(HOSTS[0]))
        await page.sends(ResumeRequest(tea))
        await page.shows("tea", "tea")
        await page.says("sugar")
        await page.shows("tea", "tea", "sugar", "sugar")
        assert page.had(NoticeFrame) + page.had(RefusedFrame) == []


async def test_what_is_said_before_a_window_is_open_is_said_in_the_session_that_it_opens_on(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here:
        store = here.gateway.store
        async with here.terminal() as terminal:
            await terminal.says("tea")
            await terminal.shows("tea", "tea")
        tea = await store.bound(Lane(Address(TERMINAL, ACCOUNT, chat="ann")))
        frames, asked = asyncio.Queue[Shown](), OpenRequest()
        window = Window(here.gateway, here.terminals, Seat("ben", "ben"), frames.put, time.time)
        await window.open(asked)
        saying = asyncio.create_task(window.say(SayRequest("1", "milk")))
        showing = asyncio.create_task(window.show(asked))
        try:
            await saying
            now = await store.bound(window.lane)
        finally:
            showing.cancel()
            await asyncio.wait([showing])
        assert now is not None
        assert tea is not None
        assert now.id == tea.id
        assert not any(isinstance(frames.get_nowait(), NoticeFrame) for _ in range(frames.qsize()))


async def test_a_window_that_takes_nothing_keeps_only_the_last_of_each_kind(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here:
        stuck = asyncio.Event()

        async def takes_nothing(_: Shown) -> None:
            stuck.set()
            await asyncio.Event().wait()

        window = Window(here.gateway, here.terminals, Seat("ben", "ben"), takes_nothing, time.time)
        await window.open(OpenRequest())
        showing = asyncio.create_task(window.show(OpenRequest()))
        await stuck.wait()
        for round_ in range(2):
            for n in range(100):
                for sight in (Arrived(), Growing(1, str(n)), Changed()):
                    here.gateway.watches.tell(window.lane, sight)
            window._see(Delivery("1", window.lane.address, "", 0, f"notice {round_}", f"key {round_}"))
        kinds = [type(sight) for sight in window._sights]
        assert kinds == 2 * [Arrived, Growing, Changed, Delivery]
        assert [sight.text for sight in window._sights if isinstance(sight, Growing)] == ["99", "99"]
        showing.cancel()
        await asyncio.wait([showing])


async def test_two_windows_that_open_a_lane_at_once_say_nothing_of_each_other(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here:
        async with here.terminal() as terminal:
            await terminal.says("tea")
            await terminal.shows("tea", "tea")
        cookie = here.cookie()
        async with here.page(cookie) as one, here.page(cookie) as two:
            for page in (one, two):
                await page.shows("tea", "tea")
                assert page.had(NoticeFrame) == []


async def test_a_window_opens_by_itself_on_nothing_that_others_read(tmp_path: Path) -> None:
    async with house(tmp_path, EchoAgent()) as here:
        store = here.gateway.store
        ann = await store.person(HOSTS[0])
        async with here.terminal() as terminal:
            await terminal.opened()
            await terminal.says("tea")
            await terminal.shows("tea", "tea")
            await terminal.says("/new milk")
            await terminal.shows("milk", "milk")
        milk = await store.bound(Lane(Address(TERMINAL, ACCOUNT, chat="ann")))
        assert milk is not None
        club = await store.lane(Place(Address("wall", "one", chat="club"), Kind.GROUP, "The Club"), ann)
        await store.move(Resume(club, milk.id, consent=Consent.GIVEN), ann)
        async with here.terminal() as terminal:
            await terminal.shows("tea", "tea")
            told = await terminal.told(f"/resume {milk.id}")
            assert told.endswith("“milk”. Everyone in The Club reads this session. /branch goes on alone.")
        async with here.page() as page:
            await page.shows("tea", "tea")


async def test_a_question_is_a_card_in_every_window_of_its_person_until_one_answers(tmp_path: Path) -> None:
    async def travels(work: Work) -> str:
        return f"Off to {await work.ask('Where to?', ('Berlin', 'Paris'))}."

    async with house(tmp_path, as_agent(travels)) as here, here.page() as page, here.terminal() as terminal:
        await page.opened()
        await terminal.opened()
        await page.says("a trip please")
        [question] = (await page.shown(QuestionsFrame)).questions
        assert (question.words, question.choices, question.here) == ("Where to?", ("Berlin", "Paris"), True)
        [elsewhere] = (await terminal.shown(QuestionsFrame)).questions
        assert (elsewhere.id, elsewhere.here) == (question.id, False)
        await terminal.says(f"/answer {question.id} paris")
        assert (await page.shown(QuestionsFrame)).questions == ()
        assert (await terminal.shown(QuestionsFrame)).questions == ()
        await page.shows("a trip please", "Off to Paris.")


async def test_a_window_remembers_what_it_showed_of_so_many_sessions(tmp_path: Path) -> None:
    """And of those that it showed last."""
    async with house(tmp_path, EchoAgent()) as here:
        address = Address(TERMINAL, ACCOUNT, chat="ann")
        view = WindowView(here.gateway.store.driver, OpenRequest(), frozenset(), address)
        author = Author(Role.PERSON)
        for n in range(MOST_SESSIONS + 100):
            for session in ("first", f"s{n}"):
                view._tell([Entry(Tip(SessionId(session), 7), None, author, (), 1.0)])
            assert not view.shows("never", 1)
    assert len(view._told) == MOST_SESSIONS
    assert (view.shows("first", 7), view.shows("first", 8), view.shows("s0", 7)) == (True, False, False)
