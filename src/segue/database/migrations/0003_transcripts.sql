-- What was said: entries that only grow, the moves of tips, titles, usage, and the search index.

create table entries (
  seq {serial},
  session {key} not null references sessions (id),
  n {int} not null check (n > 0),
  parent_session {key},
  parent {int},
  role text not null check (role in ('person', 'agent', 'gateway')),
  person {key} not null,
  name text not null,
  parts text not null,
  at {real} not null,
  turn {int} not null,
  identity {key} not null,
  address {key} not null,
  unique (session, n),
  foreign key (parent_session, parent) references entries (session, n),
  check ((parent is null) = (parent_session is null))
) {strict};
create index entries_after on entries (parent_session, parent) where parent_session <> session;

-- only: sqlite
create trigger entries_never_change before update on entries
begin select raise(abort, 'entries never change'); end;
create trigger entries_never_go before delete on entries
begin select raise(abort, 'entries never go'); end;
create virtual table search using fts5 (tokens, owner, content = '', columnsize = 0, detail = column, tokenize = 'ascii');
-- end
-- only: postgres
alter table sessions add foreign key (tip_session, tip) references entries (session, n);
create trigger entries_never_change before update or delete on entries
for each row execute function stay();
create trigger entries_never_go before truncate on entries
for each statement execute function stay();
create table search (
  seq bigint primary key references entries (seq),
  tokens tsvector not null
);
create index search_tokens on search using gin (tokens) with (fastupdate = off);
-- end

create table tips (
  id {serial},
  session {key} not null references sessions (id),
  from_session {key},
  from_n {int},
  to_session {key},
  to_n {int},
  why text not null,
  by_person {key} not null,
  at {real} not null
) {strict};
create index tips_of_session on tips (session, id);

create table titles (
  id {serial},
  session {key} not null references sessions (id),
  owner {key} not null references persons (id),
  name {key} not null check (length(name) between 1 and 100),
  number {int} not null check (number > 0),
  since {real} not null,
  until {real}
) {strict};
create unique index titles_one_a_session on titles (session) where until is null;
create unique index titles_exact on titles (owner, name, number) where until is null;

-- What an agent is told about where it talks: for these lanes, after this summary, behind this redaction, hearing so many
-- voices.
create table contexts (
  id {serial},
  session {key} not null references sessions (id),
  lanes text not null,
  summary {key} not null,
  redaction text not null,
  voices text not null check (voices in ('one', 'several', 'places')),
  section text not null,
  since {real} not null
) {strict};
create index contexts_of_session on contexts (session, id);

-- `size` is what the last request of the turn came to: its prompt, and its answer without reasoning.
create table usage (
  session {key} not null references sessions (id),
  turn {int} not null,
  model text not null,
  input {int} not null,
  output {int} not null,
  reasoning {int} not null,
  cache_read {int} not null,
  cache_write {int} not null,
  cost {real},
  size {int} not null default 0,
  at {real} not null,
  primary key (session, turn, model)
) {strict};
