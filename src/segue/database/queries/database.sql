-- name: mark
-- What is written from here on can be taken back.
savepoint mark;

-- name: back_to_mark
-- What was written since the mark is taken back; locks that were taken before it stay.
rollback to mark;

-- name: forget_mark
-- What was written since the mark belongs to the transaction.
release mark;

-- name: hold_name (sqlite)
-- Let nobody else hold this name until the transaction ends; here it has no neighbour.

-- name: hold_name (postgres)
-- Let nobody else hold this name until the transaction ends; another schema's names are others.
select pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || cast(:name as text), 0));

-- name: add_setting
-- A value, unless the name has one: nothing comes back then.
insert into settings (name, value) values (:name, :value) on conflict (name) do nothing {counted};

-- name: set_setting
-- A new value under a name.
insert into settings (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value;

-- name: setting
-- The value under a name.
select value from settings where name = :name;

-- name: count_dead
-- What couldn't ever be sent, and why the newest of it.
select count(*) as count, max(dead) as at,
  (select error from deliveries where dead is not null order by dead desc, id desc limit 1) as why
from deliveries where dead is not null;

-- name: count_letters
-- Arrivals that couldn't be understood, and why the newest.
select count(*) as count, max(at) as at, (select why from letters where retried is null order by id desc limit 1) as why
from letters where retried is null;

-- name: count_all_dead
-- What couldn't be taken in or sent.
select (select count(*) from deliveries where dead is not null) + (select count(*) from letters where retried is null);

-- name: count_late
-- Deliveries that have waited for longer than this, since when, and why the oldest.
select count(*) as count, min(accepted) as at,
  (select error from deliveries where sent is null and dead is null order by accepted, id limit 1) as why
from deliveries where sent is null and dead is null and streaming is null and accepted < {now} - :seconds;

-- name: count_idle
-- Sessions with turns that nobody has taken for longer than this.
select count(*) as count, min(due) as at, null as why from sessions where holder is null and head < tail and due < {now} - :seconds;

-- name: count_failed
-- Turns that failed since one was last answered, when the newest of them ended, and why.
select count(*) as count, max(finished) as at,
  (select error from turns where outcome = 'failed' order by finished desc limit 1) as why
from turns where outcome = 'failed'
  and finished > coalesce((select max(finished) from turns where outcome = 'answered'), 0);

-- name: count_replicas
-- Replicas that are alive, and those that are not and weren't buried.
select coalesce(sum(case when expires >= {now} then 1 else 0 end), 0) as alive,
  coalesce(sum(case when expires < {now} then 1 else 0 end), 0) as gone
from replicas;
