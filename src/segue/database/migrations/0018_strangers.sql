-- A person whom nothing mentions is forgotten: what may mention one is looked up instead of read through.
create index sessions_begun_by on sessions (began_by);
create index identities_first on identities (first);
create index merges_into on merges (kept);
create index merges_from on merges (gone);
create index questions_of_person on questions (person);
create index schedules_by on schedules (owner);
create index grants_ever on grants (person);
create index blocks_ever on blocks (person);
create index handoffs_by on handoffs (by_person);
