-- name: join_replicas
-- A replica comes alive.
insert into replicas (id, expires) values (:me, {now} + :seconds);

-- name: count_beat (sqlite)
-- A heartbeat more of any replica; what was counted before is noted beside the file.
insert into settings (name, value) values ('beats', '1')
on conflict (name) do update set value = cast(segue_beats(cast(settings.value as integer)) + 1 as text);

-- name: count_beat (postgres)
-- Nothing is noted beside a server.
select 1;

-- name: beat
-- A replica lives on; nothing comes back if it was given up.
update replicas set expires = {now} + :seconds where id = :me and expires >= {now} returning expires;

-- name: schema_version (sqlite)
-- The version that the database is at.
select user_version from pragma_user_version;

-- name: schema_version (postgres)
-- The version that the database is at.
select coalesce(max(number), 0) from version;

-- name: bury
-- Replicas whose time is over; one that froze in a transaction and keeps its row locked can wait.
delete from replicas where id in (select id from replicas where expires < {now} {skip_locked}) returning id;

-- name: leave_replicas
-- A replica goes.
delete from replicas where id = :me;

-- name: free_sessions
-- What is held by a replica that isn't alive is free, also if it was buried before it took it; its turn has cost a life,
-- unless it did nothing but wait for a person's answer.
-- What a frozen transaction keeps locked is freed later: whoever waited for it would be taken for dead meanwhile.
with dead as (
  select id from sessions
  where holder is not null and not exists (select 1 from replicas r where r.id = sessions.holder) {skip_locked})
update sessions set holder = null, running = 0, due = {now}, {keep_tried}, deaths = deaths + case when exists (
  select 1 from questions x where x.session = sessions.id and x.state = 'open' and x.epoch = sessions.epoch) then 0 else 1 end
where id in (select id from dead) returning id;

-- name: hand_over
-- What a replica that goes still held is free.
update sessions set holder = null, running = 0, due = {now}, {keep_tried} where holder = :me;

-- name: free_deliveries
-- What was being sent by a replica that isn't alive is free.
with dead as (
  select id from deliveries
  where holder is not null and sent is null and not exists (select 1 from replicas r where r.id = deliveries.holder)
  {skip_locked})
update deliveries set holder = null where id in (select id from dead) returning id;

-- name: held_sessions
-- Sessions that a replica holds.
select id, epoch from sessions where holder = :me;

-- name: held_and_stopped
-- Sessions of a replica whose running turn somebody wants to end.
select s.id from sessions s where s.holder = :me and exists (
  select 1 from turns t where t.session = s.id and t.seq > s.head and t.outcome is null and t.stopped_by is not null);

-- name: held_deliveries
-- Deliveries that a replica sends now; none that a turn streams into.
select id, attempts as attempt from deliveries where holder = :me and streaming is null;

-- name: release_session
-- A session is free that its holder doesn't run; nothing comes back if the holder claimed it anew.
update sessions set holder = null, running = 0, due = {now}
where id = :id and holder = :me and epoch = :epoch returning id;

-- name: release_delivery
-- A delivery is free that its holder doesn't send; nothing comes back if the holder took it anew.
update deliveries set holder = null
where id = :id and holder = :me and attempts = :attempt and sent is null and streaming is null returning id;

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

-- name: end_replicas
-- Whoever ran before is gone.
update replicas set expires = 0;

-- name: things
-- The things of an account whose names begin with the same letters.
select name, value, version from lockers where account = :account and name >= :first and name < :last order by name;

-- name: add_thing
-- A thing that wasn't there.
insert into lockers (account, name, value, version) values (:account, :name, :value, 1)
on conflict (account, name) do nothing returning name;

-- name: change_thing
-- A thing that is still what it was.
update lockers set value = :value, version = version + 1
where account = :account and name = :name and version = :version returning name;

-- name: drop_thing
-- A thing that is still what it was goes.
delete from lockers where account = :account and name = :name and version = :version returning name;
