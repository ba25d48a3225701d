-- name: unindexed
-- Sessions with entries that can't be found yet.
select id as session, indexed, began_by as owner from sessions where indexed < length order by id limit :count;

-- name: entries_to_index
-- Entries that can't be found yet.
select seq, n, parts from entries where session = :session and n > :n order by n limit :count;

-- name: add_to_index (sqlite)
-- Make an entry findable by its words and by whose session it is.
insert into search (rowid, tokens, owner) values (:seq, :tokens, :owner);

-- name: add_to_index (postgres)
-- Make an entry findable by its words and by whose session it is.
insert into search (seq, tokens)
values (:seq, array_to_tsvector(string_to_array(cast(:tokens as text), ' ') || ('@' || cast(:owner as text))))
on conflict (seq) do nothing;

-- name: indexed
-- How far the index of a session has come.
select indexed from sessions where id = :session;

-- name: indexed_upto
-- The index has come this far, if another process wasn't there first.
update sessions set indexed = :upto where id = :session and indexed = :n;

-- name: search (sqlite)
-- The newest entries of an owner that have all these words.
select {entry}
from search f cross join entries e on e.seq = f.rowid cross join sessions s on s.id = e.session
where f.search match :match and s.owner = :owner
  and not exists (select 1 from deletions d where d.session = e.session and d.n = e.n and d.until is null)
order by f.rowid desc limit :count;

-- name: search (postgres)
-- The newest entries of an owner that have all these words.
select {entry}
from search f join entries e on e.seq = f.seq join sessions s on s.id = e.session
where f.tokens @@ cast(cast(:tsquery as text) as tsquery) and s.owner = :owner
  and not exists (select 1 from deletions d where d.session = e.session and d.n = e.n and d.until is null)
order by f.seq desc limit :count;
