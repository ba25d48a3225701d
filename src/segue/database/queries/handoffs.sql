-- columns: handoff
-- A handoff.
id, session, origin, destination, kind, lane, move, state, by_person as "by", requested, deadline, epoch, turn, wrote,
  tip_session as before_session, tip as before_n, settled, error

-- name: add_handoff
-- Somebody asks for a handoff.
insert into handoffs (id, session, origin, destination, kind, state, by_person, requested, progressed, deadline)
values (:handoff, :session, :origin, :destination, :kind, 'requested', :by, :at, :at, :deadline);

-- name: handoff
-- One handoff.
select {handoff} from handoffs where id = :handoff;

-- name: lock_handoff
-- Hold a handoff and see how it stands; its lanes and its session are held before.
select {handoff} from handoffs where id = :handoff {for_update};

-- name: last_handoff_from
-- The newest handoff from a lane.
select {handoff} from handoffs where origin = :lane order by requested desc, id desc limit 1;

-- name: last_handoff_of
-- The newest handoff of a session.
select {handoff} from handoffs where session = :session order by requested desc, id desc limit 1;

-- name: last_handoff_to
-- The newest handoff of a session to a destination, but for one.
select {handoff} from handoffs where session = :session and destination = :destination and id <> :but
order by requested desc, id desc limit 1;

-- name: trouble_of_handoff
-- Why the newest message of a handoff wasn't sent so far.
select error from deliveries where handoff = :handoff and sent is null and error is not null order by id desc limit 1;

-- name: handoffs_unclaimed
-- Handoffs that no other replica drives that is alive, and whose session isn't bound in the new place yet.
select id, destination from handoffs
where settled is null and lane is null and (holder is null or holder = :me or not exists (
  select 1 from replicas r where r.id = handoffs.holder))
order by deadline limit :count;

-- name: claim_handoff
-- Drive a handoff, unless somebody else who is alive does.
update handoffs set state = :state, holder = :me, epoch = epoch + 1, progressed = :at, deadline = :deadline
where id = :handoff and settled is null and lane is null and (holder is null or holder = :me or not exists (
  select 1 from replicas r where r.id = handoffs.holder))
returning epoch;

-- name: handoff_bound
-- The session is bound in the new place, and its opening turn waits; nothing comes back for a driver who lost it.
update handoffs set lane = :lane, move = :move, turn = :turn, progressed = :at, deadline = :deadline
where id = :handoff and holder = :me and epoch = :epoch and state = 'claimed' returning id;

-- name: handoff_wrote
-- The opening turn says something.
update handoffs set wrote = coalesce(wrote, :at), progressed = :at, deadline = :deadline
where id = :handoff and settled is null;

-- name: handoff_answered
-- The opening turn is done, and its answer is to be sent; the tip is where the session ended before it.
update handoffs set wrote = coalesce(wrote, :at), progressed = :at, deadline = :deadline, tip_session = :tip_session,
  tip = :tip
where id = :handoff and settled is null;

-- name: settle_handoff
-- A handoff came to its end.
update handoffs set state = :state, settled = :at, error = :error, deadline = null where id = :handoff and settled is null
returning id;

-- name: handoffs_overdue
-- Handoffs that made no progress in time.
select id from handoffs where settled is null and deadline < :at order by deadline limit :count;

-- name: opening_of
-- The handoff whose opening a turn is, if it hasn't come to its end.
select id from handoffs where session = :session and turn = :turn and settled is null;

-- name: carry_handoff
-- With the last of a turn's messages the handoff is done.
update deliveries set handoff = :handoff where key >= :first and key < :last;

-- name: handoff_unsent
-- Whether messages of a handoff's opening are still to be sent; those to one place are few.
select d.id from handoffs h join deliveries d on d.key >= h.session || '/' || h.turn || '/' and d.key < h.session || '/' || h.turn || '0'
where h.id = :handoff and d.sent is null and d.dead is null limit 1;

-- name: withdraw_deliveries
-- What a turn wanted to send and surely hasn't is not to be sent any more.
update deliveries set sent = :at, holder = null, streaming = null
where key >= :first and key < :last and sent is null and dead is null and holder is null and doubtful = 0;

-- name: withdraw_delivery
-- A delivery that its holder hasn't sent is not to be sent any more.
update deliveries set sent = :at, holder = null where id = :id and holder = :me and attempts = :attempt and sent is null
returning id;

-- name: put_off
-- Nothing more of a session runs until its handoff comes to its end, or so many seconds are over.
update sessions set holder = null, running = 0, due = {now} + :seconds where id = :session;

-- name: go_on
-- What waits in a session may run; a turn of it that still runs loses it.
update sessions set holder = null, running = 0, epoch = epoch + 1,
  head = case when exists (select 1 from turns t where t.session = :session and t.seq > head and t.outcome is null)
    then head else tail end,
  due = case when exists (select 1 from turns t where t.session = :session and t.seq > head and t.outcome is null)
    then {now} else 0 end
where id = :session and (holder is null or running = :turn);

-- name: sent_between
-- What of a turn's messages is out.
select id from deliveries where key >= :first and key < :last and message is not null limit 1;
