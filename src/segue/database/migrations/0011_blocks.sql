-- People who may talk nowhere, whatever else lets them in.
create table blocks (
  id {serial},
  person {key} not null references persons (id),
  since {real} not null,
  until {real},
  by_person {key} not null
) {strict};
create unique index blocks_once on blocks (person) where until is null;
