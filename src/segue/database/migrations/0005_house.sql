-- Handoffs, homes, questions, codes, the lists that were shown, scheduled work, and Segue's own secrets.

-- `destination` is the address that was asked for and `kind` what sort of place that is; `lane` is where the session is
-- bound, once a thread is open there or none can be; `turn` is the opening turn, `wrote` when its first words came, and
-- the tip is where the session ended before it.
create table handoffs (
  id {key} primary key,
  session {key} not null references sessions (id),
  origin {key} not null references lanes (key),
  destination {key} not null,
  kind text not null check (kind in ('dm', 'group', 'channel')),
  lane {key} references lanes (key),
  move {key} references moves (id),
  state text not null check (state in ('requested', 'claimed', 'done', 'failed', 'cancelled')),
  by_person {key} not null references persons (id),
  requested {real} not null,
  progressed {real} not null,
  deadline {real},
  holder {key},
  epoch {int} not null default 0,
  turn {int},
  wrote {real},
  tip_session {key},
  tip {int},
  settled {real},
  error text,
  check ((state in ('requested', 'claimed')) = (settled is null)),
  check (settled is not null or deadline is not null),
  check (state <> 'claimed' or (holder is not null and epoch > 0))
) {strict};
create unique index handoffs_one_a_session on handoffs (session) where settled is null;
create index handoffs_live on handoffs (deadline) where settled is null;
create index handoffs_from on handoffs (origin, requested);

create table homes (
  account {key} primary key,
  address {key} not null references addresses (key),
  by_person {key} not null references persons (id),
  since {real} not null
) {strict};

-- A question to a person that is open: a permission, who may read, which destination.
create table questions (
  id {key} primary key,
  lane {key} not null references lanes (key),
  person {key} not null references persons (id),
  kind text not null,
  body text not null,
  asked {real} not null,
  deadline {real} not null,
  answer text,
  answered {real}
) {strict};
create index questions_asked on questions (lane, person, asked);
create index questions_open on questions (deadline) where answered is null;

-- One-time codes, kept as digests: pairing, linking, signing in. `account` and `person` are where and by whom it was
-- asked for.
create table codes (
  digest {key} primary key,
  kind text not null,
  account {key} not null,
  person {key} not null,
  body text not null,
  made {real} not null,
  expires {real} not null,
  used {real}
) {strict};
create index codes_asked_for on codes (kind, account, person, made);

-- Codes that somebody typed and that didn't work, so that guessing has an end.
create table tries (
  id {serial},
  person {key} not null references persons (id),
  at {real} not null
) {strict};
create index tries_of_person on tries (person, at);

-- The numbered list that a person was shown last in a lane: `/resume 3` opens its line 3.
create table lists (
  lane {key} not null,
  person {key} not null,
  kind text not null,
  sessions text not null,
  at {real} not null,
  primary key (lane, person, kind)
) {strict};

-- What goes on behind a session's turns: until then it isn't reset.
create table keeps (
  session {key} not null references sessions (id),
  why {key} not null,
  since {real} not null,
  until {real} not null,
  primary key (session, why)
) {strict};

-- Work for later: `call` is its key, by which it is made once; `line` says when it is due again, empty for once; `lane` and
-- `route` are where it was asked for, or the place to deliver to.
create table schedules (
  id {key} primary key,
  call {key} not null unique,
  session {key} not null references sessions (id),
  lane {key} references lanes (key),
  owner {key} not null references persons (id),
  task text not null,
  line text not null,
  zone text not null,
  deliver text not null,
  route {key} not null,
  since {real} not null,
  due {real},
  ended {real},
  check ((ended is null) = (due is not null))
) {strict};
create index schedules_due on schedules (due) where ended is null;
create index schedules_of_owner on schedules (owner) where ended is null;

-- Each time that it was due: the turn that did it, how many times before it nobody did, and whether its answer is where
-- it belongs; `kept` is null while a file of it is to be written.
create table runs (
  schedule {key} not null references schedules (id),
  due {real} not null,
  session {key} references sessions (id),
  turn {int},
  missed {int} not null,
  at {real} not null,
  kept {real},
  primary key (schedule, due)
) {strict};
create index runs_unkept on runs (schedule, due) where kept is null;

-- Who may speak where: `place` is dm or group.
create table grants (
  id {serial},
  account {key} not null,
  person {key} not null references persons (id),
  place text not null check (place in ('dm', 'group')),
  since {real} not null,
  until {real},
  why text not null,
  by_person {key} not null
) {strict};
create unique index grants_once on grants (account, person, place) where until is null;

create table settings (
  name {key} primary key,
  value text not null
) {strict};
