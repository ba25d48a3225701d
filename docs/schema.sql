-- The schema after all migrations, as SQLite tells it; PostgreSQL has the same tables and columns.
-- Written by `python -m tests.database.schema > docs/schema.sql`, never by hand.

create table persons (
  id text primary key,
  name text not null,
  since real not null
) strict, without rowid;

create table heard (
  person text primary key references persons (id),
  at real not null
) strict, without rowid;

create table identities (
  key text primary key,
  person text not null references persons (id),
  first text not null references persons (id),
  since real not null,
  linked_in text
) strict, without rowid;
create index identities_of_person on identities (person);
create index identities_first on identities (first);

create table merges (
  id text primary key,
  kept text not null references persons (id),
  gone text not null references persons (id),
  since real not null,
  until real,
  why text not null,
  by_person text not null,
  check (kept <> gone)
) strict;
create unique index merges_once on merges (gone) where until is null;
create index merges_kept on merges (kept) where until is null;
create index merges_into on merges (kept);
create index merges_from on merges (gone);

create table addresses (
  key text primary key,
  kind text not null check (kind in ('dm', 'group', 'channel')),
  name text not null,
  topic text not null,
  opened_for text,
  since real not null
, parent text, afresh real) strict, without rowid;

create table aliases (
  alias text primary key,
  address text not null,
  since real not null,
  check (alias <> address)
) strict, without rowid;
create index aliases_of_address on aliases (address);

create table lanes (
  key text primary key,
  address text not null references addresses (key),
  person text not null,
  since real not null
) strict, without rowid;
create index lanes_at on lanes (address);
create index lanes_of_person on lanes (person) where person <> '';

create table sessions (
  id text primary key,
  owner text not null references persons (id),
  began_by text not null references persons (id),
  began real not null,
  used real not null,
  closed real,
  origin text references lanes (key),
  parent text references sessions (id),
  depth integer not null default 0,
  label text not null default '',
  ending text not null default 'session' check (ending in ('session', 'run')),
  tip_session text,
  tip integer,
  length integer not null default 0,
  indexed integer not null default 0,
  tail integer not null default 0,
  head integer not null default 0,
  running integer not null default 0,
  holder text,
  epoch integer not null default 0,
  due real not null default 0,
  fails integer not null default 0,
  deaths integer not null default 0,
  sweep real default 0, forgotten real, agent text, tried integer not null default 0,
  check (head <= tail),
  check (running <= tail),
  check (holder is null or head < tail),
  check (indexed <= length),
  check ((tip is null) = (tip_session is null)),
  check (label = '' or parent is not null)
  , foreign key (tip_session, tip) references entries (session, n)
) strict, without rowid;
create index sessions_of_owner on sessions (owner, used, id);
create index sessions_ready on sessions (due) where holder is null and head < tail;
create index sessions_held on sessions (holder) where holder is not null;
create index sessions_to_sweep on sessions (sweep) where sweep is not null;
create index sessions_unindexed on sessions (id) where indexed < length;
create index sessions_of_parent on sessions (parent) where parent is not null;
create unique index sessions_label on sessions (parent, label) where label <> '' and closed is null;
create index sessions_open on sessions (owner, used, id) where closed is null;
create index sessions_begun_by on sessions (began_by);
create index sessions_begun_in on sessions (origin, closed) where origin is not null;

create table moves (
  seq integer primary key,
  id text not null unique,
  kind text not null,
  lane text references lanes (key),
  session text references sessions (id),
  by_person text not null,
  at real not null,
  undone real
) strict;
create index moves_of_lane on moves (lane, seq) where undone is null;

create table bindings (
  id integer primary key,
  lane text not null references lanes (key),
  session text not null references sessions (id),
  since real not null,
  until real,
  why text not null,
  ended_why text,
  by_person text not null,
  move text not null references moves (id),
  ended_move text references moves (id), parted real,
  check ((until is null) = (ended_move is null)),
  check (until is null or until >= since)
) strict;
create unique index bindings_one_a_lane on bindings (lane) where until is null;
create index bindings_of_session on bindings (session, id);
create index bindings_of_lane on bindings (lane, id);
create index bindings_of_move on bindings (move);
create index bindings_ended_by on bindings (ended_move) where ended_move is not null;
create trigger bindings_never_go before delete on bindings
begin select raise(abort, 'bindings never go'); end;

create table entries (
  seq integer primary key,
  session text not null references sessions (id),
  n integer not null check (n > 0),
  parent_session text,
  parent integer,
  role text not null check (role in ('person', 'agent', 'gateway')),
  person text not null,
  name text not null,
  parts text not null,
  at real not null,
  turn integer not null,
  identity text not null,
  address text not null,
  unique (session, n),
  foreign key (parent_session, parent) references entries (session, n),
  check ((parent is null) = (parent_session is null))
) strict;
create index entries_after on entries (parent_session, parent) where parent_session <> session;
create trigger entries_never_go before delete on entries
begin select raise(abort, 'entries never go'); end;
create trigger entries_never_change before update on entries
when new.parts not like '%"type":"stone"%'
  or not exists (select 1 from erasures x where x.session = old.session and x.n = old.n and x.done = 0)
  or new.seq <> old.seq or new.session <> old.session or new.n <> old.n or new.parent_session is not old.parent_session
  or new.parent is not old.parent or new.role <> old.role or new.person <> old.person or new.at <> old.at
  or new.turn <> old.turn or new.identity <> old.identity or new.address <> old.address
begin select raise(abort, 'entries never change'); end;
create trigger entries_change_once after update on entries
begin update erasures set done = 1 where session = new.session and n = new.n and done = 0; end;
create index entries_of_turn on entries (session, turn);

create virtual table search using fts5 (tokens, owner, content = '', columnsize = 0, detail = column, tokenize = 'ascii');

create table tips (
  id integer primary key,
  session text not null references sessions (id),
  from_session text,
  from_n integer,
  to_session text,
  to_n integer,
  why text not null,
  by_person text not null,
  at real not null
) strict;
create index tips_of_session on tips (session, id);

create table titles (
  id integer primary key,
  session text not null references sessions (id),
  owner text not null references persons (id),
  name text not null check (length(name) between 1 and 100),
  number integer not null check (number > 0),
  since real not null,
  until real
) strict;
create unique index titles_one_a_session on titles (session) where until is null;
create unique index titles_exact on titles (owner, name, number) where until is null;
create index titles_of_session on titles (session, id);
create index titles_of_owner on titles (owner);

create table contexts (
  id integer primary key,
  session text not null references sessions (id),
  lanes text not null,
  summary text not null,
  redaction text not null,
  voices text not null check (voices in ('one', 'several', 'places')),
  section text not null,
  since real not null
, agent text, notes text) strict;
create index contexts_of_session on contexts (session, id);

create table usage (
  session text not null references sessions (id),
  turn integer not null,
  model text not null,
  input integer not null,
  output integer not null,
  reasoning integer not null,
  cache_read integer not null,
  cache_write integer not null,
  cost real,
  size integer not null default 0,
  at real not null,
  primary key (session, turn, model)
) strict;

create table replicas (
  id text primary key,
  expires real not null
) strict;

create table windows (
  address text not null,
  replica text not null,
  account text not null,
  primary key (address, replica)
) strict;

create table connections (
  account text primary key,
  holder text,
  epoch integer not null default 0,
  cursor text not null default ''
) strict;

create table seen (
  id integer primary key,
  account text not null,
  key text not null,
  at real not null,
  unique (account, key)
) strict;

create table turns (
  session text not null references sessions (id),
  seq integer not null check (seq > 0),
  kind text not null,
  call text,
  lane text references lanes (key),
  route text not null,
  person text not null,
  name text not null,
  message text not null,
  quotes text not null,
  parts text not null,
  accepted real not null,
  trace text not null,
  outcome text check (outcome in ('answered', 'failed', 'stopped', 'withdrawn')),
  finished real,
  within integer,
  stopped_by text,
  error text,
  identity text not null default '',
  asked_by text references sessions (id),
  asked_in integer,
  cause text not null default '',
  awaited real,
  received real, deleted real,
  primary key (session, seq),
  check ((asked_by is null) = (asked_in is null)),
  check (awaited is null or asked_by is not null),
  check ((outcome is null) = (finished is null))
) strict;
create unique index turns_call on turns (call) where call is not null;
create index turns_message on turns (message) where message <> '';
create index turns_cause on turns (cause) where cause <> '';
create index turns_awaited on turns (asked_by) where awaited is not null and received is null;
create index turns_opening on turns (session) where kind = 'opening' and outcome is null;
create trigger turns_never_go before delete on turns
begin select raise(abort, 'turns never go'); end;
create trigger turns_keep_their_route before update of route on turns when new.route <> old.route
begin select raise(abort, 'turns keep their route'); end;
create index turns_asked_by on turns (asked_by, asked_in) where asked_by is not null;
create index turns_quotes on turns (quotes) where quotes <> '';
create trigger turns_counted after insert on turns when new.identity <> ''
begin
  insert into tallies (person, since, messages, waiting, bytes)
  values (new.person, new.accepted, 1, 1, octet_length(new.parts))
  on conflict (person) do update set
    messages = excluded.messages + case when excluded.since >= since and excluded.since < since + 60 then messages else 0 end,
    since = case when excluded.since >= since and excluded.since < since + 60 then since else excluded.since end,
    waiting = waiting + 1, bytes = bytes + excluded.bytes;
end;
create trigger turns_counted_off after update of outcome on turns
when new.identity <> '' and old.outcome is null and new.outcome is not null
begin
  update tallies set waiting = waiting - 1 where person = new.person and waiting > 0;
end;
create trigger turns_counted_anew after update of parts on turns when new.identity <> ''
begin
  update tallies set bytes = max(0, bytes + octet_length(new.parts) - octet_length(old.parts)) where person = new.person;
end;
create index turns_within on turns (session, within) where within is not null;

create table journal (
  session text not null,
  turn integer not null,
  call text not null,
  n integer not null,
  epoch integer not null,
  parts text not null,
  at real not null,
  primary key (session, turn, call),
  foreign key (session, turn) references turns (session, seq)
) strict, without rowid;

create table partials (
  session text primary key references sessions (id),
  turn integer not null,
  epoch integer not null,
  text text not null,
  at real not null
) strict;

create table deliveries (
  id integer primary key,
  key text not null unique,
  account text not null,
  address text not null,
  session text references sessions (id),
  turn integer not null,
  entry integer not null,
  text text not null,
  answers text not null,
  choices text not null default '[]',
  files text not null default '[]',
  accepted real not null,
  holder text,
  attempts integer not null default 0,
  doubtful integer not null default 0,
  due real not null,
  streaming integer,
  message text,
  sent real,
  dead real,
  error text,
  handoff text, only_for text not null default '', forgotten integer, report text, offered real,
  check (sent is null or dead is null)
) strict;
create index deliveries_unsent on deliveries (address, id) where sent is null and dead is null;
create index deliveries_due on deliveries (account, due)
  where sent is null and dead is null and holder is null and streaming is null;
create index deliveries_held on deliveries (holder) where holder is not null;
create index deliveries_receipts on deliveries (message, address) where message is not null;
create index deliveries_dead on deliveries (dead) where dead is not null;
create index deliveries_forgotten on deliveries (forgotten) where forgotten is not null and message is not null;
create index deliveries_notices on deliveries (address) where session is null and text <> '';
create index deliveries_reported on deliveries (account, sent) where report = 'sent';
create index deliveries_of_handoff on deliveries (handoff) where handoff is not null;

create table letters (
  id integer primary key,
  account text not null,
  raw text not null,
  why text not null,
  at real not null,
  retried real
, known integer not null default 0, wanted real) strict;
create index letters_of_strangers on letters (account, id) where known = 0 and retried is null;
create index letters_of_account on letters (account, id) where raw <> '';
create index letters_waiting on letters (id) where retried is null;

create table handoffs (
  id text primary key,
  session text not null references sessions (id),
  origin text not null references lanes (key),
  destination text not null,
  kind text not null check (kind in ('dm', 'group', 'channel')),
  lane text references lanes (key),
  move text references moves (id),
  state text not null check (state in ('requested', 'claimed', 'done', 'failed', 'cancelled')),
  by_person text not null references persons (id),
  requested real not null,
  progressed real not null,
  deadline real,
  holder text,
  epoch integer not null default 0,
  turn integer,
  wrote real,
  tip_session text,
  tip integer,
  settled real,
  error text,
  check ((state in ('requested', 'claimed')) = (settled is null)),
  check (settled is not null or deadline is not null),
  check (state <> 'claimed' or (holder is not null and epoch > 0))
) strict;
create unique index handoffs_one_a_session on handoffs (session) where settled is null;
create index handoffs_live on handoffs (deadline) where settled is null;
create index handoffs_from on handoffs (origin, requested);
create index handoffs_by on handoffs (by_person);
create index handoffs_of_session on handoffs (session, requested);

create table homes (
  account text primary key,
  address text not null references addresses (key),
  by_person text not null references persons (id),
  since real not null
) strict;

create table questions (
  id text primary key,
  lane text not null references lanes (key),
  person text not null references persons (id),
  kind text not null,
  body text not null,
  asked real not null,
  deadline real not null,
  answer text,
  answered real
, state text not null default 'open', session text, turn integer not null default 0, call text, epoch integer not null default 0, approvers text not null default '[]', words text not null default '', choices text not null default '[]', allows text not null default '', agent text not null default '', answered_by text not null default '') strict;
create index questions_asked on questions (lane, person, asked);
create index questions_open on questions (deadline) where answered is null;
create index questions_of_person on questions (person);
create unique index questions_of_turn on questions (session, turn, call) where session is not null;
create index questions_in_lane on questions (lane) where state = 'open';
create index questions_to_approvers on questions (asked) where state = 'open' and approvers <> '[]';

create table codes (
  digest text primary key,
  kind text not null,
  account text not null,
  person text not null,
  body text not null,
  made real not null,
  expires real not null,
  used real
) strict;
create index codes_asked_for on codes (kind, account, person, made);

create table tries (
  id integer primary key,
  person text not null references persons (id),
  at real not null
) strict;
create index tries_of_person on tries (person, at);

create table lists (
  lane text not null,
  person text not null,
  kind text not null,
  sessions text not null,
  at real not null,
  primary key (lane, person, kind)
) strict;

create table keeps (
  session text not null references sessions (id),
  why text not null,
  since real not null,
  until real not null,
  primary key (session, why)
) strict;

create table schedules (
  id text primary key,
  call text not null unique,
  session text not null references sessions (id),
  lane text references lanes (key),
  owner text not null references persons (id),
  task text not null,
  line text not null,
  zone text not null,
  deliver text not null,
  route text not null,
  since real not null,
  due real,
  ended real,
  check ((ended is null) = (due is not null))
) strict;
create index schedules_due on schedules (due) where ended is null;
create index schedules_of_owner on schedules (owner) where ended is null;
create index schedules_by on schedules (owner);
create index schedules_of_session on schedules (session);

create table runs (
  schedule text not null references schedules (id),
  due real not null,
  session text references sessions (id),
  turn integer,
  missed integer not null,
  at real not null,
  kept real,
  primary key (schedule, due)
) strict;
create index runs_unkept on runs (schedule, due) where kept is null;
create index runs_of_turn on runs (session, turn) where session is not null;

create table grants (
  id integer primary key,
  account text not null,
  person text not null references persons (id),
  place text not null check (place in ('dm', 'group')),
  since real not null,
  until real,
  why text not null,
  by_person text not null
) strict;
create unique index grants_once on grants (account, person, place) where until is null;
create index grants_of_person on grants (person) where until is null;
create index grants_ever on grants (person);

create table settings (
  name text primary key,
  value text not null
) strict;

create table audit (
  id integer primary key,
  at real not null,
  last real not null,
  count integer not null default 1,
  event text not null,
  person text not null,
  by_person text not null,
  account text not null,
  identity text not null,
  detail text not null
) strict;
create index audit_of_person on audit (person, id);
create index audit_of_refused on audit (id) where event in ('refused', 'limited');

create table deletions (
  id integer primary key,
  session text not null,
  n integer not null,
  by_person text not null,
  since real not null,
  until real,
  foreign key (session, n) references entries (session, n)
) strict;
create unique index deletions_one_an_entry on deletions (session, n) where until is null;

create table readings (
  address text not null references addresses (key),
  session text not null,
  n integer not null,
  primary key (address, session, n),
  foreign key (session, n) references entries (session, n)
) strict, without rowid;

create table forgettings (
  id integer primary key,
  kind text not null check (kind in ('exchange', 'session', 'person')),
  session text references sessions (id),
  n integer not null default 0,
  by_person text not null,
  why text not null check (why in ('asked', 'deleted', 'retention', 'host')),
  at real not null,
  address text not null default '',
  answers text not null default '[]',
  taken text not null default '{}',
  cleaned real
) strict;
create index forgettings_unclean on forgettings (id) where cleaned is null;

create table erasures (
  id integer primary key,
  forgetting integer not null references forgettings (id),
  session text not null,
  n integer not null,
  done integer not null default 0,
  foreign key (session, n) references entries (session, n)
) strict;
create unique index erasures_open on erasures (session, n) where done = 0;

create table blocks (
  id integer primary key,
  person text not null references persons (id),
  since real not null,
  until real,
  by_person text not null
) strict;
create unique index blocks_once on blocks (person) where until is null;
create index blocks_ever on blocks (person);

create table tallies (
  person text primary key,
  since real not null default 0,
  messages integer not null default 0,
  waiting integer not null default 0,
  bytes integer not null default 0,
  told real not null default 0
) strict, without rowid;

create table agent_states (
  session text not null references sessions (id),
  agent text not null,
  value text not null,
  tip_session text,
  tip integer,
  at real not null,
  primary key (session, agent)
) strict, without rowid;

create table signed_out (
  browser text primary key,
  at real not null
) strict, without rowid;

create table chat_merges (
  id text primary key,
  kept text not null,
  gone text not null,
  since real not null,
  until real,
  why text not null check (why in ('alias', 'host')),
  by_person text not null,
  parted_by text,
  check (kept <> gone),
  check ((until is null) = (parted_by is null))
) strict;
create unique index chat_merges_once on chat_merges (gone) where until is null;
create index chat_merges_kept on chat_merges (kept) where until is null;
create index chat_merges_parted on chat_merges (parted_by) where parted_by is not null;

create table merged_origins (
  merge text not null references chat_merges (id),
  session text not null references sessions (id),
  lane text not null references lanes (key),
  primary key (merge, session)
) strict, without rowid;

create table partings (
  one text not null,
  two text not null,
  merge text not null references chat_merges (id),
  primary key (one, two),
  check (one < two)
) strict, without rowid;

create table permissions (
  id text primary key,
  person text not null references persons (id),
  agent text not null,
  what text not null,
  session text,
  since real not null,
  until real
) strict;
create index permissions_of_person on permissions (person) where until is null;
create index permissions_ever on permissions (person);

create table notes (
  id text primary key,
  person text not null references persons (id),
  agent text not null,
  call text not null unique,
  text text not null,
  at real not null
) strict;
create index notes_of_person on notes (person);

create table note_sources (
  note text not null references notes (id),
  session text not null references sessions (id),
  turn integer not null,
  primary key (note, session, turn)
) strict, without rowid;
create index note_sources_of_turn on note_sources (session, turn);

create table spendings (
  scope text primary key,
  turns integer not null default 0,
  tokens integer not null default 0,
  cost real not null default 0,
  helpings integer not null default 0,
  refused text not null default ''
) strict, without rowid;

create table reservations (
  session text primary key references sessions (id),
  turn integer not null,
  epoch integer not null,
  person text not null,
  day text not null,
  tokens integer not null
) strict, without rowid;
create index reservations_of_day on reservations (day);

create table tokens (
  id text primary key,
  digest text not null unique,
  person text not null references persons (id),
  scope text not null,
  session text references sessions (id),
  name text not null,
  made real not null,
  ends real not null,
  used real,
  revoked real
) strict;
create index tokens_of_person on tokens (person);
create index tokens_of_session on tokens (session) where session is not null;

create table lockers (
  account text not null,
  name text not null,
  value text not null,
  version integer not null,
  primary key (account, name)
) strict, without rowid;

create table file_contents (
  id text primary key,
  begun real
) strict;
create index file_contents_begun on file_contents (begun) where begun is not null;

create table file_chunks (
  content text not null references file_contents (id) on delete cascade,
  n integer not null,
  bytes blob not null,
  primary key (content, n)
) strict;

create table files (
  path text primary key,
  content text not null references file_contents (id),
  size integer not null,
  kept real not null
) strict;
create unique index files_content on files (content);
create index files_kept on files (kept);
