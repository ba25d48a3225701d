-- Budgets: what was spent in each scope, how often the host allowed as much again and the day on which they refused, and
-- what running turns have reserved. A reservation holds as long as its epoch holds the session: death ends it.
create table spendings (
  scope {key} primary key,
  turns {int} not null default 0,
  tokens {int} not null default 0,
  cost {real} not null default 0,
  helpings {int} not null default 0,
  refused text not null default ''
) {clustered};

create table reservations (
  session {key} primary key references sessions (id),
  turn {int} not null,
  epoch {int} not null,
  person {key} not null,
  day {key} not null,
  tokens {int} not null
) {clustered};
create index reservations_of_day on reservations (day);
