"""Plain asyncpg: the turns of bench.raw on a PostgreSQL server, one transaction to accept and one to finish."""

import asyncio
import secrets
import time
from collections.abc import Sequence

import asyncpg

from bench.raw import who
from bench.texts import ANSWER, QUESTION

_SCHEMA = """
create schema raw;
set search_path to raw;
create table sessions (
  id bigint generated always as identity primary key, owner text not null, used double precision not null,
  tail bigint not null default 0, head bigint not null default 0, tip bigint not null default 0,
  length bigint not null default 0);
create index sessions_of_owner on sessions (owner, used);
create table bindings (
  id bigint generated always as identity primary key, chat text not null,
  session bigint not null references sessions (id), since double precision not null, until double precision);
create unique index bindings_one_a_chat on bindings (chat) where until is null;
create table inbox (
  session bigint not null references sessions (id), seq bigint not null, chat text not null, message text not null,
  body text not null, at double precision not null, done double precision, primary key (session, seq));
create unique index inbox_once on inbox (chat, message);
create table entries (
  id bigint generated always as identity primary key, session bigint not null references sessions (id),
  n bigint not null, role text not null, body text not null, at double precision not null);
create unique index entries_of_session on entries (session, n);
create table outbox (
  id bigint generated always as identity primary key, chat text not null,
  session bigint not null references sessions (id), body text not null, at double precision not null,
  sent double precision);
create index outbox_unsent on outbox (chat, id) where sent is null;
"""


_Connection = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy


class RawServer:
    """Turns over plain asyncpg, with as many connections as Segue has."""

    def __init__(self, pool: asyncpg.Pool, at_once: int) -> None:
        self.name = "raw asyncpg"
        self._pool = pool
        self._at_once = at_once
        self._run = secrets.token_hex(4)
        self._messages = 0

    @classmethod
    async def open(cls, dsn: str, at_once: int = 64) -> "RawServer":
        first = await asyncpg.connect(dsn)
        await first.execute(_SCHEMA)
        await first.close()
        pool = await asyncpg.create_pool(dsn, min_size=1, max_size=10, server_settings={"search_path": "raw"})
        return cls(pool, at_once)

    async def close(self) -> None:
        await self._pool.close()

    async def populate(self, conversations: Sequence[int]) -> None:
        """Conversations that were begun."""
        async with self._pool.acquire() as connection, connection.transaction():
            for chat, owner in map(who, conversations):
                session = await connection.fetchval(
                    "insert into sessions (owner, used) values ($1, $2) returning id", owner, time.time()
                )
                await connection.execute(
                    "insert into bindings (chat, session, since) values ($1, $2, $3)", chat, session, time.time()
                )

    async def turns(self, conversations: Sequence[int]) -> float:
        began = time.perf_counter()
        for number in conversations:
            await self._turn(number)
        return time.perf_counter() - began

    async def together(self, conversations: Sequence[int]) -> float:
        left = iter(conversations)

        async def work() -> None:
            for number in left:
                await self._turn(number)

        began = time.perf_counter()
        await asyncio.gather(*[work() for _ in range(self._at_once)])
        return time.perf_counter() - began

    async def _turn(self, number: int) -> None:
        chat, _ = who(number)
        self._messages += 1
        async with self._pool.acquire() as connection, connection.transaction():
            session, seq = await self._accept(connection, chat, f"{self._run}.{self._messages}")
        async with self._pool.acquire() as connection:
            await connection.fetch(
                "select n, role, body, at from entries where session = $1 and n <= "
                "(select tip from sessions where id = $1) order by n",
                session,
            )
        async with self._pool.acquire() as connection, connection.transaction():
            await self._finish(connection, chat, session, seq)

    async def _accept(self, connection: _Connection, chat: str, message: str) -> tuple[int, int]:
        at = time.time()
        session = await connection.fetchval("select session from bindings where chat = $1 and until is null", chat)
        seq = await connection.fetchval(
            "update sessions set tail = tail + 1, used = $1 where id = $2 returning tail", at, session
        )
        await connection.execute(
            "insert into inbox (session, seq, chat, message, body, at) values ($1, $2, $3, $4, $5, $6)",
            session,
            seq,
            chat,
            message,
            QUESTION,
            at,
        )
        return session, seq

    async def _finish(self, connection: _Connection, chat: str, session: int, seq: int) -> None:
        at = time.time()
        length = await connection.fetchval(
            "update sessions set head = $1, length = length + 2, tip = length + 2, used = $2 where id = $3 "
            "returning length",
            seq,
            at,
            session,
        )
        await connection.execute(
            "insert into entries (session, n, role, body, at) "
            "values ($1, $2, 'user', $3, $6), ($1, $4, 'agent', $5, $6)",
            session,
            length - 1,
            QUESTION,
            length,
            ANSWER,
            at,
        )
        await connection.execute("update inbox set done = $1 where session = $2 and seq = $3", at, session, seq)
        await connection.execute(
            "insert into outbox (chat, session, body, at) values ($1, $2, $3, $4)", chat, session, ANSWER, at
        )
