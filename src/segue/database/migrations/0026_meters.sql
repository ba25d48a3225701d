-- Messages whose status a platform reports are counted by the month.
create index deliveries_reported on deliveries (account, sent) where report = 'sent';
