-- columns: entry
-- An entry `e`; one that its author took back says only that.
e.session, e.n, e.parent_session, e.parent as parent_n, e.role, e.person, e.name, case when exists (
  select 1 from deletions d where d.session = e.session and d.n = e.n and d.until is null)
  then '[{"type":"aside","text":"Whoever said this took it back."}]' else e.parts end as parts, e.at, e.turn, e.identity, e.address

-- name: end_of
-- Where a session ends, held until the transaction does.
select tip_session, tip as tip_n, length from sessions where id = :session {for_update};

-- name: add_entry
-- One more entry.
insert into entries (session, n, parent_session, parent, role, person, name, parts, at, turn, identity, address)
values (:session, :n, :parent_session, :parent, :role, :person, :name, :parts, :at, :turn, :identity, :address);

-- name: set_tip
-- A session ends here from now on.
update sessions set tip_session = :tip_session, tip = :tip, length = :length,
  used = case when used < :at then :at else used end where id = :session;

-- name: entries_upto
-- The entries of a session from this one back.
select {entry} from entries e where e.session = :session and e.n <= :n order by e.n desc limit :count;

-- name: entry
-- One entry.
select {entry} from entries e where e.session = :session and e.n = :n;

-- name: first_question
-- The first entry of a session's own that a person said.
select {entry} from entries e where e.session = :session and e.role = 'person' order by e.n limit 1;

-- name: count_said
-- How many messages of people and the agent lead to where a session ends.
with recursive path (session, n) as (
  select tip_session, tip from sessions where id = :session and tip is not null
  union all
  select e.parent_session, e.parent from path p join entries e on e.session = p.session and e.n = p.n
  where e.parent is not null
)
select count(*) from path p join entries e on e.session = p.session and e.n = p.n where e.role <> 'gateway';

-- name: entries_since
-- All entries of a session from this one on, whichever branch they are on.
select {entry} from entries e where e.session = :session and e.n > :n order by e.n limit :count;

-- name: links
-- How the entries of a session hang together, those before this one, the newest first.
select n, parent_session, parent as parent_n from entries where session = :session and n < :before order by n desc limit :count;

-- name: add_tip_move
-- The record of a tip that moved.
insert into tips (session, from_session, from_n, to_session, to_n, why, by_person, at)
values (:session, :from_session, :from_n, :to_session, :to_n, :why, :by, :at);

-- name: tip_moves
-- How a session's tip has moved, newest first.
select from_session as before_session, from_n as before_n, to_session as after_session, to_n as after_n, why, by_person as "by", at from tips where session = :session
order by id desc limit :count;

-- name: add_usage
-- What a turn cost.
insert into usage (session, turn, model, input, output, reasoning, cache_read, cache_write, cost, size, at)
values (:session, :turn, :model, :input, :output, :reasoning, :cache_read, :cache_write, :cost, :size, :at)
on conflict (session, turn, model) do update set input = usage.input + excluded.input,
  output = usage.output + excluded.output, reasoning = usage.reasoning + excluded.reasoning,
  cache_read = usage.cache_read + excluded.cache_read, cache_write = usage.cache_write + excluded.cache_write,
  cost = coalesce(usage.cost + excluded.cost, usage.cost, excluded.cost), size = excluded.size, at = excluded.at;

-- name: last_size
-- How large the last request of a session was, and the turn that made it.
select turn, max(size) as tokens from usage where session = :session and size > 0 group by turn order by turn desc limit 1;

-- name: asked_in
-- What people asked in a turn, as entries, in order.
select n from entries where session = :session and turn = :turn and role = 'person' order by n;

-- name: asked_again
-- The last turn that asked again what somebody had asked in an entry: it follows the same one and says the same.
select e.turn from entries e join entries f on f.session = e.session and f.n = :n
join turns t on t.session = e.session and t.seq = e.turn
where e.session = :session and e.n > f.n and t.kind = 'retry' and e.role = 'person' and e.person = f.person
  and e.parent_session is not distinct from f.parent_session and e.parent is not distinct from f.parent
  and e.parts = f.parts
order by e.n desc limit 1;

-- name: delete_entry
-- Hide an entry from now on.
insert into deletions (session, n, by_person, since) values (:session, :n, :person, :at)
on conflict (session, n) where until is null do nothing;

-- name: last_deletion
-- What a person took back last of all that leads to where a session ends.
select d.session, d.since from deletions d where d.session = :session and d.by_person = :person and d.until is null
order by d.id desc limit 1;

-- name: undelete
-- Show again what a person took back in one go.
update deletions set until = :at where session = :session and by_person = :person and since = :since and until is null
returning n;

-- name: usage_of
-- What a session cost, by model.
select model, cast(sum(input) as bigint) as input, cast(sum(output) as bigint) as output,
  cast(sum(reasoning) as bigint) as reasoning, cast(sum(cache_read) as bigint) as cache_read,
  cast(sum(cache_write) as bigint) as cache_write, sum(cost) as cost, count(distinct turn) as turns
from usage where session = :session group by model order by model;

-- name: costs_of
-- What each turn of a session cost.
select turn, model, input, output, reasoning, cache_read, cache_write, cost, size, at
from usage where session = :session order by turn, model;

-- name: unindexed
-- Sessions with entries that can't be found yet.
select id as session, indexed, began_by as owner from sessions where indexed < length order by id limit :count;

-- name: entries_to_index
-- Entries that can't be found yet.
select seq, n, parts from entries where session = :session and n > :n order by n limit :count;

-- name: add_to_index (sqlite)
-- Make an entry findable by its words and by whose session it is, unless it was forgotten meanwhile.
insert into search (rowid, tokens, owner) select e.seq, :tokens, :owner from entries e
where e.seq = :seq and (e.parts not like '[{"type":"stone"%' or e.parts like '%"type":"text"%');

-- name: add_to_index (postgres)
-- Make an entry findable by its words and by whose session it is, unless it was forgotten meanwhile.
insert into search (seq, tokens)
select e.seq, array_to_tsvector(string_to_array(cast(:tokens as text), ' ') || ('@' || cast(:owner as text)))
from entries e where e.seq = :seq and (e.parts not like '[{"type":"stone"%' or e.parts like '%"type":"text"%') for share
on conflict (seq) do nothing;

-- name: indexed
-- How far the index of a session has come.
select indexed from sessions where id = :session;

-- name: indexed_upto
-- The index has come this far, if another process wasn't there first and nobody has locked the session: who forgets
-- locks it before its entries, and the index has locked entries by now.
update sessions set indexed = :upto
where id in (select id from sessions where id = :session and indexed = :n {skip_locked}) returning id;

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
