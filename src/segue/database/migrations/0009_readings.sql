-- How far each place has read: up to this entry, and all that leads to it. A row is written when a lane begins or ceases
-- to speak to a session, and when the tip of a session moves that it speaks to; what is said meanwhile needs none.
create table readings (
  address {key} not null references addresses (key),
  session {key} not null,
  n {int} not null,
  primary key (address, session, n),
  foreign key (session, n) references entries (session, n)
) {clustered};

-- What was read before: by the newest entry that a binding saw, by the tips that moved meanwhile, and by a fork's root.
insert into readings (address, session, n)
select l.address, e.session, max(e.n) from bindings b join lanes l on l.key = b.lane
join entries e on e.session = b.session and (b.until is null or e.at <= b.until)
where not exists (select 1 from tips t where t.session = b.session and t.at >= e.at and t.at < b.since)
group by b.id, l.address, e.session
on conflict do nothing;
insert into readings (address, session, n)
select l.address, t.from_session, t.from_n from bindings b join lanes l on l.key = b.lane
join tips t on t.session = b.session and t.at >= b.since and (b.until is null or t.at <= b.until)
where t.from_n is not null
on conflict do nothing;
insert into readings (address, session, n)
select l.address, s.tip_session, s.tip from bindings b join lanes l on l.key = b.lane
join sessions s on s.id = b.session
where s.tip_session <> s.id
on conflict do nothing;
