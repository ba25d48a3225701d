-- Facts for the host: who came in, as whom, and what was taken from whom. Persons that were forgotten stay named by id.
create table audit (
  id {serial},
  at {real} not null,
  last {real} not null,
  count {int} not null default 1,
  event text not null,
  person {key} not null,
  by_person {key} not null,
  account {key} not null,
  identity {key} not null,
  detail text not null
) {strict};
create index audit_of_person on audit (person, id);
create index audit_of_refused on audit (id) where event in ('refused', 'limited');
