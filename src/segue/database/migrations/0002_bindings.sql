-- Where people talk, the sessions there are, and which lane speaks to which session since when.

create table addresses (
  key {key} primary key,
  kind text not null check (kind in ('dm', 'group', 'channel')),
  name text not null,
  topic text not null,
  opened_for {key},
  since {real} not null
) {clustered};

-- Another id of the same chat: both are addresses' keys.
create table aliases (
  alias {key} primary key,
  address {key} not null,
  since {real} not null,
  check (alias <> address)
) {clustered};

-- `person` is empty when the people at the address share the lane; never null, so that a key is one lane.
create table lanes (
  key {key} primary key,
  address {key} not null references addresses (key),
  person {key} not null,
  since {real} not null
) {clustered};
create index lanes_at on lanes (address);
create index lanes_of_person on lanes (person) where person <> '';

-- The hot row: who holds the session, which turn is answered (head), which runs (up to running), which was accepted last
-- (tail), where it ends (tip). `sweep` is when it is looked at next, whether it is to be reset; null once it was over, or
-- nobody spoke to it, and nothing has been asked of it since.
create table sessions (
  id {key} primary key,
  owner {key} not null references persons (id),
  began_by {key} not null references persons (id),
  began {real} not null,
  used {real} not null,
  closed {real},
  origin {key} references lanes (key),
  parent {key} references sessions (id),
  depth {int} not null default 0,
  label text not null default '',
  ending text not null default 'session' check (ending in ('session', 'run')),
  tip_session {key},
  tip {int},
  length {int} not null default 0,
  indexed {int} not null default 0,
  tail {int} not null default 0,
  head {int} not null default 0,
  running {int} not null default 0,
  holder {key},
  epoch {int} not null default 0,
  due {real} not null default 0,
  fails {int} not null default 0,
  deaths {int} not null default 0,
  sweep {real} default 0,
  check (head <= tail),
  check (running <= tail),
  check (holder is null or head < tail),
  check (indexed <= length),
  check ((tip is null) = (tip_session is null)),
  check (label = '' or parent is not null)
  {tip_reference}
) {clustered};
create index sessions_of_owner on sessions (owner, used, id);
create index sessions_ready on sessions (due) where holder is null and head < tail;
create index sessions_held on sessions (holder) where holder is not null;
create index sessions_to_sweep on sessions (sweep) where sweep is not null;
create index sessions_unindexed on sessions (id) where indexed < length;
create index sessions_of_parent on sessions (parent) where parent is not null;
create index sessions_begun_in on sessions (origin) where origin is not null and closed is null;
create unique index sessions_label on sessions (parent, label) where label <> '' and closed is null;

-- `seq` tells which move came later, whatever the clocks said.
create table moves (
  seq {serial},
  id {key} not null unique,
  kind text not null,
  lane {key} references lanes (key),
  session {key} references sessions (id),
  by_person {key} not null,
  at {real} not null,
  undone {real}
) {strict};
create index moves_of_lane on moves (lane, seq) where undone is null;

-- History is kept: the row that is open is the binding, the others are how it came to be.
create table bindings (
  id {serial},
  lane {key} not null references lanes (key),
  session {key} not null references sessions (id),
  since {real} not null,
  until {real},
  why text not null,
  ended_why text,
  by_person {key} not null,
  move {key} not null references moves (id),
  ended_move {key} references moves (id),
  check ((until is null) = (ended_move is null)),
  check (until is null or until >= since)
) {strict};
create unique index bindings_one_a_lane on bindings (lane) where until is null;
create index bindings_of_session on bindings (session, id);
create index bindings_of_lane on bindings (lane, id);
create index bindings_of_move on bindings (move);
create index bindings_ended_by on bindings (ended_move) where ended_move is not null;

-- only: sqlite
create trigger bindings_never_go before delete on bindings
begin select raise(abort, 'bindings never go'); end;
-- end
-- only: postgres
create function stay() returns trigger language plpgsql as
$$ begin raise exception '% never change', tg_table_name using errcode = 'integrity_constraint_violation'; end $$;
create trigger bindings_never_go before delete on bindings
for each row execute function stay();
-- end
