"""Plain SQLite: what a good engineer would write for the same work, without a gateway around it.

One file, WAL, synchronous=FULL, statements prepared once, one transaction to accept a message and one to finish its
turn. No generators, no event loop, no thread between the caller and SQLite.
"""

import asyncio
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from bench.texts import ANSWER, QUESTION, entry

_SCHEMA = """
create table sessions (
  id integer primary key, owner text not null, used real not null, tail integer not null default 0,
  head integer not null default 0, tip integer not null default 0, length integer not null default 0,
  parent integer, parent_tip integer) strict;
create index sessions_of_owner on sessions (owner, used);
create table bindings (
  id integer primary key, chat text not null, session integer not null references sessions (id), since real not null,
  until real) strict;
create unique index bindings_one_a_chat on bindings (chat) where until is null;
create table inbox (
  session integer not null references sessions (id), seq integer not null, chat text not null, message text not null,
  body text not null, at real not null, done real, primary key (session, seq)) strict, without rowid;
create unique index inbox_once on inbox (chat, message);
create table entries (
  id integer primary key, session integer not null references sessions (id), n integer not null, role text not null,
  body text not null, at real not null) strict;
create unique index entries_of_session on entries (session, n);
create table outbox (
  id integer primary key, chat text not null, session integer not null references sessions (id), body text not null,
  at real not null, sent real) strict;
create index outbox_unsent on outbox (chat, id) where sent is null;
create virtual table search using fts5 (tokens, owner, content = '', columnsize = 0, detail = column);
"""
HOST = "host"


def connect(path: Path, vfs: str | None = None) -> apsw.Connection:
    connection = apsw.Connection(str(path), vfs=vfs)
    connection.set_busy_timeout(60_000)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute(
        "pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 4000; "
        "pragma cache_size = -16000; pragma foreign_keys = on"
    )
    return connection


class Raw:
    """The work of a gateway's store as plain functions over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._run = connection.cursor().execute

    def find(self, chat: str) -> int | None:
        """The session that a chat speaks to."""
        row = self._run("select session from bindings where chat = ? and until is null", (chat,)).fetchone()
        return None if row is None else int(row[0])

    def accept(self, chat: str, owner: str, message: str, body: str) -> tuple[int, int]:
        """Take a message in once, for the session of its chat; returns that and the message's number there."""
        at = time.time()
        with _Write(self._run):
            session = self.find(chat)
            if session is None:
                session = self._begin(owner, at)
                self._bind(chat, session, at)
            ((seq,),) = self._run(
                "update sessions set tail = tail + 1, used = ? where id = ? returning tail", (at, session)
            )
            self._run(
                "insert into inbox (session, seq, chat, message, body, at) values (?, ?, ?, ?, ?, ?)",
                (session, seq, chat, message, body, at),
            )
        return session, seq

    def load(self, session: int) -> list[Any]:
        """What was said so far."""
        return self._run(
            "select n, role, body, at from entries where session = ? and n <= (select tip from sessions where id = ?) "
            "order by n",
            (session, session),
        ).fetchall()

    def finish(self, chat: str, session: int, seq: int, asked: str, answer: str) -> None:
        """Both entries, the delivery and the end of the turn."""
        at = time.time()
        with _Write(self._run):
            ((length,),) = self._run(
                "update sessions set head = ?, length = length + 2, tip = length + 2, used = ? where id = ? "
                "returning length",
                (seq, at, session),
            )
            self._run(
                "insert into entries (session, n, role, body, at) values (?, ?, 'user', ?, ?), (?, ?, 'agent', ?, ?)",
                (session, length - 1, asked, at, session, length, answer, at),
            )
            self._run("update inbox set done = ? where session = ? and seq = ?", (at, session, seq))
            self._run("insert into outbox (chat, session, body, at) values (?, ?, ?, ?)", (chat, session, answer, at))

    def newest(self, owner: str) -> list[Any]:
        """The sessions that somebody used last."""
        return self._run(
            "select id, used, tip, length from sessions where owner = ? order by used desc limit 20", (owner,)
        ).fetchall()

    def search(self, word: str, owner: str) -> list[Any]:
        """The newest entries with a word that begins so."""
        return self._run(
            "select e.session, e.n, e.role, e.body, e.at from search f cross join entries e on e.id = f.rowid "
            "where f.search match ? order by f.rowid desc limit 20",
            (f'tokens : "{word}" * AND owner : "{owner}"',),
        ).fetchall()

    def undo(self, session: int) -> None:
        """Take the last exchange back."""
        with _Write(self._run):
            ((start,),) = self._run(
                "select n from entries where session = ? and n <= (select tip from sessions where id = ?) "
                "and role = 'user' order by n desc limit 1",
                (session, session),
            )
            self._run("update sessions set tip = ?, used = ? where id = ?", (start - 1, time.time(), session))

    def rebind(self, chat: str, session: int) -> None:
        """Let a chat speak to another session."""
        with _Write(self._run):
            self._bind(chat, session, time.time())

    def fork(self, chat: str, source: int) -> None:
        """A new session that begins where another one stands."""
        at = time.time()
        with _Write(self._run):
            ((session,),) = self._run(
                "insert into sessions (owner, used, parent, parent_tip) select owner, ?, id, tip from sessions "
                "where id = ? returning id",
                (at, source),
            )
            self._bind(chat, session, at)

    def populate(self, conversations: Sequence[tuple[str, str]], exchanges: int, dice: random.Random) -> None:
        """Conversations in which so many exchanges were had."""
        with _Write(self._run):
            for chat, owner in conversations:
                at = time.time()
                session = self._begin(owner, at)
                self._bind(chat, session, at)
                said = [(session, n, ("agent", "user")[n % 2], entry(dice), at) for n in range(1, 2 * exchanges + 1)]
                self.connection.executemany(
                    "insert into entries (session, n, role, body, at) values (?, ?, ?, ?, ?)", said
                )
                self._run("update sessions set tip = ?, length = ? where id = ?", (len(said), len(said), session))

    def index(self) -> None:
        """Make every entry findable."""
        with _Write(self._run):
            self._run(
                "insert into search (rowid, tokens, owner) "
                "select e.id, e.body, s.owner from entries e join sessions s on s.id = e.session"
            )

    def _begin(self, owner: str, at: float) -> int:
        ((session,),) = self._run("insert into sessions (owner, used) values (?, ?) returning id", (owner, at))
        return int(session)

    def _bind(self, chat: str, session: int, at: float) -> None:
        self._run("update bindings set until = ? where chat = ? and until is null", (at, chat))
        self._run("insert into bindings (chat, session, since) values (?, ?, ?)", (chat, session, at))


class _Write:
    """One durable transaction."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def __enter__(self) -> None:
        self._run("begin immediate")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._run("commit" if kind is None else "rollback")


class RawStore:
    """Turns over plain SQLite."""

    def __init__(self, path: Path, at_once: int = 64, vfs: str | None = None) -> None:
        self.name = "raw SQLite"
        self._path = path
        self._vfs = vfs
        new = not path.exists()
        self.raw = Raw(connect(path, vfs))
        if new:
            self.raw.connection.execute(_SCHEMA)
        self._at_once = at_once
        self._run = secrets.token_hex(4)
        self._messages = 0

    def close(self) -> None:
        self.raw.connection.close()

    async def turns(self, conversations: Sequence[int]) -> float:
        began = time.perf_counter()
        for number in conversations:
            chat, owner = who(number)
            session, seq = self.raw.accept(chat, owner, self._message(), QUESTION)
            self.raw.load(session)
            self.raw.finish(chat, session, seq, QUESTION, ANSWER)
        return time.perf_counter() - began

    async def accepts(self, conversations: Sequence[int]) -> list[float]:
        """Seconds of each accept; its turn is finished off the clock."""
        taken = []
        for number in conversations:
            chat, owner = who(number)
            message = self._message()
            began = time.perf_counter()
            session, seq = self.raw.accept(chat, owner, message, QUESTION)
            taken.append(time.perf_counter() - began)
            self.raw.finish(chat, session, seq, QUESTION, ANSWER)
        return taken

    async def together(self, conversations: Sequence[int]) -> float:
        """As many workers as asked for share the connection under a lock."""
        lock = threading.Lock()

        def turn(number: int, message: str) -> None:
            chat, owner = who(number)
            with lock:
                session, seq = self.raw.accept(chat, owner, message, QUESTION)
            with lock:
                self.raw.load(session)
            with lock:
                self.raw.finish(chat, session, seq, QUESTION, ANSWER)

        return await asyncio.to_thread(self._share_out, conversations, lambda: turn)

    async def together_apart(self, conversations: Sequence[int]) -> float:
        """As many workers as asked for, each with a connection of its own."""

        def worker() -> Callable[[int, str], None]:
            own = Raw(connect(self._path, self._vfs))

            def turn(number: int, message: str) -> None:
                chat, owner = who(number)
                session, seq = own.accept(chat, owner, message, QUESTION)
                own.load(session)
                own.finish(chat, session, seq, QUESTION, ANSWER)

            return turn

        return await asyncio.to_thread(self._share_out, conversations, worker)

    def _share_out(self, conversations: Sequence[int], worker: Callable[[], Callable[[int, str], None]]) -> float:
        left: Iterator[tuple[int, str]] = iter([(number, self._message()) for number in conversations])
        taking = threading.Lock()
        failures: list[BaseException] = []

        def work(turn: Callable[[int, str], None]) -> None:
            try:
                while True:
                    with taking:
                        job = next(left, None)
                    if job is None:
                        return
                    turn(*job)
            except BaseException as error:  # noqa: BLE001 - told by the caller
                failures.append(error)

        threads = [threading.Thread(target=work, args=(worker(),)) for _ in range(self._at_once)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return time.perf_counter() - began

    def _message(self) -> str:
        self._messages += 1
        return f"{self._run}.{self._messages}"


def who(number: int) -> tuple[str, str]:
    """The chat and the owner of a conversation: every second one is the host's."""
    return f"telegram/bot/c{number}", HOST if number % 2 else f"u{number}"
