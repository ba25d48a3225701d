-- What its author took back on the platform after it was answered: hidden from lists, searches and prompts as long as it holds.
create table deletions (
  id {serial},
  session {key} not null,
  n {int} not null,
  by_person {key} not null,
  since {real} not null,
  until {real},
  foreign key (session, n) references entries (session, n)
) {strict};
create unique index deletions_one_an_entry on deletions (session, n) where until is null;

-- When its author took back what is being answered: its entry isn't there yet.
alter table turns add column deleted {real};
