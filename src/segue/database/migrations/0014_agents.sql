-- Several agents: the one that a session named (none yet, if null), and what each keeps of a session for itself.
alter table sessions add column agent text;

create table agent_states (
  session {key} not null references sessions (id),
  agent {key} not null,
  value text not null,
  tip_session {key},
  tip {int},
  at {real} not null,
  primary key (session, agent)
) {clustered};
