-- Lockers: what the adapter of an account must remember beside messages, such as keys, each with the number of its changes:
-- a change names the number that it rests on.
create table lockers (
  account {key} not null,
  name {key} not null,
  value text not null,
  version {int} not null,
  primary key (account, name)
) {clustered};
