-- The exchange: what was accepted, the turns that wait or ran, what is to be sent, and the replicas that do it.

create table replicas (
  id {key} primary key,
  expires {real} not null
) {strict};

-- The terminals and pages that somebody looks at, and the process that serves them.
create table windows (
  address {key} not null,
  replica {key} not null,
  account {key} not null,
  primary key (address, replica)
) {strict};

-- A connection that only one process may hold.
create table connections (
  account {key} primary key,
  holder {key},
  epoch {int} not null default 0,
  cursor text not null default ''
) {strict};

create table seen (
  id {serial},
  account {key} not null,
  key {key} not null,
  at {real} not null,
  unique (account, key)
) {strict};

-- `route` is where the answer goes, fixed when the turn is accepted; `within` is the turn that answered it too;
-- `stopped_by` is the person who asked for its end. One that a session's agent asked for names that turn (`asked_by`,
-- `asked_in`) and the one that all of it comes of (`cause`). `awaited` is until when its answer is kept for whoever asked,
-- instead of being delivered; once answered, it stays only if the answer was kept, and `received` is when it was taken.
create table turns (
  session {key} not null references sessions (id),
  seq {int} not null check (seq > 0),
  kind text not null,
  call {key},
  lane {key} references lanes (key),
  route {key} not null,
  person {key} not null,
  name text not null,
  message {key} not null,
  quotes {key} not null,
  parts text not null,
  accepted {real} not null,
  trace text not null,
  outcome text check (outcome in ('answered', 'failed', 'stopped', 'withdrawn')),
  finished {real},
  within {int},
  stopped_by {key},
  error text,
  identity {key} not null default '',
  asked_by {key} references sessions (id),
  asked_in {int},
  cause {key} not null default '',
  awaited {real},
  received {real},
  primary key (session, seq),
  check ((asked_by is null) = (asked_in is null)),
  check (awaited is null or asked_by is not null),
  check ((outcome is null) = (finished is null))
) {strict};
create unique index turns_call on turns (call) where call is not null;
create index turns_message on turns (message) where message <> '';
create index turns_cause on turns (cause) where cause <> '';
create index turns_awaited on turns (asked_by) where awaited is not null and received is null;
create index turns_opening on turns (session) where kind = 'opening' and outcome is null;

-- only: sqlite
create trigger turns_never_go before delete on turns
begin select raise(abort, 'turns never go'); end;
create trigger turns_keep_their_route before update of route on turns when new.route <> old.route
begin select raise(abort, 'turns keep their route'); end;
-- end
-- only: postgres
create trigger turns_never_go before delete on turns
for each row execute function stay();
create trigger turns_keep_their_route before update of route on turns
for each row when (new.route <> old.route) execute function stay();
-- end

-- Finished tool calls of a turn that runs: a retry sees them.
create table journal (
  session {key} not null,
  turn {int} not null,
  call {key} not null,
  n {int} not null,
  epoch {int} not null,
  parts text not null,
  at {real} not null,
  primary key (session, turn, call),
  foreign key (session, turn) references turns (session, seq)
) {clustered};

-- What a running turn has said so far, for those who watch from another replica.
create table partials (
  session {key} primary key references sessions (id),
  turn {int} not null,
  epoch {int} not null,
  text text not null,
  at {real} not null
) {strict};

-- Once sent, the row is a receipt: `message` is the platform's id of it. While a turn streams into it, `streaming` is
-- that turn's epoch: it keeps its place in the order, but only the turn's holder may send it. `doubtful` counts the
-- attempts of which nobody knows whether the platform took them. With the last of the messages
-- that carry `handoff`, its opening, that is done.
create table deliveries (
  id {serial},
  key {key} not null unique,
  account {key} not null,
  address {key} not null,
  session {key} references sessions (id),
  turn {int} not null,
  entry {int} not null,
  text text not null,
  answers text not null,
  choices text not null default '[]',
  files text not null default '[]',
  accepted {real} not null,
  holder {key},
  attempts {int} not null default 0,
  doubtful {int} not null default 0,
  due {real} not null,
  streaming {int},
  message {key},
  sent {real},
  dead {real},
  error text,
  handoff {key},
  check (sent is null or dead is null)
) {strict};
create index deliveries_unsent on deliveries (address, id) where sent is null and dead is null;
create index deliveries_due on deliveries (account, due)
  where sent is null and dead is null and holder is null and streaming is null;
create index deliveries_held on deliveries (holder) where holder is not null;
create index deliveries_receipts on deliveries (message, address) where message is not null;
create index deliveries_dead on deliveries (dead) where dead is not null;

-- An arrival that couldn't be understood, as it came.
create table letters (
  id {serial},
  account {key} not null,
  raw text not null,
  why text not null,
  at {real} not null,
  retried {real}
) {strict};
