-- Who speaks: persons, the identities that platforms know them by, and the merges that joined two of them.

create table persons (
  id {key} primary key,
  name text not null,
  since {real} not null
) {clustered};

-- Who has ever asked an agent something: a row of its own, since what is said holds the person's only for reading.
create table heard (
  person {key} primary key references persons (id),
  at {real} not null
) {clustered};

-- `person` is who it is now, `first` who it was before any merge, so that a merge can be undone. `linked_in` is the
-- private chat in which somebody last asked for a code, or typed one, to say who they are.
create table identities (
  key {key} primary key,
  person {key} not null references persons (id),
  first {key} not null references persons (id),
  since {real} not null,
  linked_in {key}
) {clustered};
create index identities_of_person on identities (person);

create table merges (
  id {key} primary key,
  kept {key} not null references persons (id),
  gone {key} not null references persons (id),
  since {real} not null,
  until {real},
  why text not null,
  by_person {key} not null,
  check (kept <> gone)
) {strict};
create unique index merges_once on merges (gone) where until is null;
create index merges_kept on merges (kept) where until is null;
