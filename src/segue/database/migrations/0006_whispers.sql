-- Messages that only one person is to see, by their id on the platform.
alter table deliveries add column only_for text not null default '';
