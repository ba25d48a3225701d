-- Questions that agents ask: whose turn waits, the words and choices that people see, who may answer and who did.
-- `call` is the same in every attempt at the turn; `epoch` is that of the holder who waits for the answer. What a person
-- allowed for always, or for a session, is a permission.
alter table questions add column state text not null default 'open';
alter table questions add column session {key};
alter table questions add column turn {int} not null default 0;
alter table questions add column call {key};
alter table questions add column epoch {int} not null default 0;
alter table questions add column approvers text not null default '[]';
alter table questions add column words text not null default '';
alter table questions add column choices text not null default '[]';
alter table questions add column allows {key} not null default '';
alter table questions add column agent {key} not null default '';
alter table questions add column answered_by text not null default '';
update questions set choices = '["yes","no"]', state = case
  when answered is null then 'open' when answer = 'expired' then 'expired' when answer = 'replaced' then 'withdrawn'
  else 'answered' end;
create unique index questions_of_turn on questions (session, turn, call) where session is not null;
create index questions_in_lane on questions (lane) where state = 'open';
create index questions_to_approvers on questions (asked) where state = 'open' and approvers <> '[]';

create table permissions (
  id {key} primary key,
  person {key} not null references persons (id),
  agent {key} not null,
  what {key} not null,
  session {key},
  since {real} not null,
  until {real}
) {strict};
create index permissions_of_person on permissions (person) where until is null;
