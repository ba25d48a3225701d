-- name: count_dead
-- What couldn't ever be sent, and why the newest of it.
select count(*), max(dead), (select error from deliveries where dead is not null order by dead desc, id desc limit 1)
from deliveries where dead is not null;

-- name: count_letters
-- Arrivals that couldn't be understood, and why the newest.
select count(*), max(at), (select why from letters where retried is null order by id desc limit 1)
from letters where retried is null;

-- name: count_late
-- Deliveries that have waited for longer than this, since when, and why the oldest.
select count(*), min(accepted), (select error from deliveries where sent is null and dead is null order by id limit 1)
from deliveries where sent is null and dead is null and streaming is null and accepted < {now} - :seconds;

-- name: count_idle
-- Sessions with turns that nobody has taken for longer than this.
select count(*), min(due) from sessions where holder is null and head < tail and due < {now} - :seconds;

-- name: count_failed
-- Turns that failed since one was last answered, when the newest of them ended, and why.
select count(*), max(finished), (select error from turns where outcome = 'failed' order by finished desc limit 1)
from turns where outcome = 'failed'
  and finished > coalesce((select max(finished) from turns where outcome = 'answered'), 0);

-- name: count_replicas
-- Replicas that are alive, and those that are not and weren't buried.
select coalesce(sum(case when expires >= {now} then 1 else 0 end), 0), coalesce(sum(case when expires < {now} then 1 else 0 end), 0)
from replicas;
