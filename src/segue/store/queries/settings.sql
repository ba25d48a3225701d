-- name: add_setting
-- A value, unless the name has one.
insert into settings (name, value) values (:name, :value) on conflict (name) do nothing;

-- name: setting
-- The value under a name.
select value from settings where name = :name;
