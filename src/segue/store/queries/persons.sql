-- name: identity
-- Who an identity is now.
select p.id, p.name, p.since from identities i join persons p on p.id = i.person where i.key = :key;

-- name: person
-- One person by id.
select id, name, since from persons where id = :person;

-- name: add_person
-- Somebody speaks for the first time.
insert into persons (id, name, since) values (:person, :name, :at);

-- name: rename_person
-- Keep the name that the platform shows now.
update persons set name = :name where id = :person;

-- name: add_identity
-- Another way in which a platform knows this person; nothing comes back if somebody else was first.
insert into identities (key, person, first, since) values (:key, :person, :person, :at)
on conflict (key) do nothing returning key;

-- name: move_identities
-- A merge: all that was one person is the other now.
update identities set person = :kept where person = :gone;

-- name: lock_persons
-- Hold two persons while they are joined or parted.
select id, since from persons where id = :one or id = :two order by since, id {for_update};

-- name: add_merge
-- Two persons turned out to be one.
insert into merges (id, kept, gone, since, why, by_person) values (:merge, :kept, :gone, :at, :why, :by);

-- name: merge
-- A merge that holds.
select kept, gone, since from merges where id = :merge and until is null;

-- name: end_merge
-- The merge was wrong.
update merges set until = :at where id = :merge;

-- name: merges_of
-- The merges that hold into this person.
select id, gone, since, why, by_person from merges where kept = :person and until is null order by since, id;

-- name: everyone_in
-- A person and all who were merged into them, however far back.
with recursive inside (id) as (
  select p.id from persons p where p.id = :person
  union
  select m.gone from merges m join inside on m.kept = inside.id where m.until is null
)
select id from inside;

-- name: identities_from
-- The identities of a person that began as another.
select key from identities where person = :person and first = :first;

-- name: move_identity
-- One identity goes back to whom it was.
update identities set person = :person where key = :key;

-- name: move_sessions
-- A merge: the sessions of one person belong to the other now.
update sessions set owner = :kept where owner = :gone;

-- name: move_sessions_back
-- A merge undone: what somebody began is theirs again.
update sessions set owner = :gone where owner = :kept and began_by = :first;

-- name: identities_of
-- Every way in which platforms know a person.
select key from identities where person = :person order by since, key;

-- name: lanes_of_person
-- The lanes that are one person's share of an address, with what they speak to and when they last did.
select l.key, l.address, b.session, coalesce((select max(t.accepted) from turns t where t.session = b.session and t.lane = l.key), b.since, l.since)
from lanes l left join bindings b on b.lane = l.key and b.until is null
where l.person = :person order by l.key;
