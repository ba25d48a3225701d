-- name: add_fact
-- Something happened that the host may want to know of.
insert into audit (at, last, count, event, person, by_person, account, identity, detail)
values (:at, :at, :times, :event, :person, :by, :account, :identity, :detail);

-- name: count_fact
-- The same happened again within an hour; nothing comes back if it didn't.
update audit set count = count + :times, last = :at where id = (
  select max(id) from audit
  where person = :person and event = :event and by_person = :by and account = :account and identity = :identity
  and detail = :detail and at > :since)
returning id;

-- name: facts
-- Facts, the newest first; of one person, or of everybody.
select a.id, a.at, a.last, a.count, a.event, a.person, a.by_person as "by", a.account, a.identity, a.detail,
  coalesce(p.name, '') as name, coalesce(b.name, '') as by_name
from audit a left join persons p on p.id = a.person left join persons b on b.id = a.by_person
where :person in ('', a.person, a.by_person) order by a.id desc limit :count;

-- name: forget_facts
-- Forget refusals from before a time, and all but the newest.
delete from audit where event in ('refused', 'limited') and (last < :before or id <= (
  select coalesce(max(id), 0) from (
    select id from audit where event in ('refused', 'limited') order by id desc limit 1 offset :most) oldest));
