"""The prompt of a turn: what an agent gets on platforms of every shape, with and without redaction."""

import asyncio
import re
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from msgspec.structs import replace

from segue import Kind, Place, open_store
from segue.changes.sessions import exports
from segue.core.commands import BY_NAME
from segue.core.contracts.agents import Agent, NoFiles, Participant
from segue.core.exports.jsonl import Line, Transcript
from segue.core.lanes import Address
from segue.core.messages import Text
from segue.core.prompt.envelopes import Voices, by_then, read, words
from segue.core.settings import AccountSettings, Busy, Redaction
from segue.core.transcripts import Author, Role
from segue.runtime.gateway import Gateway
from segue.runtime.retrying import Patient
from segue.runtime.turns.prompt import Prompt
from segue.testing.agents import Pause, ScriptedAgent, SteeredAgent
from segue.testing.chats import Someone, To
from segue.testing.personas import Persona, Slack, Telegram, WhatsApp
from tests.in_process import gateway_on

HIDDEN = Redaction.PSEUDONYMS


def running(
    path: Path,
    platform: Persona,
    agent: Agent,
    redaction: Redaction = Redaction.NONE,
    busy: Busy = Busy.QUEUE,
    hosts: tuple[Someone, ...] = (),
) -> AbstractAsyncContextManager[Gateway]:
    """A gateway with a home on its platform and one on a platform that isn't connected."""
    home = Place(Address(platform.name, platform.account, "", "4915122222222"), Kind.GROUP, "Home")
    account = AccountSettings(public=True, home=home)
    owners = tuple(someone.identity for someone in hosts)
    return gateway_on(path, agent, platform, account=account, hosts=owners, redaction=redaction, busy=busy, grace=0.1)


async def test_the_section_names_the_person_what_can_be_done_and_the_homes(tmp_path: Path) -> None:
    platform, agent = Telegram(), ScriptedAgent("hi")
    ann = platform.person("Ann")
    async with running(tmp_path, platform, agent, hosts=(ann,)):
        ann.says("hello", platform.dm(ann))
        work = await agent.asked()
    account = f'"{platform.name}.{platform.account}"'
    assert f'- Person: "Ann", id "{ann.identity.user}"' in work.context
    assert f"- {account} can: open threads, show an answer while it is written, show that you write" in work.context
    assert f"- {account} can't: " in work.context
    assert "search a chat's history, pin messages, manage members, see who is there" in work.context
    typed = re.findall(r"/([a-z]+)", work.context.partition("People can type commands")[2].partition("\n")[0])
    assert typed
    assert set(typed) <= set(BY_NAME)
    # The same as fields.
    assert work.person == Participant(work.asked[0].author.person, "Ann", ann.identity, host=True)
    assert work.place == platform.dm(ann).place
    assert work.readers == (work.place,)
    assert [(able.platform, able.threads, able.edits) for able in work.abilities] == [(platform.name, True, True)]
    assert f'- Home of {account}: a group "Home", on {account}, chat "4915122222222"' in work.context
    assert f"{account} (its home)" in work.context
    assert work.voices is Voices.ONE


async def test_platforms_and_homes_are_told_in_the_hosts_own_private_sessions_only(tmp_path: Path) -> None:
    platform, agent = Telegram(), ScriptedAgent(otherwise=lambda work: ["hi"])
    ann, bob = platform.person("Ann"), platform.person("Bob")
    places = ((ann, platform.dm(ann)), (bob, platform.dm(bob)), (ann, platform.group("lobby")))
    async with running(tmp_path, platform, agent, hosts=(ann,)):
        for who, where in places:
            who.says("hello", where, to=To.AGENT)
            await where.reads("hi")
    told = ["Configured platforms" in work.context and "4915122222222" in work.context for work in agent.works]
    assert told == [True, False, False]
    assert not any("4915122222222" in work.context for work in agent.works[1:])


async def test_ids_that_mentions_need_are_told_whatever_is_redacted(tmp_path: Path) -> None:
    platform, agent = Slack(), ScriptedAgent("hi")
    ann = platform.person("Ann")
    async with running(tmp_path, platform, agent, HIDDEN):
        ann.says("hello", platform.dm(ann))
        work = await agent.asked()
    assert f'- Person: "Ann", id "{ann.identity.user}"' in work.context
    assert work.person is not None
    assert work.person.identity == ann.identity
    assert 'write "<@ID>"' in work.context


async def test_ids_that_nobody_needs_are_hidden_and_known_again(tmp_path: Path) -> None:
    platform, agent = WhatsApp(), ScriptedAgent("hi")
    ann = platform.person("Ann")
    async with running(tmp_path, platform, agent, HIDDEN, hosts=(ann,)) as gateway:
        ann.says("hello", platform.dm(ann))
        work = await agent.asked()
        assert not any(id in repr(work) for id in (*ann.ids, "4915122222222"))
        assert work.person is not None
        assert work.place is not None
        assert work.person.identity is not None
        assert work.person.identity.user.startswith("hidden-")
        assert work.place.address.chat.startswith("hidden-")
        prompt = Prompt(Patient(gateway.store.driver), {}, gateway.settings, lambda: 0.0, NoFiles())
        hidden = work.context.partition("- Person: ")[2].split('"')[3]
        assert hidden.startswith("hidden-")
        assert await prompt.real(f"whatsapp:{hidden}", work.session) == f"whatsapp:{ann.identity.user}"
        assert await prompt.real(hidden, work.session) == await prompt.real(ann.identity.user, work.session)
        home = work.context.partition("- Home of ")[2].partition("chat ")[2].split('"')[1]
        assert home.startswith("hidden-")
        assert await prompt.real(f"whatsapp:{home}", work.session) == "whatsapp:4915122222222"


async def test_what_is_said_meanwhile_is_hidden_too(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    agent = SteeredAgent([pause, "hi"])
    ann = platform.person("Ann")
    async with running(tmp_path, platform, agent, HIDDEN, Busy.STEER):
        dm = platform.dm(ann)
        ann.says("hello", dm)
        await pause.reached()
        ann.says("and more", dm)
        [more] = await agent.told()
        pause.over()
        await dm.reads("hi")
    assert more.text == "and more"
    assert more.source == agent.works[0].asked[0].source
    assert not any(id in repr(more) for id in ann.ids)


async def test_a_compaction_rewrites_the_section_and_a_turn_does_not(tmp_path: Path) -> None:
    platform, agent = Telegram(), ScriptedAgent("one", "two", "three", "four")
    ann = platform.person("Ann")
    async with running(tmp_path, platform, agent, hosts=(ann,)) as gateway:
        dm = platform.dm(ann)
        for n, answer in enumerate(("one", "two", "three", "four")):
            if n == 2:
                person = await gateway.store.person(ann.identity)
                [session] = await gateway.store.sessions(person)
                assert session.tip is not None
                await gateway.store.set_home(Place(Address("signal", "main", "", "there"), Kind.GROUP), person)
                await gateway.store.compress(session.id, "all of it", session.tip, person)
            ann.says(f"message {n}", dm)
            await dm.reads(answer)
    before, same, after, still = (work.context for work in agent.works)
    assert before == same
    assert after == still != before
    assert '"signal.main" (its home)' in after


async def test_people_apart_in_a_group_are_heard_as_they_speak(tmp_path: Path) -> None:
    platform, agent = Telegram(), ScriptedAgent("one", "two")
    ann, bob = platform.person("Ann"), platform.person("Bob")
    async with running(tmp_path, platform, agent):
        group = platform.group("The Club")
        ann.says("I am ann", group)
        await group.reads("one")
        bob.says("I am bob", group)
        await group.reads("two")
    assert [words(work.asked[0], work.voices) for work in agent.works] == ["I am ann", "I am bob"]
    assert len({work.session for work in agent.works}) == 2


async def test_two_people_who_were_in_one_session_stay_apart_wherever_it_goes_on(tmp_path: Path) -> None:
    platform, agent = Telegram(), ScriptedAgent("one", "two", "three")
    ann, bob = platform.person("Ann"), platform.person("Bob")
    async with running(tmp_path, platform, agent):
        group = platform.group("The Club")
        topic = ann.opens_thread("Plans", group)
        ann.says("I am ann", topic)
        await topic.reads("one")
        bob.says("I am bob", topic)
        await topic.reads("two")
        dm = platform.dm(ann)
        ann.says("/title Plans", topic)
        await topic.reads_some(3)
        ann.says("/new", topic)
        await topic.reads_some(4)
        ann.says("/resume Plans", dm)
        await dm.reads_some(1)
        ann.says("hello again", dm)
        work = await agent.asked(3)
    heard = [read(words(entry, work.voices)) for entry in work.transcript if entry.author.person]
    assert [(e.name, e.text) for e in heard] == [("Ann", "I am ann"), ("Bob", "I am bob")]
    assert work.voices is Voices.SEVERAL


async def test_one_person_in_a_second_place_is_still_one_voice(tmp_path: Path) -> None:
    platform, agent = Telegram(), ScriptedAgent("one", "two")
    ann = platform.person("Ann")
    async with running(tmp_path, platform, agent):
        dm = platform.dm(ann)
        ann.says("I am ann", dm)
        await dm.reads("one")
        ann.says("/title Plans", dm)
        await dm.reads_some(2)
        topic = ann.opens_thread("Elsewhere", dm)
        ann.says("/resume Plans", topic)
        await topic.reads_some(1)
        ann.says("hello again", topic)
        first, second = await agent.asked(1), await agent.asked(2)
    assert (first.voices, second.voices) == (Voices.ONE, Voices.ONE)
    sent = [words(item, voices) for item, voices in by_then((*second.transcript, *second.asked), second.voices)]
    assert [line for line in sent if not line.startswith('{"gateway":')] == ["I am ann", "one", "hello again"]
    assert [place.address for place in second.readers] == [topic.address, dm.address]
    assert second.place == second.readers[0]
    assert second.context == first.context, "the topic is told in the transcript"
    assert second.asked[0].source.address != second.transcript[1].source.address


async def test_a_question_has_the_time_at_which_it_was_said(tmp_path: Path) -> None:
    platform, agent, pause = Telegram(), ScriptedAgent(), Pause()
    agent.will(pause, "one")
    ann = platform.person("Ann")
    async with running(tmp_path, platform, agent):
        dm = platform.dm(ann)
        ann.says("I am ann", dm)
        await pause.reached()
        await asyncio.sleep(0.2)
        pause.over()
        await dm.reads("one")
    async with await open_store(tmp_path / "segue.db") as store:
        [session] = await store.sessions(await store.person(ann.identity))
        question, answer = (await store.path(session.id))[-2:]
    assert answer.at - question.at >= 0.2


async def test_one_person_under_two_names_and_none_is_one_voice(tmp_path: Path) -> None:
    """What an import brought was said by somebody who turns out to be the host, or by nobody knows whom."""
    platform, agent = Telegram(), ScriptedAgent("hi")
    ann, elsewhere = platform.person("Ann"), platform.person("Ann")
    dm = platform.dm(ann)
    said = [
        Line(1, None, Author(Role.PERSON), (Text("long ago"),), 1.0),
        Line(2, 1, Author(Role.PERSON), (Text("yesterday"),), 2.0),
    ]
    async with await open_store(tmp_path / "segue.db") as store:
        await store.person(elsewhere.identity, "Ann")
        once = await store.person(ann.identity, "Ann")
        said[1] = replace(said[1], author=Author(Role.PERSON, once.id, "Ann"))
        brought = Transcript(1.0, 2.0, tuple(said), 2, "Trip")
        await store.driver.write(exports.bring, brought, once.id, store.new_session_id(), 3.0)
    async with running(tmp_path, platform, agent, hosts=(elsewhere, ann)):
        ann.says("/resume Trip", dm)
        await dm.reads_some(1)
        ann.says("hello", dm)
        work = await agent.asked()
    assert [entry.text for entry in work.transcript if entry.text] == ["long ago", "yesterday"]
    assert work.voices is Voices.ONE
