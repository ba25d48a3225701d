-- Tokens of people: each lets a program act for its person in one way, until it ends or is revoked; for one session
-- alone where it names one. Only digests are kept.
create table tokens (
  id {key} primary key,
  digest {key} not null unique,
  person {key} not null references persons (id),
  scope {key} not null,
  session {key} references sessions (id),
  name text not null,
  made {real} not null,
  ends {real} not null,
  used {real},
  revoked {real}
) {strict};
create index tokens_of_person on tokens (person);
