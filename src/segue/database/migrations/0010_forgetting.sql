-- Forgetting: a person has words taken on purpose, and a stone stands where they were.

-- What was asked for: `session` and `n` name an exchange, without `n` it is the session, without both a person. `address`
-- is where its receipt is told, empty if nobody waits for one; `taken` is what the receipt tells, without any words;
-- `cleaned` is when the words had left files, free space and log, too.
create table forgettings (
  id {serial},
  kind text not null check (kind in ('exchange', 'session', 'person')),
  session {key} references sessions (id),
  n {int} not null default 0,
  by_person {key} not null,
  why text not null check (why in ('asked', 'deleted', 'retention', 'host')),
  at {real} not null,
  address {key} not null default '',
  answers text not null default '[]',
  taken text not null default '{}',
  cleaned {real}
) {strict};
create index forgettings_unclean on forgettings (id) where cleaned is null;

-- One change of one entry: the triggers let an entry change once for each row here, and `done` says that it has.
create table erasures (
  id {serial},
  forgetting {int} not null references forgettings (id),
  session {key} not null,
  n {int} not null,
  done {int} not null default 0,
  foreign key (session, n) references entries (session, n)
) {strict};
create unique index erasures_open on erasures (session, n) where done = 0;

-- only: sqlite
drop trigger entries_never_change;
create trigger entries_never_change before update on entries
when new.parts not like '%"type":"stone"%'
  or not exists (select 1 from erasures x where x.session = old.session and x.n = old.n and x.done = 0)
  or new.seq <> old.seq or new.session <> old.session or new.n <> old.n or new.parent_session is not old.parent_session
  or new.parent is not old.parent or new.role <> old.role or new.person <> old.person or new.at <> old.at
  or new.turn <> old.turn or new.identity <> old.identity or new.address <> old.address
begin select raise(abort, 'entries never change'); end;
create trigger entries_change_once after update on entries
begin update erasures set done = 1 where session = new.session and n = new.n and done = 0; end;
-- Words that are deleted from the index are taken out of it, not marked as gone.
insert into search (search, rank) values ('secure-delete', 1);
-- Until today what was overwritten stayed in free pages: the file is written anew once, if there is anything in it.
insert into settings (name, value) select 'vacuum', 'due' where exists (select 1 from entries);
-- end
-- only: postgres
create function change_once() returns trigger language plpgsql as $$
begin
  if new.parts not like '%"type":"stone"%' or to_jsonb(new) - 'parts' - 'name' <> to_jsonb(old) - 'parts' - 'name' then
    raise exception 'entries never change' using errcode = 'integrity_constraint_violation';
  end if;
  update erasures set done = 1 where session = new.session and n = new.n and done = 0;
  if not found then
    raise exception 'entries never change' using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
drop trigger entries_never_change on entries;
create trigger entries_never_change before delete on entries
for each row execute function stay();
create trigger entries_change_once before update on entries
for each row execute function change_once();
-- end

alter table sessions add column forgotten {real};
alter table deliveries add column forgotten {int};
create index deliveries_forgotten on deliveries (forgotten) where forgotten is not null and message is not null;
create index deliveries_notices on deliveries (address) where session is null and text <> '';
create index turns_asked_by on turns (asked_by, asked_in) where asked_by is not null;
create index turns_quotes on turns (quotes) where quotes <> '';
