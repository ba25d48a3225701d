-- Word of a platform that tells later what became of a message: 'taken' while it is waited for, then 'sent', 'later' or 'never'.
alter table deliveries add column report {key};
