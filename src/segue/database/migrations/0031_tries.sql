-- When a delivery was first due, by the database's own clock: how long it has waited doesn't hang on the wall clock.
alter table deliveries add column offered {real};

-- The last turn that a try took which broke off: the next try takes no more, so that it asks the same of the agent.
alter table sessions add column tried {int} not null default 0;
