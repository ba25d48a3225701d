-- Whether a dead letter is of somebody whom the host knows: those of strangers are forgotten in time.
alter table letters add column known {int} not null default 0;
create index letters_of_strangers on letters (account, id) where known = 0 and retried is null;
