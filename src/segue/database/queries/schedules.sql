-- columns: schedule
-- Scheduled work.
id, session, lane, owner, task, line, zone, deliver, route, since, due, ended

-- name: add_schedule
-- Work for later; nothing comes back if it was made before.
insert into schedules (id, call, session, lane, owner, task, line, zone, deliver, route, since, due)
values (:id, :call, :session, :lane, :owner, :task, :line, :zone, :deliver, :route, :at, :due)
on conflict (call) do nothing returning id;

-- name: schedule_of_call
-- The work that a call made when it was first run.
select {schedule} from schedules where call = :call;

-- name: schedules_of
-- What is still to come of a person's scheduled work, the next first.
select {schedule} from schedules
where owner = :owner and ended is null order by due, id limit :count;

-- name: schedules_due
-- Scheduled work that is due by now, the longest due first.
select {schedule} from schedules
where due <= :at and ended is null order by due limit :count;

-- name: schedules_ahead
-- Scheduled work that has run in what is the future by now: the clock was ahead.
select {schedule} from schedules s where due >= :after_due and (due > :after_due or id > :after) and ended is null
  and exists (select 1 from runs r where r.schedule = s.id and r.at > :at) order by due, id limit :count;

-- name: hold_schedule
-- Hold scheduled work that is due then; nothing comes back if somebody was first or it was cancelled.
select id from schedules where id = :id and due = :due and ended is null {for_update};

-- name: set_due
-- When scheduled work is due again, or that it has ended.
update schedules set due = :due, ended = :ended where id = :id;

-- name: cancel_schedule
-- Nobody wants it any more; nothing comes back if it had ended.
update schedules set due = null, ended = :at where id = :id and ended is null returning id;

-- name: add_run
-- Scheduled work was due: one row a time, whoever noticed; nothing comes back if somebody was first.
insert into runs (schedule, due, missed, at, kept) values (:schedule, :due, :missed, :at, :kept)
on conflict (schedule, due) do nothing returning schedule;

-- name: set_run
-- The turn that does it.
update runs set session = :session, turn = :turn where schedule = :schedule and due = :due;

-- name: runs_unkept
-- Runs that were answered and whose file isn't written.
select r.schedule, r.due, s.task, s.zone, r.session, r.turn from runs r join schedules s on s.id = r.schedule
join turns t on t.session = r.session and t.seq = r.turn
where r.kept is null and t.finished is not null order by r.schedule, r.due limit :count;

-- name: runs_answered
-- All runs of scheduled work that were answered.
select r.schedule, r.due, s.task, s.zone, r.session, r.turn from runs r join schedules s on s.id = r.schedule
join turns t on t.session = r.session and t.seq = r.turn
where r.schedule = :schedule and t.finished is not null order by r.due;

-- name: schedule_by_id
-- Scheduled work, also what has ended.
select {schedule} from schedules where id = :id;

-- name: keep_run
-- The file of a run is written.
update runs set kept = :at where schedule = :schedule and due = :due;

-- name: answer_of_turn
-- What a turn left behind beside what it was asked.
select parts from entries where session = :session and turn = :turn and role = 'agent' order by n;

-- name: spoken_at
-- Whether a person has a lane of their own at an address, or began a session there.
select 1 from lanes l where l.address = :address and (l.person = :person or exists (
  select 1 from sessions s where s.origin = l.key and s.owner = :person)) limit 1;
