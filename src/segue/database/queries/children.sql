-- columns: child
-- A session `s` that another one started, with its title `t`.
s.id, s.label, s.ending, s.closed is not null as closed, s.head < s.tail as busy, s.used,
  {shown_title} as title, s.origin as lane

-- name: standing
-- How a session stands towards those that its owner's agents could ask it.
select owner, closed is not null as closed, ending, label, parent, depth from sessions where id = :session;

-- name: forebears
-- A session and those that started it, the nearest first.
with recursive line (id, parent, depth) as (
  select id, parent, depth from sessions where id = :session
  union all
  select s.id, s.parent, s.depth from line join sessions s on s.id = line.parent where line.depth > 0
)
select id from line order by depth desc;

-- name: asking_lane
-- The lane in which somebody asked for what came to be a turn.
with recursive up (session, seq, lane, asked_by, asked_in, hops) as (
  select session, seq, lane, asked_by, asked_in, 1 from turns where session = :session and seq = :turn
  union all
  select t.session, t.seq, t.lane, t.asked_by, t.asked_in, up.hops + 1
  from up join turns t on t.session = up.asked_by and t.seq = up.asked_in where up.lane is null and up.hops < 1000
)
select lane from up where lane is not null;

-- name: asking_turns
-- The turns that asked, one by way of the other, for what came to be a turn.
with recursive up (asked_by, asked_in, hops) as (
  select asked_by, asked_in, 1 from turns where session = :session and seq = :turn and asked_by is not null
  union all
  select t.asked_by, t.asked_in, up.hops + 1
  from up join turns t on t.session = up.asked_by and t.seq = up.asked_in where t.asked_by is not null and up.hops < 1000
)
select distinct asked_by as session, asked_in as turn from up;

-- name: turns_beside
-- The other turns of a session that run or wait: one of all that a person asked for in one way.
select min(t.seq) as turn, t.person
from sessions s join turns t on t.session = s.id and t.seq > s.head and t.outcome is null and t.seq <> :turn
where s.id = :session group by t.person, t.lane, t.route, t.asked_by, t.asked_in;

-- name: spawned
-- The children of a session, those that are open first, the newest first.
select {child}
from sessions s left join titles t on t.session = s.id and t.until is null
where s.parent = :session and s.depth > 0 and s.owner = :owner
order by case when s.closed is null then 0 else 1 end, s.id desc limit :count;

-- name: started_session
-- A session that another one started.
select {child} from sessions s left join titles t on t.session = s.id and t.until is null where s.id = :session;

-- name: caused
-- How many turns came of one, counted no further than asked.
select count(*) from (select 1 from turns where cause = :cause and cause <> '' limit :most) as caused;

-- name: waits_for
-- The sessions whose answers a running turn of this one waits for.
select t.session from turns t join turns w on w.session = t.asked_by and w.seq = t.asked_in
where t.asked_by = :session and t.awaited > {now} and t.received is null and t.outcome is null and w.outcome is null;

-- name: keep_back
-- A turn is answered: its answer is kept for who waits, unless their time is over.
update turns set awaited = case when awaited > {now} then awaited end
where session = :session and seq = :seq and awaited is not null returning awaited;

-- name: answer_of
-- What became of a turn, and whether whoever asked still waits for it.
select outcome, awaited, received, awaited > {now} as left from turns where session = :session and seq = :seq;

-- name: end_wait
-- Nobody waits for a turn's answer any more: it will be delivered.
update turns set awaited = null where session = :session and seq = :seq and outcome is null;

-- name: receive
-- An answer that was kept was taken by whoever asked.
update turns set received = :at where session = :session and seq = :seq and received is null;

-- name: unreceived
-- Answers that were kept for turns that ended without taking them.
select t.session, t.seq as turn, t.route, t.outcome from turns t {cross_join} turns w on w.session = t.asked_by and w.seq = t.asked_in
where t.awaited is not null and t.received is null and t.outcome is not null and w.outcome is not null
order by t.asked_by, t.session, t.seq limit :count;

-- name: written_by
-- The newest entries that a turn wrote.
select n, role, parts from entries where session = :session and turn = :turn order by n desc limit :count;

-- name: tasks_open
-- Whether a child has a task that it hasn't finished.
select 1 from sessions where parent = :session and ending = 'run' and closed is null and depth > 0 limit 1;

-- name: conclude
-- A session has finished its one task: it is closed, or lasts if somebody talks to it by now.
update sessions set
  closed = case when not exists (select 1 from bindings b where b.session = :session and b.until is null) then cast(:at as {real}) end,
  ending = case when exists (select 1 from bindings b where b.session = :session and b.until is null) then 'session' else 'run' end
where id = :session and closed is null and ending = 'run' returning label;

-- name: stop_all
-- The running turn of a session is to end, whoever asked for it.
update turns set stopped_by = :person
where session = :session and outcome is null and stopped_by is null
  and seq <= (select case when holder is null then 0 else running end from sessions where id = :session) returning seq;

-- name: running
-- Whether a turn of a session runs.
select 1 from turns where session = :session and outcome is null limit 1;

-- name: withdraw
-- What waits in a session is taken back.
update turns set outcome = 'withdrawn', finished = :at
where session = :session and outcome is null
  and seq > (select case when holder is null then head else running end from sessions where id = :session) returning seq;
