-- Notebooks: what an agent noted about a person, and the turns that each note comes of: a note that was put in place of
-- another comes of that one's turns, too, so that it goes with any of them. `call` is the same in every attempt.
create table notes (
  id {key} primary key,
  person {key} not null references persons (id),
  agent {key} not null,
  call {key} not null unique,
  text text not null,
  at {real} not null
) {strict};
create index notes_of_person on notes (person);

create table note_sources (
  note {key} not null references notes (id),
  session {key} not null references sessions (id),
  turn {int} not null,
  primary key (note, session, turn)
) {clustered};
create index note_sources_of_turn on note_sources (session, turn);

-- What an agent is told stands for one agent, and with its notes as they were then: null where it has no notebook.
alter table contexts add column agent {key};
alter table contexts add column notes text;
