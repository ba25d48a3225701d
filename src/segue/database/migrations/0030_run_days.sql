-- Retention counts the days in which a gateway ran: those that show in the sessions are known at once.
-- only: sqlite
insert into settings (name, value)
select 'days', json_group_array(day) from (
  select cast(began / 86400 as integer) as day from sessions
  union select cast(used / 86400 as integer) from sessions
  union select d.value from settings s, json_each(s.value) d where s.name = 'days' order by day) as ran
where true having count(*) > 0 on conflict (name) do update set value = excluded.value;
-- end
-- only: postgres
insert into settings (name, value)
select 'days', cast(json_agg(day order by day) as text) from (
  select cast(floor(began / 86400) as bigint) as day from sessions
  union select cast(floor(used / 86400) as bigint) from sessions
  union select cast(d as bigint) from settings s, json_array_elements_text(cast(s.value as json)) d where s.name = 'days') as ran
where true having count(*) > 0 on conflict (name) do update set value = excluded.value;
-- end
