"""The cost of a forgetting: four times as many turns take four times the work, counted in SQLite's steps."""

from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from segue.changes.forgetting import erasure
from segue.changes.forgetting.erasure import Cause, Reason
from segue.core.contracts.wakes import Wake
from segue.core.values import PersonId, SessionId
from segue.database.sqlite_file import SqliteFile
from segue.database.statements import SQLITE, compile_for, migrations
from segue.database.transactions import one_by_one, unheeded
from tests.today import file_of_today

_SESSION = """
insert into persons (id, name, since) values ('p', 'ann', 1);
insert into sessions (id, owner, began_by, began, used, tip_session, tip, length, indexed, head, tail)
values ('s', 'p', 'p', 1, 1, 's', 2 * :turns, 2 * :turns, 0, :turns, :turns);
insert into turns (session, seq, kind, route, person, name, message, quotes, parts, accepted, trace, outcome, finished)
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :turns)
select 's', n, 'arrival', 'telegram/bot//c/', 'p', 'ann', 'm' || n, '',
  '[{"type":"text","text":"question ' || n || '"}]', 1, '', 'answered', 1 from numbers;
insert into entries (session, n, parent_session, parent, role, person, name, parts, at, turn, identity, address)
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 2 * :turns)
select 's', n, case when n > 1 then 's' end, nullif(n - 1, 0), case n % 2 when 1 then 'person' else 'agent' end, 'p',
  '', '[{"type":"text","text":"words ' || n || '"}]', 1, (n + 1) / 2, '', '' from numbers;
"""


def steps_to_forget(path: Path, turns: int) -> int:
    """How many hundreds of SQLite's steps it takes to forget a session of so many turns."""
    counted = 0

    def count() -> bool:
        nonlocal counted
        counted += 1
        return False

    queries = compile_for(SQLITE)
    file = SqliteFile(Path(file_of_today(path)), lambda: 0.0, 5.0, None)
    with closing(file.writer(migrations(SQLITE), unheeded)) as connection:
        connection.execute("pragma foreign_keys = off; begin")
        connection.execute(_SESSION, {"turns": turns})
        reason = Reason(PersonId("p"), Cause.ASKED, 2.0)
        steps = one_by_one(erasure.session(SessionId("s"), reason))
        rows: Any = None
        connection.set_progress_handler(count, 100)
        with suppress(StopIteration):
            while True:
                step = steps.send(rows)
                rows = []
                if not isinstance(step, Wake) and (query := queries[step.name]).sql:
                    rows = connection.execute(query.sql, step.arguments).fetchall()
        connection.set_progress_handler(None)
        assert connection.execute("select count(*) from erasures").fetchall() == [(2 * turns,)]
        connection.execute("rollback")
    return counted


def test_four_times_as_many_turns_take_four_times_the_work(tmp_path: Path) -> None:
    few, many = (steps_to_forget(tmp_path / f"{turns}.db", turns) for turns in (100, 400))
    assert many < 5 * few


def steps_to_find(path: Path, turns: int) -> int:
    """How many of SQLite's steps it takes to find all that a person said in another's session of so many turns."""
    counted = 0

    def count() -> bool:
        nonlocal counted
        counted += 1
        return False

    file = SqliteFile(Path(file_of_today(path)), lambda: 0.0, 5.0, None)
    with closing(file.writer(migrations(SQLITE), unheeded)) as connection:
        connection.execute("pragma foreign_keys = off; begin")
        connection.execute(_SESSION, {"turns": turns})
        connection.execute("update sessions set owner = 'another'")
        connection.set_progress_handler(count, 10)
        found, queries = 0, compile_for(SQLITE)
        after: Any = 0
        while rows := connection.execute(queries["said_by"].sql, {"person": "p", "after": after}).fetchall():
            [(_, _, after)] = rows
            found += 1
        connection.set_progress_handler(None)
        assert found == 2 * turns
        connection.execute("rollback")
    return counted


def test_four_times_as_many_words_of_a_person_are_found_in_four_times_the_work(tmp_path: Path) -> None:
    few, many = (steps_to_find(tmp_path / f"{turns}.db", turns) for turns in (100, 400))
    assert many < 5 * few
