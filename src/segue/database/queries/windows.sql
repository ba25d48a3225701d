-- name: close_windows
-- Nobody looks at anything that a replica serves.
delete from windows where replica = :replica;

-- name: open_window
-- Somebody looks at an address that a replica serves.
insert into windows (address, replica, account) values (:address, :replica, :account);

-- name: windows_elsewhere
-- The addresses of an account that somebody looks at and another living replica serves; there are few windows.
select distinct w.address from windows w join replicas r on r.id = w.replica
where w.account = :account and w.replica <> :me order by w.address;

-- name: free_windows
-- Nobody looks at what a replica served that isn't alive.
delete from windows where not exists (select 1 from replicas r where r.id = windows.replica);
