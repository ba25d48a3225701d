"""A test of the tests: for every promise of the contracts there is an adapter or agent that breaks it and is caught."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

from segue.core.contracts.adapters import Accept, Intake
from segue.core.contracts.agents import AgentState, Event, Work
from segue.core.lanes import Address, Kind
from segue.core.messages import Arrival, Delivery, Notice, Text, ToolCall, ToolResult
from segue.core.transcripts import Draft
from segue.errors import Invalid, StoreError
from segue.testing import contracts, waits
from segue.testing.agents import EchoAgent, said
from segue.testing.asgi import Application
from segue.testing.contracts import (
    AgentContract,
    ChangeContract,
    DeletionContract,
    EditContract,
    QuoteContract,
    RecallContract,
    RenameContract,
    StateContract,
    SteerContract,
    StepContract,
    ThreadContract,
    ToolContract,
    TypingContract,
    WebhookContract,
    WhisperContract,
)
from segue.testing.fake_harness import FakeHarness
from segue.testing.faults import ApiError
from segue.testing.ledger import Message
from segue.testing.personas import (
    Discord,
    DiscordAdapter,
    Feishu,
    FeishuAdapter,
    Matrix,
    MatrixAdapter,
    Persona,
    Signal,
    SignalAdapter,
    Slack,
    SlackAdapter,
    Telegram,
    TelegramAdapter,
)
from segue.testing.wire import Update

Check = Callable[..., Awaitable[None]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never comes needn't be waited for long."""
    monkeypatch.setattr(waits, "PATIENCE", 0.2)


numbers = itertools.count()


# Broken adapters


class AnswersItself(MatrixAdapter):
    async def take(self, body: bytes, accept: Accept) -> None:
        await super().take(body.replace(b'"agent":true', b'"agent":false'), accept)


class ForgetsIds(MatrixAdapter):
    async def arrival(self, update: Update) -> Arrival:
        fresh = f"m{next(numbers)}"
        return msgspec.structs.replace(await super().arrival(update), message=fresh, seen_as=())


class NamesNobody(MatrixAdapter):
    async def arrival(self, update: Update) -> Arrival:
        known = update.by
        return await super().arrival(msgspec.structs.replace(update, by=msgspec.structs.replace(known, id="x")))


class TakesGroupsForPrivate(MatrixAdapter):
    async def arrival(self, update: Update) -> Arrival:
        return await super().arrival(msgspec.structs.replace(update, kind=Kind.DM))


class TakesAllChatsForOne(MatrixAdapter):
    async def address(self, update: Update) -> Address:
        return self.there.address("the one", update.thread)


class DropsThreads(MatrixAdapter):
    async def address(self, update: Update) -> Address:
        return (await super().address(update)).outside


class TakesForeignAccounts(MatrixAdapter):
    async def arrival(self, update: Update) -> Arrival:
        arrival = await super().arrival(update)
        identity = msgspec.structs.replace(arrival.speaker.identity, account="another")
        return msgspec.structs.replace(arrival, speaker=msgspec.structs.replace(arrival.speaker, identity=identity))


class AcknowledgesFirst(MatrixAdapter):
    async def run(self, intake: Intake) -> None:
        async for parcel in self.there.feed.parcels():
            self.there.feed.acknowledge(parcel)
            await self.take(parcel.body, intake.accept)


class SwallowsTrouble(MatrixAdapter):
    async def take(self, body: bytes, accept: Accept) -> None:
        try:
            await super().take(body, accept)
        except StoreError:
            return


class MixesOrder(MatrixAdapter):
    async def run(self, intake: Intake) -> None:
        held = None
        async for parcel in self.there.feed.parcels():
            if held is None and b"number 3" in parcel.body:
                held = parcel
                continue
            await self.take(parcel.body, intake.accept)
            if held is not None and b"number 4" in parcel.body:
                await self.take(held.body, intake.accept)


class SaysNothing(MatrixAdapter):
    async def run(self, intake: Intake) -> None:
        async for parcel in self.there.feed.parcels():
            await self.take(parcel.body, intake.accept)


class UnderstandsGarbage(MatrixAdapter):
    async def take(self, body: bytes, accept: Accept) -> None:
        if b"event" not in body or b'"event": 7' in body:
            body = self.there.told[-1].replace(b"plain words", b"garbage")
        await super().take(body, accept)


class StopsAtGarbage(MatrixAdapter):
    async def take(self, body: bytes, accept: Accept) -> None:
        msgspec.json.decode(body, type=Update)
        await super().take(body, accept)


class SendsUnderNewKeys(MatrixAdapter):
    async def send(self, delivery: Delivery) -> str:
        return await super().send(msgspec.structs.replace(delivery, key=f"{delivery.key}{next(numbers)}"))


class ReturnsOtherIds(MatrixAdapter):
    async def send(self, delivery: Delivery) -> str:
        return f"{await super().send(delivery)}!"


class CutsTexts(MatrixAdapter):
    async def send(self, delivery: Delivery) -> str:
        return await super().send(delivery.with_text(delivery.text[:100]))


class ClaimsTooMuch(SlackAdapter):
    def __init__(self, platform: Slack) -> None:
        super().__init__(platform)
        self.fits = lambda text: len(text) <= 50_000


class CountsOnlyLetters(DiscordAdapter):
    def __init__(self, platform: Discord) -> None:
        super().__init__(platform)
        self.fits = lambda text: sum(map(str.isalnum, text)) <= platform.longest


class SendsAnywhere(MatrixAdapter):
    async def send(self, delivery: Delivery) -> str:
        try:
            return await super().send(delivery)
        except Exception as error:
            if isinstance(error.__cause__, ApiError):
                return "sent, I suppose"
            raise


class FindsNothing(SlackAdapter):
    async def find(self, delivery: Delivery) -> str | None:
        return None


class FindsAnything(SlackAdapter):
    async def find(self, delivery: Delivery) -> str | None:
        messages: list[Message] = self.there.at(delivery.address).messages
        return messages[-1].id if messages else None


class DoublesText(TelegramAdapter):
    async def edit(self, delivery: Delivery) -> None:
        await self.send(delivery)


class DoublesTwice(SignalAdapter):
    async def send(self, delivery: Delivery) -> str:
        await super().send(delivery)
        return await super().send(delivery)


class OpensAgain(MatrixAdapter):
    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        return await super().open_thread(parent, title, f"{key}{next(numbers)}")


class OpensNothing(MatrixAdapter):
    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        return parent


class SendsBesideThreads(MatrixAdapter):
    async def send(self, delivery: Delivery) -> str:
        return await super().send(msgspec.structs.replace(delivery, address=delivery.address.outside))


class EditsTheFirst(MatrixAdapter):
    async def edit(self, delivery: Delivery) -> None:
        first = self.there.at(delivery.address).messages[0]
        await super().edit(delivery.with_message(first.id))


class GrowsByMessages(MatrixAdapter):
    async def grow(self, delivery: Delivery, steps: Sequence[str]) -> bool:
        more = msgspec.structs.replace(delivery, text=f"{delivery.text} {steps}", key=f"grown{next(numbers)}")
        await self.send(more)
        return True


class TellsTitles(MatrixAdapter):
    async def rename(self, thread: Address, title: str) -> None:
        await self.send(Delivery("t", thread, "", 0, title, f"title{next(numbers)}"))


class TypesOutLoud(MatrixAdapter):
    async def typing(self, address: Address) -> None:
        await self.send(Delivery("t", address, "", 0, "(writing)", f"typing{next(numbers)}"))


class LosesQuotes(MatrixAdapter):
    async def arrival(self, update: Update) -> Arrival:
        return await super().arrival(msgspec.structs.replace(update, quotes=""))


class TakesEditsForRedeliveries(SignalAdapter):
    async def arrival(self, update: Update) -> Arrival:
        return msgspec.structs.replace(await super().arrival(update), message=update.message, seen_as=())


class LosesEdits(SignalAdapter):
    async def arrival(self, update: Update) -> Arrival:
        return msgspec.structs.replace(await super().arrival(update), edits="")


class ForgetsWhose(SlackAdapter):
    async def send(self, delivery: Delivery) -> str:
        return await super().send(msgspec.structs.replace(delivery, only=""))


class LosesDeletions(MatrixAdapter):
    async def arrival(self, update: Update) -> Arrival:
        return msgspec.structs.replace(await super().arrival(update), deletes="")


class FetchesFirst(MatrixAdapter):
    async def arrival(self, update: Update) -> Arrival:
        return (await super().arrival(update)).with_files(await self.fetch(update.files))


class LosesFiles(MatrixAdapter):
    async def arrival(self, update: Update) -> Arrival:
        return await super().arrival(msgspec.structs.replace(update, files=()))


class BelievesAnybody(FeishuAdapter):
    def webhook(self, accept: Accept) -> Application:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await self.take((await receive())["body"], accept)
            await send({"type": "http.response.start", "status": 200})

        return app


class Breaking:
    """A persona whose adapter is broken."""

    def __init__(self, platform: Persona, adapter: Callable[[Any], Any]) -> None:
        self.harness = FakeHarness(platform)
        self.harness.adapter = lambda: adapter(platform)  # type: ignore[method-assign]


ARRIVES = ThreadContract.test_an_arrival_tells_where_it_is_from_and_who_wrote_what
APART = ThreadContract.test_people_chats_and_messages_are_told_apart
CRASH = ThreadContract.test_a_crash_after_sending_does_what_the_sending_class_says
GARBAGE = ThreadContract.test_what_cannot_be_understood_is_no_arrival_and_stops_nothing
REPLY = ThreadContract.test_a_reply_comes_from_the_thread_that_was_opened
CHANGE = ChangeContract.test_a_change_names_what_it_changes_and_is_not_taken_for_it
ADAPTERS: list[tuple[type[Persona], Callable[[Any], Any], Check]] = [
    (Matrix, AnswersItself, ThreadContract.test_the_agent_never_hears_itself),
    (Matrix, AnswersItself, ThreadContract.test_opening_a_thread_is_no_arrival),
    (Matrix, AnswersItself, EditContract.test_an_edit_replaces_the_text_and_nothing_else),
    (Matrix, ForgetsIds, ARRIVES),
    (Matrix, ForgetsIds, ThreadContract.test_a_redelivery_is_told),
    (Matrix, ForgetsIds, ThreadContract.test_what_was_accepted_but_not_acknowledged_comes_again),
    (Matrix, NamesNobody, APART),
    (Matrix, TakesGroupsForPrivate, ARRIVES),
    (Matrix, TakesAllChatsForOne, ARRIVES),
    (Matrix, TakesAllChatsForOne, APART),
    (Matrix, TakesForeignAccounts, ARRIVES),
    (Matrix, DropsThreads, REPLY),
    (Matrix, DropsThreads, CHANGE),
    (Matrix, AcknowledgesFirst, ThreadContract.test_what_was_accepted_but_not_acknowledged_comes_again),
    (Matrix, AcknowledgesFirst, ThreadContract.test_what_could_not_be_kept_comes_again),
    (Matrix, SwallowsTrouble, ThreadContract.test_what_could_not_be_kept_comes_again),
    (Matrix, MixesOrder, ThreadContract.test_order_is_kept),
    (Matrix, FetchesFirst, ThreadContract.test_the_file_of_a_stranger_is_not_fetched),
    (Matrix, LosesFiles, ThreadContract.test_the_file_of_a_stranger_is_not_fetched),
    (Matrix, LosesFiles, ThreadContract.test_a_file_is_kept_whole),
    (Matrix, SaysNothing, ThreadContract.test_it_says_that_it_is_well_before_anybody_writes),
    (Matrix, UnderstandsGarbage, GARBAGE),
    (Matrix, StopsAtGarbage, GARBAGE),
    (Matrix, SendsUnderNewKeys, CRASH),
    (Slack, FindsNothing, CRASH),
    (Slack, FindsAnything, CRASH),
    (Telegram, DoublesText, CRASH),
    (Signal, DoublesTwice, CRASH),
    (Matrix, ReturnsOtherIds, ThreadContract.test_what_is_sent_can_be_read),
    (Matrix, CutsTexts, ThreadContract.test_the_longest_text_is_taken_whole),
    (Matrix, CutsTexts, ThreadContract.test_a_long_text_is_read_piece_by_piece),
    (Slack, ClaimsTooMuch, ThreadContract.test_the_longest_text_is_taken_whole),
    (Discord, CountsOnlyLetters, ThreadContract.test_what_fits_is_taken_with_its_marks),
    (Matrix, SendsAnywhere, ThreadContract.test_where_nobody_listens_nothing_is_tried_again),
    (Matrix, OpensAgain, ThreadContract.test_the_same_key_opens_the_same_thread),
    (Matrix, OpensNothing, ThreadContract.test_the_same_key_opens_the_same_thread),
    (Matrix, OpensNothing, REPLY),
    (Matrix, SendsBesideThreads, ThreadContract.test_what_is_sent_to_a_thread_is_read_there_alone),
    (Matrix, EditsTheFirst, EditContract.test_an_edit_replaces_the_text_and_nothing_else),
    (Matrix, GrowsByMessages, StepContract.test_a_reply_that_grows_ends_as_one_message_with_the_final_text),
    (Matrix, TellsTitles, RenameContract.test_a_new_title_is_no_message),
    (Matrix, TypesOutLoud, TypingContract.test_typing_writes_nothing),
    (Matrix, LosesQuotes, QuoteContract.test_a_quote_names_the_message_that_was_sent),
    (Signal, TakesEditsForRedeliveries, CHANGE),
    (Signal, LosesEdits, CHANGE),
    (Slack, ForgetsWhose, WhisperContract.test_what_is_for_one_person_is_shown_to_nobody_else),
    (Matrix, LosesDeletions, DeletionContract.test_a_deletion_names_what_it_deletes_and_says_nothing),
    (Feishu, BelievesAnybody, WebhookContract.test_what_is_forged_is_refused),
]


@pytest.mark.parametrize(
    ("persona", "adapter", "check"),
    [
        pytest.param(*each, id=f"{getattr(each[1], '__name__', '')}-{getattr(each[2], '__name__', '')}")
        for each in ADAPTERS
    ],
)
async def test_a_broken_adapter_is_caught(persona: type[Persona], adapter: Callable[[Any], Any], check: Check) -> None:
    class Whole(
        ThreadContract,
        EditContract,
        TypingContract,
        WebhookContract,
        ChangeContract,
        QuoteContract,
        DeletionContract,
        WhisperContract,
    ): ...

    broken = Breaking(persona(), adapter)
    with pytest.raises((AssertionError, pytest.fail.Exception, msgspec.DecodeError)):
        await check(Whole(), broken.harness)


async def test_an_ability_without_its_contract_is_caught() -> None:
    class Forgetful(ThreadContract): ...

    class Boastful(ThreadContract, EditContract, TypingContract, WebhookContract): ...

    class Right(ThreadContract, EditContract, TypingContract): ...

    await Right().test_each_ability_has_its_contract(FakeHarness(Matrix()))
    with pytest.raises(AssertionError, match="EditsMessages"):
        await Forgetful().test_each_ability_has_its_contract(FakeHarness(Matrix()))
    with pytest.raises(AssertionError, match="TakesWebhooks"):
        await Boastful().test_each_ability_has_its_contract(FakeHarness(Matrix()))


# Broken agents


class Silent:
    async def answer(self, work: Work) -> AsyncIterator[Event]:
        yield Text(" ")


class SpeaksAsGateway:
    async def answer(self, work: Work) -> AsyncIterator[Event]:
        yield Notice("I am the gateway")


class SaysHalfACharacter:
    async def answer(self, work: Work) -> AsyncIterator[Event]:
        yield Text("\ud83d")


class SaysEmptyPieces:
    async def answer(self, work: Work) -> AsyncIterator[Event]:
        yield Text("")


class AnswersNoCall:
    async def answer(self, work: Work) -> AsyncIterator[Event]:
        yield ToolResult("call-9", "found")


class PaysAgain(EchoAgent):
    async def answer(self, work: Work) -> AsyncIterator[Event]:
        yield ToolCall("call-1", "pay", {"euros": 100})
        yield ToolResult("call-1", "paid")
        yield Text("paid")


class UsesNoTool(EchoAgent):
    pass


class RemembersEverything:
    def __init__(self) -> None:
        self.heard: list[str] = []

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        self.heard.append(said(work))
        yield Text("\n".join(self.heard))


class AnswersAnnAlone:
    async def answer(self, work: Work) -> AsyncIterator[Event]:
        if work.asked[0].author.name == "Ann":
            yield Text("Hello Ann")


class AnswersOneAtATime:
    def __init__(self) -> None:
        self.busy = False

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        if not self.busy:
            self.busy = True
            yield Text("hello")
            await asyncio.sleep(0)
            self.busy = False


class AnswersWhoCameLast:
    def __init__(self) -> None:
        self.last = ""

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        self.last = said(work)
        await asyncio.sleep(0)
        yield Text(self.last)


class LeavesATaskBehind:
    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        self.tasks.append(asyncio.create_task(asyncio.sleep(60)))
        yield Text("hello")


class WillNotStop:
    async def answer(self, work: Work) -> AsyncIterator[Event]:
        try:
            yield Text("hello")
        finally:
            await asyncio.sleep(60)


class GoesByItsNote:
    async def answer(self, work: Work) -> AsyncIterator[Event]:
        yield Text(work.state.value if work.state else "hello")
        yield AgentState(said(work))


class SteersForEver(EchoAgent):
    async def steer(self, work: Work, more: tuple[Draft, ...]) -> bool:
        return True


AGENTS: list[tuple[Callable[[], Any], Check]] = [
    (Silent, AgentContract.test_it_answers_with_words),
    (SpeaksAsGateway, AgentContract.test_all_that_it_says_can_be_kept),
    (SaysHalfACharacter, AgentContract.test_all_that_it_says_can_be_kept),
    (SaysEmptyPieces, AgentContract.test_all_that_it_says_can_be_kept),
    (AnswersNoCall, AgentContract.test_each_result_answers_a_call_before_it),
    (PaysAgain, AgentContract.test_what_the_journal_tells_is_not_called_again),
    (PaysAgain, ToolContract.test_a_retry_goes_on_from_the_journal),
    (UsesNoTool, ToolContract.test_a_retry_goes_on_from_the_journal),
    (AnswersAnnAlone, AgentContract.test_everyone_in_a_shared_lane_is_answered),
    (RemembersEverything, AgentContract.test_sessions_know_nothing_of_each_other),
    (RemembersEverything, RecallContract.test_what_was_taken_back_was_never_said),
    (EchoAgent, RecallContract.test_it_knows_what_was_said),
    (AnswersOneAtATime, AgentContract.test_answers_under_way_at_once_do_not_mix),
    (AnswersWhoCameLast, AgentContract.test_answers_under_way_at_once_do_not_mix),
    (LeavesATaskBehind, AgentContract.test_cancelling_ends_it_at_once_and_leaves_nothing_behind),
    (WillNotStop, AgentContract.test_cancelling_ends_it_at_once_and_leaves_nothing_behind),
    (SteersForEver, SteerContract.test_what_comes_too_late_is_refused),
    (SteersForEver, AgentContract.test_it_can_be_steered_only_if_it_says_so),
    (EchoAgent, StateContract.test_it_keeps_a_note_and_goes_on_from_it),
    (GoesByItsNote, StateContract.test_a_note_about_what_was_taken_back_is_void),
]


@pytest.mark.parametrize(("agent", "check"), AGENTS, ids=lambda each: getattr(each, "__name__", ""))
async def test_a_broken_agent_is_caught(agent: Callable[[], Any], check: Check) -> None:
    class Whole(RecallContract, ToolContract, StateContract): ...

    suite = SteerContract() if "SteerContract" in check.__qualname__ else Whole()
    with pytest.raises((AssertionError, Invalid, TimeoutError)):
        await check(suite, agent())


def test_every_promise_is_broken_once() -> None:
    broken = {check.__name__ for _, _, check in ADAPTERS} | {check.__name__ for _, check in AGENTS}
    promises = {
        name
        for contract in vars(contracts).values()
        if inspect.isclass(contract)
        for name in dir(contract)
        if name.startswith("test_")
    }
    # Keys have a proof of their own, and which contracts apply is tested above.
    assert promises - broken == {"test_ids_come_back_from_their_keys", "test_each_ability_has_its_contract"}
