-- name: imported
-- The session that was made of something brought in before.
select value from settings where name = :key;

-- name: add_import
-- Remember what a session was made of; nothing comes back if another process was first.
insert into settings (name, value) values (:key, :session) on conflict (name) do nothing returning name;

-- name: skip_turns
-- Turns up to this one happened elsewhere.
update sessions set head = :turn, tail = :turn where id = :session;
