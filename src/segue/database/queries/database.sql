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

-- name: begin_file
-- The bytes of a file begin to come.
insert into file_contents (id, begun) values (:id, {now});

-- name: add_file_chunk
-- The next of them.
insert into file_chunks (content, n, bytes) values (:content, :n, :bytes);

-- name: name_file
-- All are here, under a path; what comes back is whose bytes the path has, those of an earlier file if there was one.
insert into files (path, content, size, kept) values (:path, :content, :size, {now})
on conflict (path) do update set kept = excluded.kept returning content;

-- name: end_file
-- Nothing is missing of these bytes.
update file_contents set begun = null where id = :id;

-- name: drop_file_content
-- Bytes that no path has go.
delete from file_contents where id = :id;

-- name: drop_file_halves
-- Bytes that began to come by then and never became a file go.
delete from file_contents where begun <= :until returning id;

-- name: stored_file
-- A file by its path.
select content, size from files where path = :path;

-- name: file_chunk
-- One piece of its bytes.
select bytes from file_chunks where content = :content and n = :n;

-- name: stored_files
-- A page of the files between two paths that were kept in a time.
select path from files
where path > :after and path < :last and kept > :since and kept <= :until order by path limit :count;

-- name: stored_files_of
-- Those of some paths that there are files at.
select path from files where path in (select value from {each}(:paths));

-- name: drop_file
-- A file that wasn't kept again since then has no path any more; whose bytes it had.
delete from files where path = :path and kept <= :until returning content;

-- name: database_time
-- The time by the database's clock.
select {now} as at;
