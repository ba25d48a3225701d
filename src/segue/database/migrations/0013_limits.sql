-- What one person has of each thing that is limited. The database counts: every turn that somebody's words made, until it
-- ends, and the bytes of the words. `since` is when the minute began whose messages are counted; `told` when they were
-- last told of a refusal.
create table tallies (
  person {key} primary key,
  since {real} not null default 0,
  messages {int} not null default 0,
  waiting {int} not null default 0,
  bytes {int} not null default 0,
  told {real} not null default 0
) {clustered};
insert into tallies (person, waiting, bytes)
select person, sum(case when outcome is null then 1 else 0 end), sum(octet_length(parts)) from turns
where identity <> '' group by person;
create index grants_of_person on grants (person) where until is null;
create index sessions_open on sessions (owner, used, id) where closed is null;

-- only: sqlite
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
-- end
-- only: postgres
create function count_turn() returns trigger language plpgsql as $$ begin
  insert into tallies as t (person, since, messages, waiting, bytes)
  values (new.person, new.accepted, 1, 1, octet_length(new.parts))
  on conflict (person) do update set
    messages = excluded.messages
      + case when excluded.since >= t.since and excluded.since < t.since + 60 then t.messages else 0 end,
    since = case when excluded.since >= t.since and excluded.since < t.since + 60 then t.since else excluded.since end,
    waiting = t.waiting + 1, bytes = t.bytes + excluded.bytes;
  return null;
end $$;
create function count_turn_off() returns trigger language plpgsql as $$ begin
  update tallies set waiting = waiting - 1 where person = new.person and waiting > 0;
  return null;
end $$;
create function count_turn_anew() returns trigger language plpgsql as $$ begin
  update tallies set bytes = greatest(0, bytes + octet_length(new.parts) - octet_length(old.parts))
  where person = new.person;
  return null;
end $$;
create trigger turns_counted after insert on turns
for each row when (new.identity <> '') execute function count_turn();
create trigger turns_counted_off after update of outcome on turns
for each row when (new.identity <> '' and old.outcome is null and new.outcome is not null) execute function count_turn_off();
create trigger turns_counted_anew after update of parts on turns
for each row when (new.identity <> '') execute function count_turn_anew();
-- end
