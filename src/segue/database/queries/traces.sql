-- columns: traced_delivery
-- What became of a delivery.
session, turn, address, accepted, attempts, message, sent, dead, holder, streaming, error

-- columns: traced_turn
-- What became of a turn `t` of a session `s`.
t.session, t.seq, t.kind, t.lane, t.name, t.accepted, t.outcome, t.finished, coalesce(t.within, t.seq) as within, t.error,
  s.holder is not null and t.seq <= s.running as running

-- name: turns_of_message
-- The turns that messages with this id became, the oldest first.
select {traced_turn} from turns t join sessions s on s.id = t.session where t.message = :message and t.message <> '' order by t.accepted, t.session, t.seq limit :count;

-- name: traced_turn
-- One turn, by its session and number.
select {traced_turn} from turns t join sessions s on s.id = t.session where t.session = :session and t.seq = :turn;

-- name: binding_at
-- The binding by which a lane spoke to a session at a time.
select why, since from bindings where lane = :lane and session = :session
order by case when since <= :at then 0 else 1 end, id desc limit 1;

-- name: deliveries_of_turn
-- What a turn has to send.
select {traced_delivery} from deliveries
where key >= :first and key < :last order by id;

-- name: notices_of_turn
-- What a turn said that is in no transcript.
select text from deliveries where key >= :first and key < :last and entry = 0 order by id;

-- name: deliveries_of_message
-- What was sent under a platform's id.
select {traced_delivery} from deliveries
where message = :message order by id limit :count;

-- name: seen_message
-- Whether a message with this id came in at all; without an index, since only a person asks.
select account, at from seen
where substr(key, length(key) - length(cast(:message as text))) = '/' || cast(:message as text) order by id limit :count;
