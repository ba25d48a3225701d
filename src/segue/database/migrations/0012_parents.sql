-- The chat that a thread belongs to, where a thread's own address doesn't tell.
alter table addresses add column parent {key};
