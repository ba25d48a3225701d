-- What is found by each of these was read from one end of its table to the other.
create index aliases_of_address on aliases (address);
create index entries_of_turn on entries (session, turn);
create index turns_within on turns (session, within) where within is not null;
create index deliveries_of_handoff on deliveries (handoff) where handoff is not null;
create index runs_of_turn on runs (session, turn) where session is not null;
create index handoffs_of_session on handoffs (session, requested);
create index chat_merges_parted on chat_merges (parted_by) where parted_by is not null;
create index letters_of_account on letters (account, id) where raw <> '';
create index letters_waiting on letters (id) where retried is null;
create index titles_of_session on titles (session, id);
create index tokens_of_session on tokens (session) where session is not null;
create index schedules_of_session on schedules (session);

-- Whose rows go, by a reference that must be looked for.
create index titles_of_owner on titles (owner);
create index permissions_ever on permissions (person);

-- Sessions that are closed are moved, too, when two chats turn out to be one.
drop index sessions_begun_in;
create index sessions_begun_in on sessions (origin, closed) where origin is not null;
