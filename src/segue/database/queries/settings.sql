-- name: add_setting
-- A value, unless the name has one.
insert into settings (name, value) values (:name, :value) on conflict (name) do nothing;

-- name: set_setting
-- A new value under a name.
insert into settings (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value;

-- name: setting
-- The value under a name.
select value from settings where name = :name;
