-- name: to_sweep
-- The sessions that are to be looked at by now.
select id from sessions where sweep <= :at order by sweep limit :count;

-- name: hold_to_sweep
-- Hold a session that is to be looked at; nothing comes back if somebody was first.
select owner, used, head < tail as busy, tip is not null as anything, closed is not null as closed from sessions
where id = :session and sweep <= :at {for_update};

-- name: sweep_at
-- When a session is looked at next.
update sessions set sweep = :sweep where id = :session;

-- name: sweep_soon
-- A lane came to a session or left it: it is looked at again.
update sessions set sweep = :at where id = :session and (sweep is null or sweep > :at);

-- name: sweep_all
-- The policies changed: all are looked at again but those that were over.
update sessions set sweep = 0 where sweep > 0;

-- name: bound_places
-- The lanes that speak to a session, since when, and what kind of place each is.
select b.lane, b.since, a.kind from bindings b join lanes l on l.key = b.lane join addresses a on a.key = l.address
where b.session = :session and b.until is null;

-- name: last_left
-- When and why the last of its lanes left a session.
select until, ended_why as why from bindings where session = :session and until is not null order by until desc, id desc limit 1;

-- name: last_asked
-- The last that was asked of a session before its ending.
select seq, accepted from turns where session = :session and kind <> 'ending' order by seq desc limit 1;

-- name: enqueue_ending
-- The last turn of a session that is over: it makes it no younger, and nothing may wait there.
update sessions set tail = tail + 1, due = case when due = 0 then {now} else due end, sweep = null
where id = :session and head = tail and closed is null returning tail;

-- name: keep
-- Something goes on behind a session's turns until then.
insert into keeps (session, why, since, until) values (:session, :why, :at, :until)
on conflict (session, why) do update set until = excluded.until;

-- name: unkeep
-- It is done, and so is whatever is past its time.
delete from keeps where session = :session and (why = :why or until <= :at);

-- name: kept
-- Whether anything goes on behind a session's turns.
select 1 from keeps where session = :session and until > :at limit 1;
