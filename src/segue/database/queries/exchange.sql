-- name: see
-- An arrival's key; nothing comes back if it was seen before.
insert into seen (account, key, at) values (:account, :key, :at) on conflict (account, key) do nothing {counted};

-- name: forget_seen
-- Keys older than any platform redelivers.
delete from seen where id in (select id from seen where at < :before order by id limit :count);

-- name: enqueue
-- A turn more for a session; an idle one is held at once, unless it is put off because of a handoff.
update sessions set tail = tail + 1, used = case when used < :at then :at else used end,
  due = case when head = tail and due = 0 then {now} else due end,
  epoch = epoch + case when head = tail and due = 0 and cast(:me as text) is not null then 1 else 0 end,
  running = case when head = tail and due = 0 and cast(:me as text) is not null then tail + 1 else running end,
  holder = case when head = tail and due = 0 then cast(:me as text) else holder end
where id = :session and closed is null
returning tail, holder, epoch, head, tip_session, tip, case when sweep is null then 1 else 0 end;

-- name: add_turn_from
-- The turn of an arrival, if its lane still speaks to that session, and its speaker is still that person.
insert into turns (session, seq, kind, lane, route, person, name, message, quotes, parts, accepted, trace, identity)
select :session, :seq, :kind, b.lane, :route, :person, :name, :message, :quotes, :parts, :at, :trace, :identity
from bindings b where b.lane = :lane and b.until is null and b.session = :session
  and exists (select 1 from identities i where i.key = :identity and i.person = :person) {counted};

-- name: add_turn_quoting
-- The turn of an arrival that quotes a session which its lane has spoken to before, if its speaker is still that person.
insert into turns (session, seq, kind, lane, route, person, name, message, quotes, parts, accepted, trace, identity)
select :session, :seq, :kind, l.key, :route, :person, :name, :message, :quotes, :parts, :at, :trace, :identity
from lanes l where l.key = :lane and exists (select 1 from bindings b where b.lane = l.key and b.session = :session)
  and exists (select 1 from identities i where i.key = :identity and i.person = :person) {counted};

-- name: add_turn
-- A turn that came from no lane.
insert into turns (session, seq, kind, call, lane, route, person, name, message, quotes, parts, accepted, trace, identity,
  asked_by, asked_in, cause, awaited)
values (:session, :seq, :kind, :call, :lane, :route, :person, :name, :message, '', :parts, :at, :trace, :identity,
  :by, :by_turn, :cause, {now} + cast(:wait as {real}))
on conflict (call) where call is not null do nothing returning seq;

-- name: turn_of_call
-- The turn that a call made when it was first run.
select session, seq, outcome from turns where call = :call;

-- name: claim
-- Take sessions that have turns and no holder.
with free as (
  select id from sessions where holder is null and head < tail and due <= {now} order by due limit :count {skip_locked})
update sessions set holder = :me, epoch = epoch + 1 where id in (select id from free)
returning id, epoch, head, tip_session, tip, fails, deaths, case when ending = 'run' and closed is null then parent end;

-- name: nothing_waits
-- All that waited was taken back: the session is idle.
update sessions set head = tail, running = 0, holder = null, due = 0 where id = :session;

-- name: set_running
-- The turns up to this one run now.
update sessions set running = :running where id = :session;

-- name: waiting
-- The turns of a session that nobody has answered, in order.
select seq, kind, lane, route, person, name, message, quotes, parts, accepted, trace, identity,
  cause, awaited, stopped_by
from turns
where session = :session and seq > :head and outcome is null order by seq limit :count;

-- name: opening_waiting
-- The opening turn of a handoff, which goes before all that was said since it was asked for.
select seq, kind, lane, route, person, name, message, quotes, parts, accepted, trace, identity,
  cause, awaited, stopped_by
from turns
where session = :session and kind = 'opening' and outcome is null limit 1;

-- name: lost_session
-- Whether somebody holds a session no more.
select 1 from sessions where id = :session and (holder is null or holder <> :me or epoch <> :epoch);

-- name: hold
-- Lock a session and see whether this replica still holds it.
select tip_session, tip, length, head, tail from sessions
where id = :session and holder = :me and epoch = :epoch {for_update};

-- name: hold_turn
-- The same at a turn's end, and whether the lane that asked speaks to another session by now.
select s.tip_session, s.tip, s.length, s.head, s.tail, case when exists (
    select 1 from turns t where t.session = s.id and t.seq = :turn and t.lane is not null and not exists (
      select 1 from bindings b where b.lane = t.lane and b.session = t.session and b.until is null)) then 1 else 0 end
from sessions s where s.id = :session and s.holder = :me and s.epoch = :epoch {for_update};

-- name: finish
-- A turn is done: the session moves on, and is let go if nothing waits.
update sessions set head = :head, running = :running, due = 0, fails = 0, deaths = 0, tip_session = :tip_session, tip = :tip, length = :length,
  used = case when used < :at and sweep is not null then :at else used end,
  holder = case when tail > :head then holder end
where id = :session and holder = :me and epoch = :epoch {counted};

-- name: end_turn
-- What became of a turn; nothing comes back if it had ended before.
update turns set outcome = :outcome, finished = :at, within = :within, error = :error
where session = :session and seq = :seq and outcome is null {counted};

-- name: let_go
-- A holder gives a session back.
update sessions set holder = null, running = 0, fails = fails + :failed, due = {now} + :delay
where id = :session and holder = :me and epoch = :epoch returning fails;

-- name: stop_turns
-- Somebody wants their running turn to end.
update turns set stopped_by = :person
where session = :session and person = :person and outcome is null and stopped_by is null
  and seq <= (select running from sessions where id = :session) returning seq;

-- name: left_running
-- The session in which somebody's turn runs that they asked for in a lane, whatever the lane speaks to by now.
select s.id from (select distinct session from bindings where lane = :lane) as b
join sessions s on s.id = b.session
join turns t on t.session = s.id and t.seq > s.head and t.seq <= s.running
where t.lane = :lane and t.person = :person and t.outcome is null and t.stopped_by is null
order by t.accepted desc limit 1;

-- name: stopped_by
-- Who wants a running turn to end.
select stopped_by from turns where session = :session and outcome is null and stopped_by is not null limit 1;

-- name: replace_waiting
-- An edit of a message that still waits; nothing comes back if it runs or was answered.
update turns set parts = :parts where session = :session and seq = :seq and outcome is null
  and seq > (select case when holder is null then head else running end from sessions where id = :session) returning seq;

-- name: turn_runs
-- Whether a turn of an open session waits or runs.
select 1 from turns t join sessions s on s.id = t.session
where t.session = :session and t.seq = :seq and t.outcome is null and s.closed is null;

-- name: add_journal
-- A finished tool call of a running turn.
insert into journal (session, turn, call, n, epoch, parts, at)
values (:session, :turn, :call, (select count(*) from journal where session = :session and turn = :turn), :epoch, :parts, :at)
on conflict (session, turn, call) do nothing;

-- name: journal
-- The finished tool calls of a turn, in order.
select call, parts from journal where session = :session and turn = :turn order by n;

-- name: set_partial
-- What a running turn has said so far.
insert into partials (session, turn, epoch, text, at) values (:session, :turn, :epoch, :text, :at)
on conflict (session) do update set turn = excluded.turn, epoch = excluded.epoch, text = excluded.text, at = excluded.at
where partials.epoch <= excluded.epoch;

-- name: partial
-- What the running turn of a session has said so far.
select turn, text, at from partials where session = :session;

-- name: hold_name (sqlite)
-- Let nobody else hold this name until the transaction ends; here it has no neighbour.
select 1 where :name is not null;

-- name: hold_name (postgres)
-- Let nobody else hold this name until the transaction ends.
select pg_advisory_xact_lock(hashtextextended(cast(:name as text), 0));

-- name: add_delivery
-- A message to be sent; if a turn was streaming into it, this is its final text.
insert into deliveries (key, account, address, session, turn, entry, text, answers, choices, files, accepted, due)
values (:key, :account, :address, :session, :turn, :entry, :text, :answers, :choices, :files, :at, {now})
on conflict (key) do update set text = excluded.text, entry = excluded.entry, answers = excluded.answers,
  choices = excluded.choices, files = excluded.files, streaming = null, holder = null, due = {now} where deliveries.streaming is not null;

-- name: unsent_at
-- Whether anything waits to be sent to an address.
select 1 from deliveries where address = :address and sent is null and dead is null and key <> :key limit 1;

-- name: open_stream
-- A message that a running turn will stream into; an earlier attempt's is taken over with its platform id.
insert into deliveries (key, account, address, session, turn, entry, text, answers, accepted, due, holder, streaming)
values (:key, :account, :address, :session, :turn, 0, '', :answers, :at, {now}, :me, :epoch)
on conflict (key) do update set holder = excluded.holder, streaming = excluded.streaming
where deliveries.sent is null and deliveries.streaming is not null returning id, coalesce(message, '');

-- name: placed
-- The platform's id of a message that isn't final yet.
update deliveries set message = :message where key = :key and holder = :me and sent is null returning id;

-- name: streams_of
-- What a turn, or an earlier attempt at it, streams into.
select key from deliveries where key >= :first and key < :last and streaming is not null;

-- name: end_streams
-- What a turn streamed into and then left without an answer stays as it is.
update deliveries set streaming = null, holder = null, sent = :at
where key >= :first and key < :last and streaming is not null returning id;

-- name: outgoing
-- Take the oldest unsent delivery of each address, never two of one address at a time, nor one to a window that only
-- other replicas serve.
with next as (
  select d.id from deliveries d where d.account = :account and d.sent is null and d.dead is null and d.holder is null
    and d.streaming is null and d.due <= {now} and not exists (
      select 1 from deliveries p where p.address = d.address and p.sent is null and p.dead is null
        and (p.id < d.id or p.holder is not null))
    and (not exists (select 1 from windows w join replicas r on r.id = w.replica where w.address = d.address)
      or exists (select 1 from windows w where w.address = d.address and w.replica = :me))
  order by d.due, d.id limit :count {skip_locked})
update deliveries set holder = :me, attempts = attempts + 1, doubtful = doubtful + 1 where id in (select id from next)
returning id, attempts, key, address, session, entry, text, answers, coalesce(message, ''), doubtful - 1,
  accepted, choices, files, handoff;

-- name: sent
-- A delivery was sent: it is a receipt now.
update deliveries set sent = :at, message = :message, holder = null, error = null
where id = :id and holder = :me and attempts = :attempt and sent is null {counted};

-- name: unsent
-- A delivery couldn't be sent: again later.
update deliveries set holder = null, due = {now} + :delay, error = :error, doubtful = doubtful - :certain
where id = :id and holder = :me and attempts = :attempt and sent is null returning id;

-- name: give_up
-- A delivery can't ever be sent: a dead letter.
update deliveries set dead = :at, holder = null, error = :error
where id = :id and holder = :me and attempts = :attempt and sent is null returning id;

-- name: retry_delivery
-- A dead letter is tried again.
update deliveries set dead = null, due = {now}, error = null where id = :id and dead is not null returning id;

-- name: dead_deliveries
-- What couldn't be sent.
select id, address, session, text, error, dead from deliveries where dead is not null order by dead desc limit :count;

-- name: receipt
-- The delivery behind a message, if Segue sent it.
select address, message, session, entry, sent from deliveries
where message = :message and address = :address and session is not null order by id desc limit 1;

-- name: turn_at
-- The turn that a message became at an address, whoever said it, and the one that answered it.
select t.session, t.seq, coalesce(t.within, t.seq), t.lane, t.person from turns t
where t.message = :message and t.route = :address order by t.accepted desc limit 1;

-- name: turns_within
-- What people asked in a turn, in order.
select seq from turns where session = :session and (seq = :turn or within = :turn) and kind = 'arrival' order by seq;

-- name: last_turn_of
-- The last thing that was said to a session from a lane.
select seq from turns where session = :session and lane = :lane and kind = 'arrival' order by seq desc limit 1;

-- name: turn_of_message
-- The turn that a person's message became, whoever they were taken for at the time.
select t.session, t.seq from turns t join lanes l on l.key = t.lane join identities i on i.key = t.identity
where t.message = :message and l.address = :address and i.person = :person order by t.accepted desc limit 1;

-- name: add_letter
-- An arrival that couldn't be understood, as it came.
insert into letters (account, raw, why, at) values (:account, :raw, :why, :at);

-- name: letters
-- Arrivals that couldn't be understood.
select id, account, raw, why, at from letters where retried is null order by id desc limit :count;

-- name: join_replicas
-- A replica comes alive.
insert into replicas (id, expires) values (:me, {now} + :seconds);

-- name: beat
-- A replica lives on; nothing comes back if it was given up.
update replicas set expires = {now} + :seconds where id = :me and expires >= {now} returning expires;

-- name: bury
-- Replicas whose time is over; one that froze in a transaction and keeps its row locked can wait.
delete from replicas where id in (select id from replicas where expires < {now} {skip_locked}) returning id;

-- name: leave_replicas
-- A replica goes.
delete from replicas where id = :me;

-- name: free_sessions
-- What is held by a replica that isn't alive is free, also if it was buried before it took it; its turn has cost a life.
-- What a frozen transaction keeps locked is freed later: whoever waited for it would be taken for dead meanwhile.
with dead as (
  select id from sessions
  where holder is not null and not exists (select 1 from replicas r where r.id = sessions.holder) {skip_locked})
update sessions set holder = null, running = 0, due = {now}, deaths = deaths + 1
where id in (select id from dead) returning id;

-- name: hand_over
-- What a replica that goes still held is free.
update sessions set holder = null, running = 0, due = {now} where holder = :me;

-- name: free_deliveries
-- What was being sent by a replica that isn't alive is free.
with dead as (
  select id from deliveries
  where holder is not null and sent is null and not exists (select 1 from replicas r where r.id = deliveries.holder)
  {skip_locked})
update deliveries set holder = null where id in (select id from dead) returning id;

-- name: take_connection
-- Hold a connection that nobody holds.
insert into connections (account, holder, epoch) values (:account, :me, 1)
on conflict (account) do update set holder = excluded.holder, epoch = connections.epoch + 1
where connections.holder is null or connections.holder = excluded.holder returning epoch, cursor;

-- name: leave_connection
-- Let a connection go.
update connections set holder = null where account = :account and holder = :me;

-- name: set_cursor
-- How far an account's messages were taken in.
update connections set cursor = :cursor
where account = :account and holder = :me and epoch = :epoch returning account;

-- name: free_connections
-- The connections of a replica that isn't alive are free.
with dead as (
  select account from connections
  where holder is not null and not exists (select 1 from replicas r where r.id = connections.holder) {skip_locked})
update connections set holder = null where account in (select account from dead) returning account;
