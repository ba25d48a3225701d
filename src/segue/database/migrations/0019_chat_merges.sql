-- Chats that turned out to be one: every id that was told beside another, since when, until when, why and by whom. The move
-- that folded their lanes has the merge's id, the one that parted them again is `parted_by`. `aliases` is what all that
-- hold come to.
create table chat_merges (
  id {key} primary key,
  kept {key} not null,
  gone {key} not null,
  since {real} not null,
  until {real},
  why text not null check (why in ('alias', 'host')),
  by_person {key} not null,
  parted_by {key},
  check (kept <> gone),
  check ((until is null) = (parted_by is null))
) {strict};
create unique index chat_merges_once on chat_merges (gone) where until is null;
create index chat_merges_kept on chat_merges (kept) where until is null;
insert into chat_merges (id, kept, gone, since, why, by_person) select alias, address, alias, since, 'alias', '' from aliases;

-- Sessions that a merge counted as begun in the chat that stayed, and the lane in which they began.
create table merged_origins (
  merge {key} not null references chat_merges (id),
  session {key} not null references sessions (id),
  lane {key} not null references lanes (key),
  primary key (merge, session)
) {clustered};

-- Two ids of chats that were parted: told together again, they stay two. The first of a pair is the lesser one.
create table partings (
  one {key} not null,
  two {key} not null,
  merge {key} not null references chat_merges (id),
  primary key (one, two),
  check (one < two)
) {clustered};

-- When it turned out that a lane had spoken to a session only because its chat was taken for another.
alter table bindings add column parted {real};
