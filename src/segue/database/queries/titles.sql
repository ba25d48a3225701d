-- columns: shown_title
-- A title `t` as people read it; the first of a lineage has its number where there are others.
coalesce(case when t.number = 1 and not {several} then t.name else t.name || ' #' || t.number end, '')

-- columns: several
-- Whether others are called as a title `t`.
exists (select 1 from titles o where o.owner = t.owner and o.name = t.name and o.number > t.number and o.until is null)

-- name: title
-- What a session is called.
select t.name, t.number, {several} as several from titles t where t.session = :session and t.until is null;

-- name: title_at
-- What a session is called in a place: a title that it got when the place had left it isn't known there.
select t.name, t.number, {several} as several from titles t where t.session = :session and t.until is null and exists (
  select 1 from bindings b join lanes l on l.key = b.lane
  where b.session = t.session and l.address = :address and b.parted is null and (b.until is null or b.until >= t.since));

-- name: last_number
-- The newest number of a lineage.
select coalesce(max(number), 0) from titles where owner = :owner and name = :name and until is null;

-- name: end_title
-- A session gives up its title.
update titles set until = :at where session = :session and until is null;

-- name: add_title
-- A session takes a title; nothing comes back if that one was taken meanwhile.
insert into titles (session, owner, name, number, since) values (:session, :owner, :name, :number, :at)
on conflict (owner, name, number) where until is null do nothing returning number;

-- name: titled
-- The session of an owner that goes by a title: the newest of its lineage, or that number.
select session from titles
where owner = :owner and name = :name and until is null and (cast(:number as bigint) is null or number = cast(:number as bigint))
order by number desc limit 1;

-- name: titles_of
-- The titles of an owner, newest first.
select t.name, t.number, {several} as several from titles t where t.owner = :owner and t.until is null order by t.id desc limit :count;

-- name: titles_astray
-- The titles of an owner whose sessions belong to somebody else now, the oldest first.
select t.session, t.name, t.number, {several} as several, s.owner from titles t join sessions s on s.id = t.session
where t.owner = :owner and t.until is null and s.owner <> t.owner order by t.id;

-- name: number_before
-- The number that a title had while another person owned it.
select number from titles where session = :session and owner = :owner and name = :name order by id desc limit 1;
