"""Importing a Hermes home: titles, lanes, order, tool calls and reasoning come over, and the home stays as it was."""

import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from segue.changes.places import addresses
from segue.changes.sessions import usage
from segue.core.contracts.agents import Usage
from segue.core.lanes import Address, Identity, Kind, Lane, Person, Place, Rules, Sharing
from segue.core.messages import File, Part, Reasoning, Summary, Text, ToolCall, ToolResult
from segue.core.settings import AccountSettings, GatewaySettings, Settings
from segue.core.transcripts import AGENT, IMPORTED, Author, Entry, Role, Session
from segue.errors import Invalid
from segue.imports.hermes import Fate, Mode, Report, import_hermes
from segue.imports.hermes.messages import HermesStanding, moment, read_message
from tests.changes.world import Engine, World

BEGAN = 1_750_000_000.0
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] They talked about a trip."
FIRST = """
    create table sessions (id text primary key, source text not null, user_id text, model text, model_config text,
      system_prompt text, parent_session_id text, started_at real not null, ended_at real, end_reason text, title text);
    create table messages (id integer primary key autoincrement, session_id text not null, role text not null,
      content text, tool_call_id text, tool_calls text, tool_name text, timestamp real not null, token_count integer,
      finish_reason text);
"""
SINCE = """
    alter table sessions add column session_key text;
    alter table sessions add column chat_id text;
    alter table sessions add column chat_type text;
    alter table sessions add column thread_id text;
    alter table sessions add column origin_json text;
    alter table sessions add column last_activity_at real;
    alter table messages add column reasoning text;
    alter table messages add column reasoning_content text;
    alter table messages add column reasoning_details text;
    alter table messages add column codex_reasoning_items text;
    alter table messages add column codex_message_items text;
    alter table messages add column active integer not null default 1;
    alter table messages add column compacted integer not null default 0;
    create table gateway_routing (scope text not null, session_key text not null, entry_json text not null,
      updated_at real not null, primary key (scope, session_key));
"""


class Home:
    """A small Hermes home, written by the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "sessions").mkdir(parents=True)
        self.database: apsw.Connection | None = None
        self.entries: dict[str, Any] = {"_README": "a note"}

    def db(self, schema: str = FIRST + SINCE) -> apsw.Connection:
        if self.database is None:
            self.database = apsw.Connection(str(self.path / "state.db"))
            self.database.execute(schema)
        return self.database

    def insert(self, table: str, **columns: Any) -> None:
        names = ", ".join(columns)
        marks = ", ".join("?" for _ in columns)
        self.db().execute(f"insert into {table} ({names}) values ({marks})", tuple(columns.values()))

    def session(self, id: str, *said: str, source: str = "cli", began: float = BEGAN, **columns: Any) -> None:
        """A session in which a user and the assistant take turns."""
        self.insert("sessions", id=id, source=source, started_at=began, **columns)
        for n, text in enumerate(said):
            self.message(id, "assistant" if n % 2 else "user", text, timestamp=began + n + 1)

    def message(self, session: str, role: str, content: Any, timestamp: float = BEGAN + 1, **columns: Any) -> None:
        self.insert("messages", session_id=session, role=role, content=content, timestamp=timestamp, **columns)

    def transcript(self, id: str, *lines: Any) -> None:
        texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
        (self.path / "sessions" / f"{id}.jsonl").write_text("\n".join(texts) + "\n", "utf-8", newline="")

    def route(self, key: str, session: str, **origin: Any) -> dict[str, Any]:
        """The session that a lane is on, in sessions.json."""
        self.entries[key] = entry = {
            "session_key": key,
            "session_id": session,
            "created_at": "2025-06-15T15:06:40+00:00",
            "updated_at": "2025-06-15T16:06:40+00:00",
            "platform": key.split(":")[2],
            "chat_type": key.split(":")[3],
            "origin": {"platform": key.split(":")[2], "chat_type": key.split(":")[3], **origin},
        }
        (self.path / "sessions" / "sessions.json").write_text(json.dumps(self.entries, indent=2), "utf-8")
        return entry

    def close(self) -> None:
        if self.database is not None:
            self.database.close()
            self.database = None


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "hermes")
    yield made
    made.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = await World.open(Engine.SQLITE, tmp_path / "segue.db")
    yield made
    await made.close()


@pytest.fixture
async def host(world: World) -> Person:
    return await world.person("host", platform="terminal", name="Hanna")


async def take(
    world: World,
    home: Home,
    host: Person,
    rules: Rules | None = None,
    accounts: Mapping[str, str] | None = None,
    **more: Any,
) -> Report:
    """An import, or a look at one; the report without its list."""
    return replace(await listed(world, home, host, rules, accounts, **more), listed=(), strange=())


async def listed(
    world: World,
    home: Home,
    host: Person,
    rules: Rules | None = None,
    accounts: Mapping[str, str] | None = None,
    hosts: tuple[Identity, ...] = (),
    mode: Mode = Mode.APPLY,
) -> Report:
    home.close()
    settings = GatewaySettings(
        Settings(rules or Rules()), hosts, {account: AccountSettings() for account in (accounts or {}).items()}
    )
    return await import_hermes(home.path, world.store, host, settings, mode, world.clock)


async def titled(world: World, owner: Person, title: str) -> Session:
    return await world.store.session(await world.store.find(title, owner), owner)


async def newest(world: World, owner: Person) -> Session:
    [session, *_] = await world.store.sessions(owner)
    return session


def said(entries: list[Entry]) -> list[tuple[Role, tuple[Part, ...]]]:
    return [(entry.author.role, entry.parts) for entry in entries]


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "timestamp": "2025-06-15T15:06:41+00:00", **more}


DM = {"chat_id": "123", "user_id": "123", "user_name": "Ann", "chat_name": "Ann"}


# A whole home


async def write_everything(home: Home) -> None:
    home.session("s1", source="telegram", title="Trip", user_id="123", session_key="agent:main:telegram:dm:123")
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"where": "Lisbon"}'}}]
    home.message("s1", "user", "Where to?", BEGAN + 1)
    home.message(
        "s1",
        "assistant",
        "Let me look.",
        BEGAN + 2,
        tool_calls=json.dumps(calls),
        reasoning="Lisbon is nice.",
        reasoning_details=json.dumps([{"type": "reasoning.text", "text": "Lisbon", "signature": "x=="}]),
    )
    home.message("s1", "tool", '{"sun": true}', BEGAN + 3, tool_call_id="c1", tool_name="look")
    home.message("s1", "assistant", "Lisbon.", BEGAN + 4)
    home.route("agent:main:telegram:dm:123", "s1", **DM)


@pytest.mark.parametrize("engine", list(Engine), ids=lambda engine: engine.value)
async def test_a_home_comes_over(home: Home, engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    where = tmp_path / "segue.db" if engine is Engine.SQLITE else request.getfixturevalue("today_dsn")
    world = await World.open(engine, where)
    host = await world.person("host", platform="terminal")
    await write_everything(home)
    report = await take(world, home, host, accounts={"telegram": "bot"})
    assert report == Report(sessions=1, entries=4, lanes=1)
    ann = await world.store.person(Identity("telegram", "bot", "123"))
    assert ann.name == "Ann"
    session = await titled(world, ann, "Trip")
    assert (session.owner, session.began, session.used) == (ann.id, BEGAN, BEGAN + 4)
    path = await world.store.path(session.id)
    thought = {
        "reasoning": "Lisbon is nice.",
        "reasoning_details": [{"type": "reasoning.text", "text": "Lisbon", "signature": "x=="}],
    }
    call = ToolCall("c1", "look", {"where": "Lisbon"})
    assert said(path) == [
        (Role.PERSON, (Text("Where to?"),)),
        (Role.AGENT, (Reasoning("hermes", thought), Text("Let me look."), call)),
        (Role.AGENT, (ToolResult("c1", '{"sun": true}'),)),
        (Role.AGENT, (Text("Lisbon."),)),
    ]
    assert [entry.at for entry in path] == [BEGAN + 1, BEGAN + 2, BEGAN + 3, BEGAN + 4]
    assert path[0].author == Author(Role.PERSON, ann.id, "Ann")
    lane = await world.store.lane(Place(Address("telegram", "bot", chat="123"), Kind.DM), ann)
    bound = await world.store.bound(lane)
    assert bound is not None
    assert bound.id == session.id
    await world.close()


TABLES = (
    "persons",
    "identities",
    "addresses",
    "lanes",
    "sessions",
    "entries",
    "titles",
    "moves",
    "bindings",
    "settings",
)


async def test_a_second_import_adds_nothing(home: Home, world: World, host: Person) -> None:
    await write_everything(home)
    home.session("s2", "hello", "hi", title="Mine")
    home.transcript("s3", user("hello"))
    first = await take(world, home, host)
    assert (first.sessions, first.entries, first.lanes, first.known) == (3, 7, 1, 0)
    before = [await world.count(table) for table in TABLES]
    again = await take(world, home, host)
    assert again == Report(known=3)
    assert [await world.count(table) for table in TABLES] == before


async def test_a_second_import_brings_what_is_new(home: Home, world: World, host: Person) -> None:
    home.session("s1", "hello", "hi")
    await take(world, home, host)
    home.database = apsw.Connection(str(home.path / "state.db"))
    home.session("s2", "more", "MORE", began=BEGAN + 100)
    report = await take(world, home, host)
    assert (report.sessions, report.entries, report.known) == (1, 2, 1)
    assert await world.said((await newest(world, host)).id) == ["more", "MORE"]


async def test_nothing_in_the_home_is_written_to(home: Home, world: World, host: Person) -> None:
    await write_everything(home)
    home.db().execute("pragma journal_mode = wal")
    home.transcript("s2", user("hello"))
    home.close()

    def look() -> dict[str, tuple[bytes, int]]:
        files = [path for path in sorted(home.path.rglob("*")) if path.is_file()]
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = look()
    for folder in (home.path, home.path / "sessions"):
        folder.chmod(0o555)
    await take(world, home, host)
    for folder in (home.path, home.path / "sessions"):
        folder.chmod(0o755)
    assert look() == before


async def test_what_is_still_in_the_log_comes_over(
    home: Home, world: World, host: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Hermes that runs, or died, keeps its last changes beside the database."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    writer = home.db()
    writer.execute("pragma journal_mode = wal")
    home.session("s1", "hello", "hi")
    before = sorted(home.path.iterdir())
    assert (home.path / "state.db-wal").stat().st_size
    report = await import_hermes(home.path, world.store, host, clock=world.clock)
    assert (report.sessions, report.entries, report.skipped) == (1, 2, ())
    assert sorted(home.path.iterdir()) == before
    assert not list((tmp_path / "scratch").iterdir())


async def test_a_home_that_changes_while_it_is_read_is_refused(
    home: Home, world: World, host: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.db().execute("pragma journal_mode = wal")
    home.session("s1", "hello", "hi")
    copy = shutil.copyfile

    def copy_while_hermes_writes(source: Path, target: Path) -> None:
        copy(source, target)
        home.message("s1", "user", "more")

    monkeypatch.setattr(shutil, "copyfile", copy_while_hermes_writes)
    with pytest.raises(Invalid, match="Hermes is writing to"):
        await import_hermes(home.path, world.store, host)
    assert await world.count("sessions") == 0


# What was said


@pytest.mark.parametrize(
    ("in_file", "in_database", "wins"),
    [
        pytest.param(["a", "b", "c"], ["A", "B"], ["a", "b", "c"], id="the file is longer"),
        pytest.param(["a", "b"], ["A", "B", "C"], ["A", "B", "C"], id="the database is longer"),
        pytest.param(["a", "b"], ["A", "B"], ["A", "B"], id="the database knows more of as much"),
        pytest.param(["a"], [], ["a"], id="only the file has it"),
    ],
)
async def test_the_longer_history_wins(
    home: Home, world: World, host: Person, in_file: list[str], in_database: list[str], wins: list[str]
) -> None:
    home.session("s1", *in_database, title="Trip")
    home.transcript("s1", {"role": "session_meta", "tools": [], "model": "m"}, *(user(text) for text in in_file))
    report = await take(world, home, host)
    session = await titled(world, host, "Trip")
    assert await world.said(session.id) == wins
    assert report == Report(sessions=1, entries=len(wins))
    assert session.began == BEGAN


async def test_what_was_undone_does_not_make_a_history_longer(home: Home, world: World, host: Person) -> None:
    home.session("s1", "a", "b")
    home.message("s1", "user", "undone", active=0)
    home.message("s1", "user", "undone", active=0)
    home.transcript("s1", user("x"), user("y"), user("z"))
    await take(world, home, host)
    assert await world.said((await newest(world, host)).id) == ["x", "y", "z"]


async def test_a_transcript_alone_is_a_session(home: Home, world: World, host: Person) -> None:
    home.transcript(
        "s1", user("hello"), {"role": "assistant", "content": "hi", "timestamp": "2025-06-15T15:06:43+00:00"}
    )
    report = await take(world, home, host)
    assert report == Report(sessions=1, entries=2)
    session = await newest(world, host)
    assert (session.began, session.used) == (BEGAN + 1, BEGAN + 3)
    assert await world.said(session.id) == ["hello", "hi"]


async def test_what_cannot_be_read_is_told_by_file_and_line(home: Home, world: World, host: Person) -> None:
    home.transcript("s1", user("one"), "{broken", user("two"), "", '"text"', {"role": "god"}, user("three"))
    with (home.path / "sessions" / "s1.jsonl").open("ab") as file:
        file.write(b'{"role": "user", "content": "\xff"}\n')
    home.session("s2", "hello")
    home.message("s2", "assistant", "bad calls", tool_calls="{broken")
    home.message("s2", "assistant", "hi")
    home.route("agent:main:telegram:dm:1", "s2")
    home.route("agent:main:telegram:dm:2", "", chat_id="2")
    report = await take(world, home, host)
    assert [skipped.where for skipped in report.skipped] == [
        "sessions/sessions.json, agent:main:telegram:dm:1",
        "sessions/sessions.json, agent:main:telegram:dm:2",
        "sessions/s1.jsonl, line 2",
        "sessions/s1.jsonl, line 5",
        "sessions/s1.jsonl, line 6",
        "sessions/s1.jsonl, line 8",
        "state.db, message 2",
    ]
    assert all(skipped.why for skipped in report.skipped)
    assert (report.sessions, report.entries) == (2, 5)
    texts = [await world.said(session.id) for session in await world.store.sessions(host)]
    assert sorted(texts) == [["hello", "hi"], ["one", "two", "three"]]


async def test_a_database_that_is_none_leaves_the_transcripts(home: Home, world: World, host: Person) -> None:
    (home.path / "state.db").write_bytes(b"not a database, whatever its name says" * 100)
    (home.path / "sessions" / "sessions.json").write_text("{broken", "utf-8")
    home.transcript("s1", user("hello"))
    report = await take(world, home, host)
    assert (report.sessions, report.entries) == (1, 1)
    assert [skipped.where for skipped in report.skipped] == ["state.db", "sessions/sessions.json"]


@pytest.mark.parametrize("there", ["an empty folder", "nothing"])
async def test_a_folder_that_is_no_home_is_refused(tmp_path: Path, world: World, host: Person, there: str) -> None:
    path = tmp_path / there
    if there != "nothing":
        path.mkdir()
    with pytest.raises(Invalid, match="has neither"):
        await import_hermes(path, world.store, host)


async def test_messages_keep_their_order_whatever_their_times_say(home: Home, world: World, host: Person) -> None:
    home.session("s1")
    for text, at in (("a", 5.0), ("b", 3.0), ("c", 4.0)):
        home.message("s1", "user", text, BEGAN + at)
    await take(world, home, host)
    assert await world.said((await newest(world, host)).id) == ["a", "b", "c"]


async def test_sessions_in_which_nothing_was_said_stay_behind(home: Home, world: World, host: Person) -> None:
    home.session("s1", title="Nothing")
    home.session("s2", "hello")
    report = await take(world, home, host)
    assert (report.sessions, report.empty) == (1, 1)


# What was undone and compacted


async def test_what_was_undone_is_a_branch(home: Home, world: World, host: Person) -> None:
    home.session("s1", "one", "ONE")
    home.message("s1", "user", "two", active=0)
    home.message("s1", "assistant", "TWO", active=0)
    home.message("s1", "user", "three")
    home.message("s1", "assistant", "no", active=0)
    home.message("s1", "assistant", "THREE")
    report = await take(world, home, host)
    session = (await newest(world, host)).id
    assert await world.said(session) == ["one", "ONE", "three", "THREE"]
    assert report.entries == 7
    parents = [entry.parent.n if entry.parent else None async for entry in world.store.entries(session)]
    assert parents == [None, 1, 2, 3, 2, 5, 5]


async def test_what_was_compacted_in_place_is_under_its_summary(home: Home, world: World, host: Person) -> None:
    home.session("s1")
    for text in ("one", "two"):
        home.message("s1", "user", text, active=0, compacted=1)
    home.message("s1", "user", "kept", active=0)
    home.message("s1", "user", SUMMARY)
    home.message("s1", "user", "kept")
    home.message("s1", "assistant", "three")
    await take(world, home, host)
    session = (await newest(world, host)).id
    path = await world.store.path(session)
    assert said(path) == [
        (Role.PERSON, (Text("one"),)),
        (Role.PERSON, (Text("two"),)),
        (Role.GATEWAY, (Summary(SUMMARY, session, 2),)),
        (Role.PERSON, (Text("kept"),)),
        (Role.AGENT, (Text("three"),)),
    ]
    assert [entry.tip.n for entry in await world.store.visible(session)] == [4, 5, 6]


async def test_what_was_compacted_twice_is_under_the_last_summary(home: Home, world: World, host: Person) -> None:
    home.session("s1")
    for text in ("one", SUMMARY, "two"):
        home.message("s1", "user", text, active=0, compacted=1)
    for text in ("head", SUMMARY, "three"):
        home.message("s1", "user", text)
    await take(world, home, host)
    session = (await newest(world, host)).id
    assert [entry.tip.n for entry in await world.store.path(session)] == [1, 2, 3, 4, 5, 6]
    assert [entry.tip.n for entry in await world.store.visible(session)] == [5, 4, 6]


async def test_what_was_compacted_without_a_trace_is_a_branch(home: Home, world: World, host: Person) -> None:
    home.session("s1")
    home.message("s1", "user", "one", active=0, compacted=1)
    home.message("s1", "user", "two", active=0, compacted=1)
    home.message("s1", "user", "in short: one and two")
    report = await take(world, home, host)
    session = (await newest(world, host)).id
    assert await world.said(session) == ["in short: one and two"]
    assert report.entries == 3


async def test_a_text_that_only_looks_like_a_summary_stays_what_somebody_said(
    home: Home, world: World, host: Person
) -> None:
    home.session("s1", "hello", "hi")
    home.message("s1", "user", SUMMARY)
    await take(world, home, host)
    path = await world.store.path((await newest(world, host)).id)
    assert (path[-1].author.role, path[-1].parts) == (Role.PERSON, (Text(SUMMARY),))
    assert len(path) == 3


async def test_a_session_that_was_split_by_compacting_goes_on_from_its_parent(
    home: Home, world: World, host: Person
) -> None:
    home.session("s3", SUMMARY, "five", parent_session_id="s2", title="Trip #3", began=BEGAN + 20)
    home.session(
        "s2", SUMMARY, "four", parent_session_id="s1", title="Trip #2", began=BEGAN + 10, end_reason="compression"
    )
    home.session("s1", "one", "two", title="Trip", began=BEGAN + 99, end_reason="compression")  # a clock went back
    await take(world, home, host)
    first, second, third = [await titled(world, host, title) for title in ("Trip #1", "Trip #2", "Trip #3")]
    assert await world.store.find("Trip", host) == third.id
    assert (second.parent, third.parent) == (first.id, second.id)
    assert await world.said(third.id) == ["one", "two", "four", "five"]
    assert said(await world.store.visible(third.id)) == [
        (Role.GATEWAY, (Summary(SUMMARY, second.id, 2),)),
        (Role.AGENT, (Text("five"),)),
    ]
    assert await world.said(first.id) == ["one", "two"]
    assert await world.count("entries") == 6


@pytest.mark.parametrize(
    ("parent", "child", "first"),
    [
        pytest.param("compression", '{"_branched_from": "s1"}', SUMMARY, id="a branch"),
        pytest.param("compression", '{"_delegate_from": "s1"}', SUMMARY, id="a subagent"),
        pytest.param("session_reset", None, SUMMARY, id="a reset"),
        pytest.param("compression", None, "in short: a trip", id="a summary that can't be told"),
    ],
)
async def test_other_children_have_a_parent_and_a_past_of_their_own(
    home: Home, world: World, host: Person, parent: str, child: str | None, first: str
) -> None:
    home.session("s1", "one", "two", title="Old", end_reason=parent)
    home.session("s2", first, "hello", parent_session_id="s1", title="New", began=BEGAN + 10, model_config=child)
    await take(world, home, host)
    old, new = await titled(world, host, "Old"), await titled(world, host, "New")
    assert new.parent == old.id
    assert await world.said(new.id) == [first, "hello"]


async def test_sessions_that_claim_each_other_as_parents_do_not_go_round_for_ever(
    home: Home, world: World, host: Person
) -> None:
    home.session("s1", "one", parent_session_id="s2", end_reason="compression")
    home.session("s2", "two", parent_session_id="s1", end_reason="compression")
    home.session("s3", "three", parent_session_id="gone")
    home.route("agent:main:telegram:dm:123", "s1", **DM)
    assert (await take(world, home, host)).sessions == 3


# Titles


async def test_a_title_that_is_taken_gets_the_next_number(home: Home, world: World, host: Person) -> None:
    mine = await world.renew(await world.dm(host), host, "hello")
    await world.store.set_title(mine, "Trip", host)
    home.session("s1", "a", title="Trip")
    home.session("s2", "b", title="Trip #7", began=BEGAN + 1)
    await take(world, home, host)
    assert await world.said((await titled(world, host, "Trip #2")).id) == ["a"]
    assert await world.said((await titled(world, host, "Trip #7")).id) == ["b"]


async def test_a_title_that_cannot_be_kept_is_told(home: Home, world: World, host: Person) -> None:
    home.session("s1", "a", title="2025")
    report = await take(world, home, host)
    assert (report.sessions, [skipped.where for skipped in report.skipped]) == (1, ["title of s1, '2025'"])
    assert (await newest(world, host)).title == ""


# Lanes and persons


async def lane(world: World, platform: str, user: str, place: Place, **rules: Any) -> Session | None:
    person = await world.store.person(Identity(platform, "main", user))
    return await world.store.bound(await world.store.lane(place, person, **rules))


@pytest.mark.parametrize(
    ("key", "origin", "place", "person"),
    [
        pytest.param(
            "agent:main:telegram:group:-5:7",
            {"chat_id": "-5", "user_id": "7", "chat_name": "Crew"},
            Place(Address("telegram", "main", chat="-5"), Kind.GROUP),
            "own",
            id="a group",
        ),
        pytest.param(
            "agent:main:telegram:group:-5:9",
            {"chat_id": "-5", "thread_id": "9", "user_id": "7"},
            Place(Address("telegram", "main", chat="-5", thread="9"), Kind.GROUP),
            "shared",
            id="a topic",
        ),
        pytest.param(
            "agent:main:discord:thread:9:9",
            {"chat_id": "9", "thread_id": "9", "parent_chat_id": "8", "guild_id": "6", "user_id": "7"},
            Place(Address("discord", "main", "6", "8", "9"), Kind.GROUP),
            "shared",
            id="a thread whose chat is itself",
        ),
        pytest.param(
            "agent:main:slack:dm:T1:D1",
            {"chat_id": "D1", "scope_id": "T1", "user_id": "7"},
            Place(Address("slack", "main", "T1", "D1"), Kind.DM),
            "own",
            id="a workspace",
        ),
        pytest.param(
            "agent:main:slack:channel:C1:7",
            {"chat_id": "C1", "user_id": 7},
            Place(Address("slack", "main", chat="C1"), Kind.CHANNEL),
            "own",
            id="a channel",
        ),
        pytest.param(
            "agent:main:sms:dm", {"user_id": "7"}, Place(Address("sms", "main"), Kind.DM), "own", id="no chat id"
        ),
    ],
)
async def test_a_lane_goes_on_with_its_session(
    home: Home, world: World, host: Person, key: str, origin: dict[str, Any], place: Place, person: str
) -> None:
    platform = place.address.platform
    home.session("s1", "hello", source=platform, session_key=key, user_id="7")
    home.route(key, "s1", user_name="Ann", **origin)
    assert (await take(world, home, host)).lanes == 1
    session = await lane(world, platform, "7", place)
    assert session is not None
    [entry] = await world.store.path(session.id)
    ann = await world.store.person(Identity(platform, "main", "7"))
    assert session.owner == ann.id
    assert entry.author == (Author(Role.PERSON, ann.id, "Ann") if person == "own" else Author(Role.PERSON))
    other = await lane(world, platform, "another", place)
    assert (other == session) == (person == "shared" or (place.kind is Kind.DM and bool(place.address.chat)))


async def test_the_host_s_rules_say_who_shares_a_lane(home: Home, world: World, host: Person) -> None:
    together = Rules(groups=Sharing.TOGETHER)
    place = Place(Address("telegram", "main", chat="-5"), Kind.GROUP)
    for id, used in (("7", "2025-06-15T16:00:00"), ("8", "2025-06-15T17:00:00")):
        home.session(f"s{id}", f"from {id}", source="telegram", user_id=id)
        home.route(f"agent:main:telegram:group:-5:{id}", f"s{id}", chat_id="-5", user_id=id)["updated_at"] = used
    home.route("agent:main:telegram:dm:1", "s7", chat_id="1", user_id="1")
    report = await take(world, home, host, rules=together)
    session = await lane(world, "telegram", "anyone", place, rules=together)
    assert session is not None
    assert await world.said(session.id) == ["from 8"]
    assert report.lanes == 2
    assert [skipped.where for skipped in report.skipped] == ["agent:main:telegram:group:-5:7"]


async def test_a_lane_has_spoken_to_the_sessions_before(home: Home, world: World, host: Person) -> None:
    key = "agent:main:telegram:dm:123"
    for n in (3, 1, 2):
        home.session(f"s{n}", str(n), source="telegram", user_id="123", session_key=key, began=BEGAN + n * 10)
    home.session("s0", source="telegram", user_id="123", session_key=key, began=BEGAN)
    home.route(key, "s2", **DM)
    await take(world, home, host)
    ann = await world.store.person(Identity("telegram", "main", "123"))
    place = Place(Address("telegram", "main", chat="123"), Kind.DM)
    there = await world.store.lane(place, ann)
    assert there == Lane(place.address)
    sessions = await world.store.sessions_here(there)
    assert [await world.said(session.id) for session in sessions] == [["1"], ["3"], ["2"]]
    history = [(binding.since, binding.until) for binding in await world.store.history(there)]
    assert history == [(BEGAN + 30, None), (BEGAN + 30, BEGAN + 30), (BEGAN + 10, BEGAN + 30)]


async def test_a_lane_that_is_in_use_stays_as_it_is(home: Home, world: World, host: Person) -> None:
    ann = await world.person("123")
    there = await world.dm(ann, "123")
    mine = await world.renew(there, ann, "hello")
    await write_everything(home)
    report = await take(world, home, host, accounts={"telegram": "bot"})
    assert (report.sessions, report.lanes) == (1, 0)
    assert [skipped.where for skipped in report.skipped] == ["agent:main:telegram:dm:123"]
    bound = await world.store.bound(there)
    assert bound is not None
    assert bound.id == mine


async def test_a_lane_that_was_just_reset_goes_on_with_nothing(home: Home, world: World, host: Person) -> None:
    key = "agent:main:telegram:dm:123"
    home.session("s1", "old", source="telegram", user_id="123", session_key=key)
    home.session("s2", source="telegram", user_id="123", session_key=key, began=BEGAN + 10)
    home.route(key, "s2", **DM)
    await take(world, home, host)
    session = await lane(world, "telegram", "123", Place(Address("telegram", "main", chat="123"), Kind.DM))
    assert session is not None
    assert await world.said(session.id) == []


async def test_a_lane_whose_session_was_split_goes_on_with_the_last_piece(
    home: Home, world: World, host: Person
) -> None:
    home.session("s1", "one", source="telegram", user_id="123", end_reason="compression")
    home.session("s2", SUMMARY, "two", source="telegram", parent_session_id="s1", began=BEGAN + 10)
    home.session(
        "s9", "no", source="telegram", parent_session_id="s1", began=BEGAN + 20, model_config='{"_branched_from": "s1"}'
    )
    home.route("agent:main:telegram:dm:123", "s1", **DM)
    await take(world, home, host)
    session = await lane(world, "telegram", "123", Place(Address("telegram", "main", chat="123"), Kind.DM))
    assert session is not None
    assert await world.said(session.id) == ["one", "two"]


@pytest.mark.parametrize("in_database", ["2025-07-01T00:00:00+00:00", "2025-05-01T00:00:00+00:00"])
async def test_the_newer_of_two_indexes_is_believed(home: Home, world: World, host: Person, in_database: str) -> None:
    key = "agent:main:telegram:dm:123"
    home.session("s1", "in the file", source="telegram")
    home.session("s2", "in the database", source="telegram")
    entry = home.route(key, "s1", **DM)
    other = {**entry, "session_id": "s2", "updated_at": in_database}
    home.insert("gateway_routing", scope="x", session_key=key, entry_json=json.dumps(other), updated_at=1.0)
    home.insert("gateway_routing", scope="x", session_key="broken", entry_json="{", updated_at=1.0)
    report = await take(world, home, host)
    session = await lane(world, "telegram", "123", Place(Address("telegram", "main", chat="123"), Kind.DM))
    assert session is not None
    newer = "in the database" if in_database > entry["updated_at"] else "in the file"
    assert await world.said(session.id) == [newer]
    assert [skipped.where for skipped in report.skipped] == ["state.db, broken"]


async def test_other_ids_of_a_person_and_a_chat_come_along(home: Home, world: World, host: Person) -> None:
    key = "agent:main:signal:dm:+49"
    home.session("s1", "hello", source="signal", session_key=key)
    home.route(key, "s1", chat_id="+49", chat_id_alt="group-id", user_id="+49", user_id_alt="uuid")
    await take(world, home, host)
    one = await world.store.person(Identity("signal", "main", "+49"))
    assert await world.store.person(Identity("signal", "main", "uuid")) == one
    assert await lane(world, "signal", "uuid", Place(Address("signal", "main", chat="group-id"), Kind.DM)) is not None


async def test_each_profile_has_accounts_of_its_own(home: Home, world: World, host: Person) -> None:
    home.session("s1", "hello", source="telegram")
    home.route("agent:coder:telegram:dm:123", "s1", **DM)
    await take(world, home, host)
    [identity] = await world.store.identities(await world.store.person(Identity("telegram", "coder", "123")))
    assert identity.account == "coder"
    assert await world.count("persons") == 2


async def test_what_was_said_in_the_terminal_is_the_host_s(home: Home, world: World, host: Person) -> None:
    home.session("s1", "hello", "hi", source="cli")
    await take(world, home, host)
    asked, answered = await world.store.path((await newest(world, host)).id)
    assert asked.author == Author(Role.PERSON, host.id, "Hanna")
    assert answered.author == AGENT


async def test_what_a_program_asked_is_nobody_s_word(home: Home, world: World, host: Person) -> None:
    home.session("s1", "do it", source="cron")
    home.message("s1", "system", "be brief")
    await take(world, home, host)
    asked, told = await world.store.path((await newest(world, host)).id)
    assert (asked.author, told.author) == (Author(Role.PERSON), IMPORTED)


async def test_a_session_that_was_handed_off_stays_its_host_s(home: Home, world: World, host: Person) -> None:
    home.session("s1", "hello", source="cli", title="Trip")
    home.route("agent:main:telegram:dm:123", "s1", **DM)
    await take(world, home, host)
    session = await lane(world, "telegram", "123", Place(Address("telegram", "main", chat="123"), Kind.DM))
    assert session == await titled(world, host, "Trip")


async def test_an_old_database_that_names_only_users(home: Home, world: World, host: Person) -> None:
    home.db(FIRST)
    home.session("s1", "in a chat that nobody noted", source="telegram", user_id="5", title="Far")
    home.session("s2", "hello", source="telegram", user_id="123", title="Near", began=BEGAN + 10)
    home.route("agent:main:telegram:dm", "s2", **DM)
    report = await take(world, home, host)
    assert report == Report(sessions=2, entries=2, lanes=1)
    bob = await world.store.person(Identity("telegram", "main", "5"))
    [entry] = await world.store.path((await titled(world, bob, "Far")).id)
    assert entry.author == Author(Role.PERSON)
    ann = await world.store.person(Identity("telegram", "main", "123"))
    [entry] = await world.store.path((await titled(world, ann, "Near")).id)
    assert entry.author == Author(Role.PERSON, ann.id, "Ann")
    bound = await lane(world, "telegram", "123", Place(Address("telegram", "main", chat="123"), Kind.DM))
    assert bound is not None
    assert bound.title == "Near"


# A look, hosts, costs and homes

ANN = Identity("telegram", "bot", "123")


async def test_a_look_tells_what_an_import_does_and_writes_nothing(home: Home, world: World, host: Person) -> None:
    await write_everything(home)
    home.session("s2", "hello", "hi", title="Mine")
    home.session("s3", began=BEGAN + 9, title="Nothing")
    home.session("s4", "late", title="2025", began=BEGAN + 20)
    (home.path / ".env").write_text("TELEGRAM_HOME_CHANNEL=123\n")
    before = [await world.count(table) for table in (*TABLES, "homes")]
    look = await listed(world, home, host, accounts={"telegram": "bot"}, mode=Mode.LOOK)
    assert [await world.count(table) for table in (*TABLES, "homes")] == before
    assert (look.sessions, look.entries, look.lanes, look.homes, look.known, look.empty) == (3, 7, 1, 1, 0, 1)
    assert {each.id: (each.fate, each.owner, each.entries) for each in look.listed} == {
        "s1": (Fate.NEW, "telegram.bot/123", 4),
        "s2": (Fate.NEW, "", 2),
        "s3": (Fate.EMPTY, "", 0),
        "s4": (Fate.NEW, "", 1),
    }
    assert [skipped.where for skipped in look.skipped] == ["title of s4, '2025'"]
    assert await listed(world, home, host, accounts={"telegram": "bot"}) == look
    again = await listed(world, home, host, accounts={"telegram": "bot"}, mode=Mode.LOOK)
    assert again == await listed(world, home, host, accounts={"telegram": "bot"})
    assert (again.sessions, again.known, again.lanes, again.homes) == (0, 3, 0, 0)


async def test_two_routes_into_one_lane_are_one_lane_for_a_look_too(home: Home, world: World, host: Person) -> None:
    for id, used in (("7", "2025-06-15T16:00:00"), ("8", "2025-06-15T17:00:00")):
        home.session(f"s{id}", f"from {id}", source="telegram", user_id=id)
        home.route(f"agent:main:telegram:group:-5:{id}", f"s{id}", chat_id="-5", user_id=id)["updated_at"] = used
    home.route("agent:main:telegram:dm:1", "s7", chat_id="1", user_id="1")
    together = Rules(groups=Sharing.TOGETHER)
    look = await take(world, home, host, rules=together, mode=Mode.LOOK)
    assert look == await take(world, home, host, rules=together)


@pytest.mark.parametrize("mode", list(Mode))
async def test_the_host_s_sessions_are_the_host_s_before_a_gateway_ran(
    home: Home, world: World, host: Person, mode: Mode
) -> None:
    await write_everything(home)
    report = await listed(world, home, host, accounts={"telegram": "bot"}, hosts=(ANN,), mode=mode)
    assert [each.owner for each in report.listed] == [""]
    if mode is Mode.APPLY:
        assert (await titled(world, host, "Trip")).owner == host.id
        assert (await world.store.person(ANN)).id == host.id


async def test_a_platform_without_an_account_is_named(home: Home, world: World, host: Person) -> None:
    await write_everything(home)
    (home.path / ".env").write_text("TELEGRAM_HOME_CHANNEL=123\n")
    report = await listed(world, home, host, mode=Mode.LOOK)
    assert report.strange == ("telegram",)
    assert [skipped.where for skipped in report.skipped] == ["home of telegram"]


async def test_costs_come_along(home: Home, world: World, host: Person) -> None:
    for name in ("input", "output", "cache_read", "cache_write", "reasoning"):
        home.db().execute(f"alter table sessions add column {name}_tokens integer default 0")
    home.db().execute("alter table sessions add column estimated_cost_usd real")
    counts: dict[str, Any] = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 100, "reasoning_tokens": 2}
    home.session("s1", "hello", title="Dear", model="m-1", estimated_cost_usd=0.25, **counts)
    home.session("s2", "hello", title="Free", began=BEGAN + 10)
    await take(world, home, host)
    await take(world, home, host)
    dear, free = await titled(world, host, "Dear"), await titled(world, host, "Free")
    [spent] = await world.store.driver.read(usage.spent, dear.id)
    assert spent.usage == Usage("m-1", 110, 5, 2, 100, 0, 0.25)
    assert await world.store.driver.read(usage.last_size, dear.id) is None
    assert await world.store.driver.read(usage.spent, free.id) == []


@pytest.mark.parametrize(
    ("file", "text", "address", "kind"),
    [
        (".env", "OTHER=1\nTELEGRAM_HOME_CHANNEL=123\n", Address("telegram", "bot", chat="123"), Kind.DM),
        (".env", 'export TELEGRAM_HOME_CHANNEL="-77" # the crew\n', Address("telegram", "bot", chat="-77"), Kind.GROUP),
        (
            ".env",
            "TELEGRAM_HOME_CHANNEL_THREAD_ID=9\nTELEGRAM_HOME_CHANNEL='-77'\n",
            Address("telegram", "bot", chat="-77", thread="9"),
            Kind.GROUP,
        ),
        ("config.yaml", "model: x\nTELEGRAM_HOME_CHANNEL: '123'\n", Address("telegram", "bot", chat="123"), Kind.DM),
    ],
)
async def test_homes_come_along(
    home: Home, world: World, host: Person, file: str, text: str, address: Address, kind: Kind
) -> None:
    await write_everything(home)
    (home.path / file).write_text(text)
    assert (await take(world, home, host, accounts={"telegram": "bot"})).homes == 1
    found = await world.store.driver.read(addresses.home, "telegram", "bot")
    assert found is not None
    assert (found.place.address, found.place.kind, found.by) == (address, kind, host.id)


async def test_a_home_that_is_named_here_stays(home: Home, world: World, host: Person) -> None:
    await write_everything(home)
    here = Place(Address("telegram", "bot", chat="5"), Kind.DM)
    await world.store.driver.write(addresses.set_home, here, host.id, "merge", world.clock())
    (home.path / ".env").write_text("TELEGRAM_HOME_CHANNEL=123\n")
    report = await take(world, home, host, accounts={"telegram": "bot"})
    assert (report.homes, [skipped.where for skipped in report.skipped]) == (0, ["home of telegram"])


async def test_a_home_that_is_not_read_is_told(home: Home, world: World, host: Person) -> None:
    await write_everything(home)
    (home.path / "config.yaml").write_text("platforms:\n  telegram:\n    home_channel:\n      chat_id: 1\n")
    report = await take(world, home, host, accounts={"telegram": "bot"})
    assert [skipped.where for skipped in report.skipped] == ["config.yaml, home_channel"]


# Messages


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        ({"role": "user", "content": "hi"}, (Text("hi"),)),
        ({"role": "user", "content": None}, (Text(""),)),
        ({"role": "user", "content": "a\0b\ud800"}, (Text("a\ufffdb\ufffd"),)),
        (
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
                    {"type": "input_image", "image_url": "https://example.org/x"},
                    {"type": "input_audio", "audio": 1},
                ],
            },
            (
                Text("look"),
                File("", "image/png", "data:image/png;base64,AA"),
                File("", "image/*", "https://example.org/x"),
                Text('{"type": "input_audio", "audio": 1}'),
            ),
        ),
        ({"role": "user", "content": '\0json:[{"type": "text", "text": "look"}]'}, (Text("look"),)),
        ({"role": "tool", "tool_call_id": "c", "content": "a\0"}, (ToolResult("c", "a\ufffd"),)),
        (
            {"role": "tool", "tool_call_id": "c", "content": '\0json:{"a": "\\u0000"}'},
            (ToolResult("c", {"a": "\ufffd"}),),
        ),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"call_id": "c", "name": "f", "arguments": "not json"}],
            },
            (ToolCall("c", "f", "not json"),),
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "[1]"}}]},
            (ToolCall("c", "f", "[1]"),),
        ),
        (
            {"role": "assistant", "content": "x", "reasoning_content": "hm", "codex_reasoning_items": [{"id": "r"}]},
            (Reasoning("hermes", {"reasoning_content": "hm", "codex_reasoning_items": [{"id": "r"}]}), Text("x")),
        ),
        (
            {"role": "assistant", "content": "x", "reasoning_details": '[{"data": "=="}]'},
            (Reasoning("hermes", {"reasoning_details": [{"data": "=="}]}), Text("x")),
        ),
        ({"role": "user", "content": "x", "reasoning": "not a user's"}, (Text("x"),)),
    ],
)
def test_a_message(raw: dict[str, Any], parts: tuple[Part, ...]) -> None:
    message = read_message(raw)
    assert message is not None
    assert message.parts == parts


@pytest.mark.parametrize(
    ("flags", "standing"),
    [
        ({}, HermesStanding.SAID),
        ({"active": 1, "compacted": 0}, HermesStanding.SAID),
        ({"active": 0, "compacted": 0}, HermesStanding.UNDONE),
        ({"active": 0, "compacted": 1}, HermesStanding.COMPACTED),
    ],
)
def test_what_became_of_a_message(flags: dict[str, int], standing: HermesStanding) -> None:
    message = read_message({"role": "user", "content": "x", **flags})
    assert message is not None
    assert message.standing is standing


@pytest.mark.parametrize(
    "raw",
    [
        {"content": "x"},
        {"role": "god", "content": "x"},
        {"role": "assistant", "tool_calls": "{"},
        {"role": "assistant", "tool_calls": ["f"]},
        {"role": "assistant", "reasoning_details": "{"},
        {"role": "user", "content": "\0json:{"},
    ],
)
def test_what_is_no_message(raw: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_message(raw)


@pytest.mark.parametrize(
    ("value", "at"),
    [
        (5, 5.0),
        (5.5, 5.5),
        ("2025-06-15T15:06:40+00:00", BEGAN),
        ("2025-06-15T15:06:40Z", BEGAN),
        (None, None),
        ("", None),
        ("yesterday", None),
        (True, None),
        (-1, None),
        (1e300, None),
        (float("nan"), None),
        ([], None),
    ],
)
def test_a_time(value: Any, at: float | None) -> None:
    assert moment(value) == at


def test_a_time_without_a_zone_is_local() -> None:
    assert moment("2025-06-15T15:06:40") == datetime(2025, 6, 15, 15, 6, 40).astimezone().timestamp()
