-- columns: turn
-- A turn as it waits.
session, seq, kind, lane, route, person, name, message, quotes, parts, accepted, trace, identity, cause, awaited, stopped_by

-- columns: lanes_mark
-- A mark of the lanes, by their bindings `b`, that speak to a session: another one whenever others do.
select count(*) || '/' || coalesce(max(b.id), 0) from bindings b where b.until is null

-- columns: keep_tried
-- Keep how far a try reached that breaks off.
tried = case when running > head then running else tried end

-- name: see
-- An arrival's key; nothing comes back if it was seen before.
insert into seen (account, key, at) values (:account, :key, :at) on conflict (account, key) do nothing {counted};

-- name: unsee
-- An arrival that was refused may come again.
delete from seen where account = :account and key = :key;

-- name: forget_seen
-- Keys older than any platform redelivers.
delete from seen where id in (
  select id from (select id, at from seen order by id limit :count) as oldest where at < :before) returning id;

-- name: add_letter
-- An arrival that couldn't be understood, as it came.
insert into letters (account, raw, why, at, known) values (:account, :raw, :why, :at, :known);

-- name: forget_letters
-- Dead letters of strangers that are old, and all but the newest.
delete from letters where known = 0 and retried is null and account = :account and (at < :before or id <= coalesce((
  select o.id from letters o where o.account = :account and o.known = 0 and o.retried is null
  order by o.id desc limit 1 offset :most), 0)) returning id;

-- name: letters
-- Arrivals that couldn't be understood.
select id, account, raw, why, at from letters where retried is null order by id desc limit :count;

-- name: letter
-- One arrival that couldn't be understood.
select id, account, raw, why, at from letters where id = :id and retried is null;

-- name: want_letter
-- A dead letter is to be taken in again.
update letters set wanted = :at where id = :id and retried is null returning id;

-- name: letters_wanted
-- Dead letters that are to be taken in again.
select id, account, raw, why, at from letters where wanted is not null and retried is null order by id limit :count;

-- name: end_letter
-- A dead letter is dealt with: taken in after all, or dropped.
update letters set retried = :at, wanted = null where id = :id and retried is null returning id;

-- name: keep_letter
-- A dead letter couldn't be taken in again either.
update letters set wanted = null, why = :why where id = :id;

-- name: enqueue
-- A turn more for a session, which is swept again; an idle one is held at once, unless it is put off because of a handoff.
update sessions set tail = tail + 1, used = case when used < :at then :at else used end,
  due = case when head = tail and due = 0 then {now} else due end,
  epoch = epoch + case when head = tail and due = 0 and cast(:me as text) is not null then 1 else 0 end,
  running = case when head = tail and due = 0 and cast(:me as text) is not null then tail + 1 else running end,
  holder = case when head = tail and due = 0 then cast(:me as text) else holder end,
  sweep = coalesce(sweep, :at)
where id = :session and closed is null
returning tail as seq, holder, epoch, head, tip_session, tip as tip_n,
  ({lanes_mark} and b.session = sessions.id) as bound;

-- name: gather
-- What waits in a session is due so many seconds from now, or later.
update sessions set due = case when due < {now} + :seconds then {now} + :seconds else due end where id = :session;

-- name: add_turn_from
-- The turn of an arrival that room was made for, if its lane still speaks to that session, and its speaker is still that person.
insert into turns (session, seq, kind, lane, route, person, name, message, quotes, parts, accepted, trace, identity)
select s.id, s.tail, :kind, b.lane, :route, :person, :name, :message, :quotes, :parts, :accepted, :trace, :identity
from bindings b join sessions s on s.id = b.session where b.lane = :lane and b.until is null and b.session = :session
  and exists (select 1 from identities i where i.key = :identity and i.person = :person) {counted};

-- name: add_turn_quoting
-- The turn of an arrival that quotes a session which its lane has spoken to before, if its speaker is still that person.
insert into turns (session, seq, kind, lane, route, person, name, message, quotes, parts, accepted, trace, identity)
select s.id, s.tail, :kind, l.key, :route, :person, :name, :message, :quotes, :parts, :accepted, :trace, :identity
from lanes l join sessions s on s.id = :session where l.key = :lane
  and exists (select 1 from bindings b where b.lane = l.key and b.session = :session and b.parted is null)
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
select session, seq as turn, outcome from turns where call = :call;

-- name: claim
-- Take sessions that have turns and no holder; none whose next turn is of one of the full, or of another than the only.
with free as (
  select s.id from sessions s where s.holder is null and s.head < s.tail and s.due <= {now} and s.deaths < :below
    and (cast(:full as text) = '' and cast(:only as text) = '' or exists (
      select 1 from (select t.person from turns t where t.session = s.id and t.seq > s.head and t.outcome is null
        order by t.seq limit 1) as next
      where cast(:full as text) not like '%' || next.person || '%' and cast(:only as text) in ('', next.person))
      or not exists (select 1 from turns t where t.session = s.id and t.seq > s.head and t.outcome is null))
  order by s.due limit :count {skip_locked})
update sessions set holder = :me, epoch = epoch + 1 where id in (select id from free)
returning id, epoch, head, tip_session, tip as tip_n, fails, deaths, tried, case when ending = 'run' and closed is null then parent end as owes,
  {now} - due as waited, ({lanes_mark} and b.session = sessions.id) as bound;

-- name: count_suspects
-- How many sessions with so many deaths wait, or are held by a replica.
select (select count(*) from sessions where holder is null and head < tail and due <= {now} and deaths = :deaths)
  + (select count(*) from sessions where holder = :me and deaths = :deaths);

-- name: longest_wait
-- Seconds for which a session has waited for a slot, the longest; none whose next turn is of one of the full.
select {now} - s.due as seconds from sessions s
where s.holder is null and s.head < s.tail and s.due <= {now} and s.deaths < :below and exists (
  select 1 from (select t.person from turns t where t.session = s.id and t.seq > s.head and t.outcome is null
    order by t.seq limit 1) as next
  where cast(:full as text) not like '%' || next.person || '%')
order by s.due limit 1;

-- name: unclaim
-- A session that was claimed is left to whoever has room for it.
update sessions set holder = null where id = :session;

-- name: nothing_waits
-- All that waited was taken back: the session is idle, and what comes next has all its tries.
update sessions set head = tail, running = 0, holder = null, due = 0, fails = 0, deaths = 0 where id = :session;

-- name: set_running
-- The turns up to this one run now.
update sessions set running = :running where id = :session;

-- name: waiting
-- The turns of a session that nobody has answered, in order: so many, and of so many bytes, but always the first.
with found as (
  select seq, octet_length(parts) as size from turns
  where session = :session and seq > :head and outcome is null order by seq limit :count
), gathered as (
  select seq, row_number() over (order by seq) as place, sum(size) over (order by seq) as bytes from found
)
select {turn} from turns
where session = :session and seq in (select seq from gathered where place = 1 or bytes <= :bytes) order by seq;

-- name: backlog
-- How many turns of a session run or wait, and when the last of them came.
select count(*) as count, max(accepted) as last from turns
where session = :session and outcome is null and seq > (select head from sessions where id = :session);

-- name: turn_failed
-- One row if a turn failed for good.
select seq from turns where session = :session and seq = :seq and outcome = 'failed';

-- name: opening_waiting
-- The opening turn of a handoff, which goes before all that was said since it was asked for.
select {turn} from turns
where session = :session and kind = 'opening' and outcome is null limit 1;

-- name: lost_session
-- Whether somebody holds a session no more.
select 1 from sessions where id = :session and (holder is null or holder <> :me or epoch <> :epoch);

-- name: hold
-- Lock a session and see whether this replica still holds it.
select tip_session, tip as tip_n, length, head, tail from sessions
where id = :session and holder = :me and epoch = :epoch {for_update};

-- name: stands
-- A session that this replica holds, and the turn that it runs: who asked, when they took it back, whether it has ended,
-- whether the lane that asked speaks to another session by now, the label of a child whose answer goes to no place of its own,
-- and whether other people read the place by now in which it is answered.
select s.tip_session, s.tip as tip_n, s.length, s.head, s.tail, s.due > {now} as gathers, t.person, t.deleted, t.outcome is not null as ended,
  t.lane is not null and not exists (
    select 1 from bindings b where b.lane = t.lane and b.session = t.session and b.until is null) as abandoned,
  case when s.label = '' or t.lane is not null or exists (
    select 1 from bindings b join lanes l on l.key = b.lane
    where b.session = t.session and b.until is null and l.address = t.route) then '' else s.label end as label,
  {turn_left} as afresh,
  ({lanes_mark} and b.session = s.id) as bound
from sessions s join turns t on t.session = s.id and t.seq = :turn
where s.id = :session and s.holder = :me and s.epoch = :epoch;

-- name: still_stands (sqlite)
-- Nothing comes between a look and a write here.

-- name: still_stands (postgres)
-- Lock a session that this replica holds, if it stands as it did.
select 1 from sessions where id = :session and holder = :me and epoch = :epoch and length = :length and head = :head
  and tail = :tail and tip is not distinct from :tip and tip_session is not distinct from :tip_session for no key update;

-- name: finish
-- A turn is done: the session moves on, and is let go if nothing runs next; unless the lane that asked has moved meanwhile.
update sessions set head = :head, running = :running, due = case when tail > :head and cast(:running as {int}) = 0 then due else 0 end, fails = 0, deaths = 0, tip_session = :tip_session, tip = :tip, length = :length,
  used = case when used < :at and sweep is not null then :at else used end,
  holder = case when cast(:running as {int}) > 0 then holder end
where id = :session and holder = :me and epoch = :epoch and :abandoned = exists (
  select 1 from turns t where t.session = :session and t.seq = :turn and t.lane is not null and not exists (
    select 1 from bindings b where b.lane = t.lane and b.session = t.session and b.until is null)) {counted};

-- name: end_running
-- What became of the turn that runs, unless it had ended before or was taken back meanwhile.
update turns set outcome = :outcome, finished = :at, error = :error
where session = :session and seq = :seq and outcome is null and deleted is not distinct from :deleted {counted};

-- name: end_turn
-- What became of a turn; nothing comes back if it had ended before.
update turns set outcome = :outcome, finished = :at, within = :within, error = :error
where session = :session and seq = :seq and outcome is null returning person, deleted;

-- name: let_go
-- A holder gives a session back.
update sessions set holder = null, running = 0, fails = fails + :failed, due = {now} + :delay,
  tried = case when :began = 1 and running > head then running else tried end
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

-- name: withdraw_waiting
-- Take back a message that still waits; nothing comes back if it runs or was answered.
update turns set outcome = 'withdrawn', finished = :at where session = :session and seq = :seq and outcome is null
  and seq > (select case when holder is null then head else running end from sessions where id = :session) returning seq;

-- name: delete_running
-- Its author takes back what is being answered.
update turns set deleted = :at where session = :session and seq = :seq and outcome is null;

-- name: turn_runs
-- Whether a turn of an open session waits or runs.
select 1 from turns t join sessions s on s.id = t.session
where t.session = :session and t.seq = :seq and t.outcome is null and s.closed is null;

-- name: any_runs
-- Whether anything waits or runs in an open session.
select 1 from turns t join sessions s on s.id = t.session
where t.session = :session and t.seq > s.head and t.outcome is null and s.closed is null limit 1;

-- name: add_journal
-- A finished tool call of a running turn.
insert into journal (session, turn, call, n, epoch, parts, at)
values (:session, :turn, :call, (select count(*) from journal where session = :session and turn = :turn), :epoch, :parts, :at)
on conflict (session, turn, call) do nothing;

-- name: journal
-- The finished tool calls of a turn, in order.
select parts from journal where session = :session and turn = :turn order by n;

-- name: turn_at
-- The turn that a message became at an address, whoever said it, and the one that answered it.
select t.session, t.seq, coalesce(t.within, t.seq) as answered from turns t
where t.message = :message and t.message <> '' and t.route = :address order by t.accepted desc limit 1;

-- name: turns_within
-- What people asked in a turn, in order.
select seq from turns where session = :session and (seq = :turn or within = :turn) and kind = 'arrival' order by seq;

-- name: last_turn_of
-- The last thing that was said to a session from a lane.
select seq from turns where session = :session and lane = :lane and kind = 'arrival' order by seq desc limit 1;

-- name: turn_of_message
-- The turn that a person's message became, whoever they were taken for at the time.
select t.session, t.seq, t.kind, coalesce(t.within, t.seq) as answered from turns t join lanes l on l.key = t.lane
join identities i on i.key = t.identity
where t.message = :message and t.message <> '' and l.address >= :chat and l.address < :after and i.person = :person
order by t.accepted desc limit 1;

-- name: author_of_message
-- The person whose message became a turn, whoever they were taken for at the time.
select p.id, p.name, p.since from turns t join lanes l on l.key = t.lane
join identities i on i.key = t.identity join persons p on p.id = i.person
where t.message = :message and t.message <> '' and l.address >= :chat and l.address < :after
order by t.accepted desc limit 1;

-- name: route_of_turn
-- Where a turn was asked and answered.
select route from turns where session = :session and seq = :turn;

-- name: open_spending
-- A session's account begins with what it has cost so far.
insert into spendings (scope, turns, tokens, cost)
select cast(:scope as text), count(distinct turn), coalesce(sum(input + output), 0), coalesce(sum(cost), 0)
from usage where session = :session on conflict (scope) do nothing;

-- name: spending
-- What is used of a budget: spent, and reserved by turns that run in other sessions. One look, so that a turn that ends
-- meanwhile is seen as running or as spent.
select coalesce(max(x.turns), 0) as turns, coalesce(max(x.tokens), 0) as tokens, coalesce(max(x.cost), 0.0) as cost,
  coalesce(max(x.helpings), 0) as helpings, coalesce(max(x.refused), '') as refused,
  (select count(*) from reservations r join sessions s on s.id = r.session and s.epoch = r.epoch and s.holder is not null
   where r.session <> :session and r.day = :day and (r.person = :person or cast(:person as text) = '')) as reserved_turns,
  (select cast(coalesce(sum(r.tokens), 0) as bigint) from reservations r
   join sessions s on s.id = r.session and s.epoch = r.epoch and s.holder is not null
   where r.session <> :session and r.day = :day and (r.person = :person or cast(:person as text) = '')) as reserved_tokens
from spendings x where x.scope = :scope;

-- name: reserve
-- A turn that runs has reserved so much, with what it has used by now.
insert into reservations (session, turn, epoch, person, day, tokens)
values (:session, :turn, :epoch, :person, :day, :tokens)
on conflict (session) do update set turn = excluded.turn, epoch = excluded.epoch, person = excluded.person,
  day = excluded.day, tokens = excluded.tokens;

-- name: spend
-- What a turn has used is spent from each of the budgets that it has reserved from.
insert into spendings (scope, turns, tokens, cost)
select x.scope, cast(:turns as bigint), cast(:tokens as bigint), cast(:cost as {real}) from (
  select 'session/' || session as scope from reservations where session = :session
  union all select 'person/' || person || '/' || day from reservations where session = :session
  union all select 'day/' || day from reservations where session = :session) x
where true
on conflict (scope) do update set turns = spendings.turns + excluded.turns,
  tokens = spendings.tokens + excluded.tokens, cost = spendings.cost + excluded.cost;

-- name: end_reservation
-- A turn is over: what it had reserved and not used is free again.
delete from reservations where session = :session;

-- name: allow_more
-- The host allows a budget as much again, so often.
insert into spendings (scope, helpings) values (:scope, :helpings)
on conflict (scope) do update set refused = '', helpings = case
  when spendings.helpings > excluded.helpings then spendings.helpings else excluded.helpings end;

-- name: refuse_more
-- The host allows no more on a day.
insert into spendings (scope, refused) values (:scope, :day)
on conflict (scope) do update set refused = excluded.refused;

-- name: open_of_call
-- What is asked under a key, in whichever turn.
select {question} from questions where call = :call and state = 'open' order by asked, id;

-- name: origin_of_turn
-- The address in which somebody asked for what a turn comes of: its own, or that of the turn that asked for it, however
-- far back. The ending of a session comes of the last turn before it; a turn that nobody asked for in a place, of the
-- place that its session, or the one that started it, was spoken to in last.
with recursive up (session, seq, address, asked_by, asked_in) as (
  select t.session, t.seq, coalesce(nullif(t.route, ''), (select l.address from lanes l where l.key = t.lane)), t.asked_by, t.asked_in
  from turns t where t.session = :session and t.seq = (
    select case when n.kind = 'ending' then coalesce(
      (select max(p.seq) from turns p where p.session = n.session and p.seq < n.seq and p.kind <> 'ending'), n.seq) else n.seq end
    from turns n where n.session = :session and n.seq = :turn)
  union
  select t.session, t.seq, coalesce(nullif(t.route, ''), (select l.address from lanes l where l.key = t.lane)), t.asked_by, t.asked_in
  from up join turns t on t.session = up.asked_by and t.seq = up.asked_in where up.address is null
), line (id, parent, depth, steps) as (
  select id, parent, depth, 0 from sessions where id = :session
  union all
  select s.id, s.parent, s.depth, line.steps + 1 from line join sessions s on s.id = line.parent where line.depth > 0
), spoken (steps, lane) as (
  select line.steps, (select b.lane from bindings b where b.session = line.id order by b.id desc limit 1) from line
)
select found.address from (select coalesce((select max(up.address) from up), (
  select l.address from spoken join lanes l on l.key = spoken.lane order by spoken.steps limit 1)) as address) as found
where found.address is not null;
