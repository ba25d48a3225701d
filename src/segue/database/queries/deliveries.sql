-- columns: key_of_era
-- The key of a delivery as a platform is given it.
(select coalesce(max(value), '') from settings where name = 'era') || key as key

-- columns: due_delivery
id, holder as me, cast(id as text) as id, address, coalesce(session, '') as session, entry, text,
  {key_of_era}, coalesce(message, '') as message, attempts as attempt,
  doubtful - 1 as doubtful, answers, choices, only_for as only, nullif(files, '[]') as file, '[]' as chats, {now} - coalesce(offered, accepted) as waited, coalesce(handoff, '') as sequel,
  coalesce(report, '') as report, coalesce(error, '') as error

-- name: add_delivery
-- A message to be sent; if a turn was streaming into it, this is its final text.
insert into deliveries (key, account, address, session, turn, entry, text, answers, choices, files, only_for, accepted, due, offered)
values (:key, :account, :address, :session, :turn, :entry, :text, :answers, :choices, :files, :only, :at, {now}, {now})
on conflict (key) do update set text = excluded.text, entry = excluded.entry, answers = excluded.answers,
  choices = excluded.choices, files = excluded.files, only_for = excluded.only_for, streaming = null, holder = null, due = {now}, offered = {now}
where deliveries.streaming is not null;

-- name: take_own
-- Take a delivery that was just added, if nothing else waits for its address and no other replica serves the window there.
update deliveries set holder = :me, attempts = attempts + 1, doubtful = doubtful + 1
where key = :key and sent is null and dead is null and holder is null and streaming is null and not exists (
    select 1 from deliveries p where p.address = :address and p.sent is null and p.dead is null and p.key <> :key)
  and (not exists (select 1 from windows w join replicas r on r.id = w.replica where w.address = :address)
    or exists (select 1 from windows w where w.address = :address and w.replica = :me))
returning {due_delivery};

-- name: give_back
-- What a turn's end has taken and nobody sends is free again; that was the first attempt, and another one is somebody's.
update deliveries set holder = null, doubtful = doubtful - 1
where key >= :first and key < :last and holder = :me and attempts = 1 and sent is null and streaming is null;

-- name: unsent_at
-- Whether anything waits to be sent to an address.
select 1 from deliveries where address = :address and sent is null and dead is null and key <> :key limit 1;

-- name: open_stream
-- A message that a running turn will stream into; an earlier attempt's is taken over with its platform id.
-- Until its platform id is known, nobody can be sure whether there is a placeholder.
insert into deliveries (key, account, address, session, turn, entry, text, answers, accepted, due, holder, streaming, doubtful)
values (:key, :account, :address, :session, :turn, 0, '', :answers, :at, {now}, :me, :epoch, 1)
on conflict (key) do update set holder = excluded.holder, streaming = excluded.streaming
where deliveries.sent is null and deliveries.streaming is not null
returning cast(id as text) as id, {key_of_era}, coalesce(message, '') as message;

-- name: placed
-- The platform's id of a message that isn't final yet.
update deliveries set message = :message where id = :id and holder = :me and sent is null returning id;

-- name: unplaced_at
-- Whether another delivery to a chat, in whichever of its threads, may have a placeholder that nobody knows.
select 1 from deliveries where account = :account and sent is null and dead is null and message is null
  and (holder is not null or doubtful > 0) and id <> :id and substr(address, 1, length(cast(:chat as text))) = :chat limit 1;

-- name: known_at
-- A message of a chat, in whichever thread, if it is one of ours that is known: whether it goes before another there.
select address = :address and id < :id as is_earlier from deliveries
where message = :message and substr(address, 1, length(cast(:chat as text))) = :chat order by 1 desc limit 1;

-- name: streams_of
-- What a turn, or an earlier attempt at it, streams into.
select key from deliveries where key >= :first and key < :last and streaming is not null;

-- name: end_streams
-- What a turn streamed into and then left without an answer stays as it is.
update deliveries set streaming = null, holder = null, sent = :at
where key >= :first and key < :last and streaming is not null;

-- name: outgoing
-- Take the oldest unsent delivery of each address, never two of one address at a time, nor one to a window that only
-- other replicas serve. A message that grows holds its place until it is there, and never keeps back what its own turn asks.
with next as (
  select d.id from deliveries d where d.account = :account and d.sent is null and d.dead is null and d.holder is null
    and d.streaming is null and d.due <= {now} and not exists (
      select 1 from deliveries p where p.address = d.address and p.sent is null and p.dead is null
        and (p.id < d.id or p.holder is not null)
        and (p.streaming is null or (p.message is null and (p.turn <> d.turn or p.session <> coalesce(d.session, '')))))
    and (not exists (select 1 from windows w join replicas r on r.id = w.replica where w.address = d.address)
      or exists (select 1 from windows w where w.address = d.address and w.replica = :me))
  order by d.due, d.id limit :count {skip_locked})
update deliveries set holder = :me, attempts = attempts + 1, doubtful = doubtful + 1 where id in (select id from next)
returning {due_delivery};

-- name: sent
-- A delivery was sent: it is a receipt now.
update deliveries set sent = :at, message = :message, holder = null, error = null
where id = :id and holder = :me and attempts = :attempt and sent is null {counted};

-- name: taken
-- The platform took a delivery and will tell what becomes of it; it may have told already.
update deliveries set holder = null, message = :message, error = null, report = coalesce(report, 'taken'),
  due = {now} + case when report is null then :seconds else 0 end
where id = :id and holder = :me and attempts = :attempt and sent is null returning report;

-- name: report
-- Word about a message that isn't recorded as sent, by its key or its id; that it was sent holds for what was given up, too.
update deliveries set report = :fate, message = :message, error = :why, due = {now},
  dead = case when cast(:fate as text) = 'sent' then null else dead end
where account = :account and (key = :key or message = :message) and sent is null
  and (report is null or report = 'taken') and (dead is null or cast(:fate as text) = 'sent') returning id;

-- name: count_reported
-- The messages that a platform said it sent, of those whose status it reports.
select count(*) from deliveries where account = :account and report = 'sent' and sent >= :since;

-- name: unsend
-- Word that a message was never sent after all: a dead letter.
update deliveries set sent = null, dead = :at, error = :why
where account = :account and message = :message and sent is not null and dead is null and forgotten is null returning id;

-- name: unsent
-- A delivery couldn't be sent: again later.
update deliveries set holder = null, due = {now} + :delay, error = :error, doubtful = doubtful - :certain, report = null
where id = :id and holder = :me and attempts = :attempt and sent is null returning id;

-- name: give_up
-- A delivery can't ever be sent: a dead letter.
update deliveries set dead = :at, holder = null, error = :error, report = null
where id = :id and holder = :me and attempts = :attempt and sent is null returning id;

-- name: retry_delivery
-- A dead letter is tried again.
update deliveries set dead = null, due = {now}, error = null where id = :id and dead is not null returning id;

-- name: send_again
-- A dead letter is sent, as if it had never been tried.
update deliveries set dead = null, due = {now}, error = null, doubtful = 0 where id = :id and dead is not null returning id;

-- name: turn_of_delivery
-- The turn that a delivery is an answer of.
select turn from deliveries where id = :id;

-- name: dead_deliveries
-- What couldn't be sent.
select id, address, session, text, error, dead as at from deliveries where dead is not null order by dead desc limit :count;

-- name: dead_delivery
-- One that couldn't be sent.
select id, address, session, text, error, dead as at from deliveries where id = :id and dead is not null;

-- name: drop_delivery
-- A dead letter that nobody wants to be sent any more.
update deliveries set dead = null, sent = :at, message = null where id = :id and dead is not null returning id;

-- name: receipt
-- The delivery behind a message, if Segue sent it.
select address, message, session, entry, sent as at from deliveries
where message = :message and address = :address and session is not null order by id desc limit 1;
