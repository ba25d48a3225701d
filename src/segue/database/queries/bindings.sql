-- name: bound
-- The session that a lane speaks to, with how it stands: when it was last used or came here, what waits, and whether it
-- was found to be over and nothing but its ending was asked of it since.
select b.session, case when b.since > s.used then b.since else s.used end as used, s.head, s.tail, a.kind, a.name, a.topic,
  b.session is not null and s.sweep is null as over
from lanes l join addresses a on a.key = l.address
left join bindings b on b.lane = l.key and b.until is null
left join sessions s on s.id = b.session
where l.key = :lane;

-- name: been_here
-- Whether a lane has ever spoken to a session.
select 1 from bindings where lane = :lane and session = :session limit 1;

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
