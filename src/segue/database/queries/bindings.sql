-- columns: bound
a.kind, a.name, a.topic, b.session, s.owner, case when b.since > s.used then b.since else s.used end as used, s.head, s.tail,
  b.session is not null and s.sweep is null as over,
  exists (select 1 from questions x where x.lane = l.key and x.state = 'open') as asked

-- name: bound
-- The session that a lane speaks to, with how it stands: when it was last used or came here, what waits, and whether it
-- was found to be over and nothing but its ending was asked of it since.
select {bound}
from lanes l join addresses a on a.key = l.address
left join bindings b on b.lane = l.key and b.until is null
left join sessions s on s.id = b.session
where l.key = :lane;

-- columns: has_left
-- Whether the lane in which a turn was asked has no part in its session any more.
coalesce((select min(case when b.parted is null then 0 else 1 end)
  from bindings b where b.lane = t.lane and b.session = t.session), 0) = 1

-- columns: turn_left
-- Whether other people read the place by now in which a turn is answered.
case when t.lane is null then exists (select 1 from addresses w where w.key = t.route and w.afresh > t.accepted)
  else {has_left} end

-- name: left_by_turn
-- Whether other people read the place by now in which a turn is answered.
select 1 from turns t where t.session = :session and t.seq = :turn and {turn_left};

-- name: left_by_place
-- Whether a place has no part in a session any more that its lanes spoke to: it was somebody's private chat then.
select 1 where exists (select 1 from bindings b join lanes l on l.key = b.lane
    where b.session = :session and l.address = :address and b.parted is not null)
  and not exists (select 1 from bindings b join lanes l on l.key = b.lane
    where b.session = :session and l.address = :address and b.parted is null);

-- name: been_here
-- Whether a lane has ever spoken to a session.
select 1 from bindings where lane = :lane and session = :session and parted is null limit 1;

-- name: begun_here
-- How many open sessions began in a lane and had anything said in them, counted no further than asked: an empty one is
-- in no list, so nobody could close it.
select count(*) from (select 1 from sessions where origin = :lane and closed is null
  and (tip is not null or length > 0 or tail > 0) limit :most) as open_here;

-- name: add_move
-- The record of a move.
insert into moves (id, kind, lane, session, by_person, at) values (:move, :kind, :lane, :session, :by, :at);

-- name: end_binding
-- A lane's binding ends; nothing comes back if it had none.
update bindings set until = case when since > :at then since else :at end, ended_why = :why, ended_move = :move
where lane = :lane and until is null returning session, until;

-- name: add_binding
-- A lane speaks to a session from now on, and not before anything that it spoke to has ended: clocks may differ, and what
-- a folded lane brought along stands among the newest rows.
insert into bindings (lane, session, since, why, by_person, move)
values (:lane, :session, coalesce((select case when max(newest.until) > :at then max(newest.until) end
  from (select until from bindings where lane = :lane order by id desc limit 64) as newest), :at), :why, :by, :move);

-- name: add_past_binding
-- A lane takes over what another lane that was folded into it has spoken to.
insert into bindings (lane, session, since, until, why, ended_why, by_person, move, ended_move)
values (:lane, :session, :at, :at, :why, :why, :by, :move, :move);

-- name: last_use
-- What a lane speaks to, since when, and when somebody last spoke there.
select b.session, b.since, (select max(t.accepted) from turns t where t.session = b.session and t.lane = b.lane) as spoke
from bindings b where b.lane = :lane and b.until is null;

-- name: move_started
-- The bindings that a move left behind.
select lane, session from bindings where move = :move and ended_move is distinct from :move order by lane;

-- name: move_ended
-- The bindings that a move found and ended.
select lane, session from bindings where ended_move = :move and move <> :move order by lane;

-- name: spoke_before
-- What a lane spoke to before a move, by which move it did, and whether that was another chat's. Before two chats were
-- parted is before they were merged.
select b.session, b.move, s.closed is not null as closed, b.parted is not null as parted
from bindings b join sessions s on s.id = b.session
where b.lane = :lane and b.ended_move <> b.move
  and (b.ended_move = :move or b.ended_move = (select id from chat_merges where parted_by = :move))
order by b.id desc limit 1;

-- name: last_move
-- The newest move of a lane that was not taken back.
select m.id, m.kind, m.at, b.why, b.session from moves m left join bindings b on b.move = m.id and b.lane = m.lane
where m.lane = :lane and m.undone is null and m.kind <> 'undo' order by m.seq desc limit 1;

-- name: last_undo
-- The session that a lane left when its newest move took another back.
select b.session, m.at from moves m join bindings b on b.ended_move = m.id and b.lane = m.lane
where m.seq = (select max(seq) from moves where lane = :lane) and m.kind = 'undo';

-- name: move
-- One move.
select kind, session from moves where id = :move;

-- name: undo_move
-- A move was taken back; nothing comes back if somebody was first.
update moves set undone = :at where id = :move and undone is null returning id;

-- name: lane_history
-- What a lane has spoken to, newest first.
select lane, session, since, until, why, ended_why, by_person as "by" from bindings where lane = :lane order by id desc limit :count;

-- name: session_history
-- Where a session has been spoken to, newest first.
select lane, session, since, until, why, ended_why, by_person as "by" from bindings where session = :session order by id desc limit :count;

-- name: lanes_bound
-- The lanes that speak to a session now, the newest first.
select lane from bindings where session = :session and until is null order by id desc;

-- name: read_by
-- A lane's place has read a session as it stands.
insert into readings (address, session, n)
select l.address, s.tip_session, s.tip from lanes l join sessions s on s.id = :session
where l.key = :lane and s.tip is not null
on conflict do nothing;

-- name: read_by_all
-- Every place that speaks to a session has read it as it stands.
insert into readings (address, session, n)
select distinct l.address, s.tip_session, s.tip from sessions s
join bindings b on b.session = s.id and b.until is null join lanes l on l.key = b.lane
where s.id = :session and s.tip is not null
on conflict do nothing;

-- name: read_like
-- One place has read all that another has: they are one.
insert into readings (address, session, n)
select a.key, r.session, r.n from readings r join addresses a on a.key = :to where r.address = :address
on conflict do nothing;

-- name: read_on
-- Where a turn was asked for, or where its answer goes if no lane asked for it, people who aren't in the session any
-- more read that answer, if they had read all before it.
with there (address) as (
  select coalesce((select l.address from lanes l where l.key = t.lane), a.key) from turns t
  left join addresses a on a.key = t.route where t.session = :session and t.seq = :turn
)
insert into readings (address, session, n)
select t.address, cast(:to_session as text), cast(:to_n as bigint) from there t
where t.address is not null and (cast(:n as bigint) is null or exists (
  select 1 from readings r where r.address = t.address and r.session = :from_session and r.n = cast(:n as bigint)))
on conflict do nothing;

-- name: speaks_there
-- Whether any lane of a place speaks to a session.
select 1 from bindings b join lanes l on l.key = b.lane
where b.session = :session and b.until is null and l.address = :address limit 1;

-- name: waits_elsewhere
-- How many turns of a session run or wait that were asked for in other places.
select count(*) from sessions s join turns t on t.session = s.id and t.seq > s.head and t.outcome is null
where s.id = :session and not exists (select 1 from lanes l where l.key = t.lane and l.address = :address
  and not ({has_left}));

-- name: has_read
-- Whether a place has read up to the very entry.
select 1 from readings where address = :address and session = :session and n = :n;

-- name: unread
-- How many entries lead to a tip that a place hasn't read, and how many of them people or the agent said.
with recursive line (id, parent) as (
  select id, parent from sessions where id = :session
  union all
  select s.id, s.parent from line join sessions s on s.id = line.parent
), tree (id) as (
  select id from line where parent is null
  union all
  select s.id from tree join sessions s on s.parent = tree.id
), known (session, n) as (
  select r.session, r.n from tree join readings r on r.address = :address and r.session = tree.id
  union
  select s.tip_session, s.tip from lanes l join bindings b on b.lane = l.key and b.until is null
  join sessions s on s.id = b.session join tree on tree.id = s.id where l.address = :address and s.tip is not null
), had (session, n) as (
  select session, n from known
  union
  select e.parent_session, e.parent from had join entries e on e.session = had.session and e.n = had.n
  where e.parent is not null
), path (session, n) as (
  select session, n from entries where session = :session and n = :n
  union all
  select e.parent_session, e.parent from path p join entries e on e.session = p.session and e.n = p.n
  where e.parent is not null
)
select count(*) as entries, cast(coalesce(sum(case when e.role = 'gateway' then 0 else 1 end), 0) as bigint) as said
from path p join entries e on e.session = p.session and e.n = p.n
where not exists (select 1 from had where had.session = p.session and had.n = p.n);

-- name: been_there
-- Whether any lane of a place has ever spoken to a session.
select 1 from bindings b join lanes l on l.key = b.lane where b.session = :session and l.address = :address
  and b.parted is null limit 1;

-- name: askers
-- The places in which people asked for what a child was asked, by way of other sessions too; an empty one for what
-- nobody asked in a place.
with recursive up (session, lane, asked_by, asked_in) as (
  select t.session, t.lane, t.asked_by, t.asked_in from sessions s join turns t on t.session = s.id
  where s.id = :session and s.depth > 0
  union
  select t.session, t.lane, t.asked_by, t.asked_in from up join turns t on t.session = up.asked_by and t.seq = up.asked_in
  where up.lane is null
)
select distinct coalesce(l.address, '') as address from up
left join lanes l on l.key = up.lane and coalesce((select min(case when b.parted is null then 0 else 1 end)
  from bindings b where b.lane = up.lane and b.session = up.session), 0) = 0
where up.lane is not null or up.asked_by is null;

-- name: asked_through
-- The turns by way of which a child was asked and that nobody asked for in a place, by their sessions and last entries.
with recursive up (session, seq, lane, asked_by, asked_in) as (
  select t.session, t.seq, t.lane, t.asked_by, t.asked_in from sessions s join turns t on t.session = s.id
  where s.id = :session and s.depth > 0
  union
  select t.session, t.seq, t.lane, t.asked_by, t.asked_in
  from up join turns t on t.session = up.asked_by and t.seq = up.asked_in where up.lane is null
)
select up.session, max(e.n) as n from up left join entries e on e.session = up.session and e.turn = up.seq
where up.lane is null and up.session <> :session group by up.session, up.seq;

-- name: shared_places
-- The places that speak to a session and that many people read, the newest first.
select {place} from bindings b join lanes l on l.key = b.lane join addresses a on a.key = l.address
where b.session = :session and b.until is null and a.kind <> 'dm' order by b.id desc;

-- name: readers_now
-- The places that read what a session says from now on, or one that it was started by: all but private ones in which
-- nobody but its owner has spoken; those too, if it is somebody else who asks.
with recursive line (id, parent, depth, owner) as (
  select id, parent, depth, owner from sessions where id = :session
  union all
  select s.id, s.parent, s.depth, s.owner from line join sessions s on s.id = line.parent where line.depth > 0
)
select distinct l.address from line {cross_join} bindings b on b.session = line.id and b.until is null
{cross_join} lanes l on l.key = b.lane {cross_join} addresses a on a.key = l.address
where a.kind <> 'dm' or line.owner <> :person or exists (
  select 1 from turns t join identities i on i.key = t.identity
  where t.session = b.session and t.lane = b.lane and i.person <> line.owner)
order by l.address;

-- name: reads_since
-- Whether a place reads a session, or one that it was started by, only since some time.
with recursive line (id, parent, depth) as (
  select id, parent, depth from sessions where id = :session
  union all
  select s.id, s.parent, s.depth from line join sessions s on s.id = line.parent where line.depth > 0
)
select 1 where not exists (
  select 1 from line join bindings b on b.session = line.id and b.until is null join lanes l on l.key = b.lane
  where l.address = :address and b.since <= :at);

-- name: first_asked
-- When something was first asked of a session.
select min(accepted) from turns where session = :session having min(accepted) is not null;

-- name: last_own
-- The session of a person's that they used last and nobody else reads: no child, and none that a shared place speaks to.
select {session} from sessions s left join titles t on t.session = s.id and t.until is null
where s.owner = :owner and s.closed is null and s.depth = 0 and (s.tip is not null or s.length > 0 or s.tail > 0)
  and not exists (select 1 from bindings b join lanes l on l.key = b.lane join addresses a on a.key = l.address
    where b.session = s.id and b.until is null and a.kind <> 'dm')
order by s.used desc, s.id desc limit 1;

-- name: untold
-- The newest answers of a session that had nowhere to go since it was last spoken to, and that lead to where it ends: who
-- goes back to it may read no others.
with recursive nowhere (n, parts) as (
  select e.n, e.parts from turns t join entries e on e.session = t.session and e.turn = t.seq and e.role = 'agent'
  where t.session = :session and t.route = '' and t.kind in ('result', 'sent', 'scheduled')
    and t.finished > coalesce((select max(b.until) from bindings b where b.session = :session), 0)
), path (n) as (
  select tip from sessions where id = :session and tip_session = :session
  union all
  select e.parent from path p join entries e on e.session = :session and e.n = p.n
  where e.parent_session = :session and e.parent >= (select min(n) from nowhere)
)
select u.parts from nowhere u join path p on p.n = u.n order by u.n desc limit :count;
