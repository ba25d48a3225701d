"""The store from Python: what somebody types who has just installed it."""

import pytest

import segue
from segue import Address, Fork, Handoff, Identity, Kind, Place, Refused, Release, Renew, Resume, Spawn


async def test_a_conversation_that_moves_branches_and_comes_back(where: str) -> None:
    async with await segue.open_store(where) as store:
        ann = await store.person(Identity("telegram", "bot", "1001"), "Ann")
        chat = await store.lane(Place(Address("telegram", "bot", chat="1001"), Kind.DM), ann)
        terminal = await store.lane(Place(Address("terminal", "local", chat="ann"), Kind.DM), ann)

        plan = store.new_session_id()
        await store.move(Renew(terminal, plan), ann)
        await store.say(plan, ann, "Let us plan the trip.")
        await store.say(plan, segue.AGENT, "Where to?")
        await store.set_title(plan, "trip", ann)

        await store.move(Handoff(terminal, chat), ann)
        await store.move(Release(terminal, segue.Why.HANDOFF), ann)
        assert [lane.address.platform for lane in await store.lanes_of(plan)] == ["telegram"]

        branch = store.new_session_id()
        await store.move(Fork(chat, plan, branch, title="trip"), ann)
        await store.say(branch, ann, "By train?")
        assert [session.title for session in await store.sessions_here(chat)] == ["trip #1", "trip #2"]
        await store.undo(branch, ann)
        assert len(await store.path(branch)) == len(await store.path(plan)) == 2

        child = store.new_session_id()
        await store.move(Spawn(plan, child, "prices"), ann)
        assert await store.child(plan, "prices") == child

        await store.move(Resume(chat, await store.find("trip #1", ann)), ann)
        last = await store.last_move(chat)
        assert last is not None
        await store.undo_move(last.id, ann)
        bound = await store.bound(chat)
        assert bound is not None
        assert bound.id == branch

        await store.index()
        assert [entry.tip.session for entry in await store.search("trip", ann)] == [plan]

    async with await segue.open_store(where) as store:
        again = await store.person(Identity("telegram", "bot", "1001"))
        assert again == ann
        assert [session.title for session in await store.sessions(again)][:1] == ["trip #2"]
        stranger = await store.person(Identity("telegram", "bot", "1002"))
        with pytest.raises(Refused, match="No session of yours"):
            await store.find("trip", stranger)


async def test_ids_sort_by_time_and_never_repeat(where: str) -> None:
    async with await segue.open_store(where) as store:
        ids = [store.new_session_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert [id[:9] for id in ids] == sorted(id[:9] for id in ids)
