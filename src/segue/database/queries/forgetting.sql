-- columns: erasable
-- An entry `e` of a session `s` as it is about to go.
e.seq, e.session as tip_session, e.n as tip_n, e.turn, e.role, e.person, e.parts,
  case when e.n <= s.indexed then 1 else 0 end as indexed, s.began_by as owner

-- name: erasable_entry
-- One entry.
select {erasable} from entries e join sessions s on s.id = e.session where e.session = :session and e.n = :n;

-- name: erasable_turn
-- The entries that a turn wrote.
select {erasable} from entries e join sessions s on s.id = e.session
where e.session = :session and e.turn = :turn order by e.n;

-- name: erasable_between
-- The entries of a session from one number to another.
select {erasable} from entries e join sessions s on s.id = e.session
where e.session = :session and e.n between :first and :last order by e.n;

-- name: erasable_summaries
-- The summaries in a session.
select {erasable} from entries e join sessions s on s.id = e.session
where e.session = :session and e.role = 'gateway' and e.parts like '%"type":"summary"%' order by e.n;

-- name: erasable_citing
-- The entries of a person's sessions that cite something.
select {erasable} from entries e join sessions s on s.id = e.session
where s.owner = :owner and e.parts like '%"type":"citation"%';

-- name: turns_alike
-- The turns in which the words of an entry were asked again: they follow the same entry and say the same.
select distinct e.turn from entries e join entries f on f.session = e.session and f.n = :n
where e.session = :session and e.turn > 0 and e.role = f.role and e.person = f.person and e.parts = f.parts
  and e.parent_session is not distinct from f.parent_session and e.parent is not distinct from f.parent;

-- name: turns_of_exchange
-- The turns that were answered as one, or run as one now.
select seq from turns where session = :session and seq = :turn
union
select seq from turns where session = :session and within = :turn
union
select t.seq from sessions s {cross_join} turns t on t.session = s.id and t.seq > s.head and t.seq <= s.running
where s.id = :session and t.outcome is null and :turn > s.head and :turn <= s.running order by seq;

-- name: turns_of_edits
-- The turns in which what was asked in a turn was edited while that or another one ran.
select seq from turns where session = :session and kind = 'edit' and call >= :first and call < :last;

-- name: turns_of_session
-- Every turn of a session.
select seq from turns where session = :session order by seq;

-- name: turns_asked_by
-- The turns that a turn asked of other sessions, and the results that came back of them.
select session, seq as turn from turns where asked_by = :session and asked_in = :turn;

-- name: turns_citing
-- The turns that answer a message.
select session, seq as turn from turns where quotes = :message and quotes <> '';

-- name: turn_words
-- The words of a turn, the message that it came as and where.
select parts, message, route, coalesce(within, seq) as answered from turns where session = :session and seq = :turn;

-- name: journal_words
-- The finished tool calls of a turn.
select parts from journal where session = :session and turn = :turn;

-- name: delivery_words
-- What a turn had sent, and the messages as which it was.
select text, coalesce(message, '') as message, address, nullif(files, '[]') as file from deliveries
where key >= :first and key < :last;

-- name: models_told
-- The models that a turn was told to.
select distinct model from usage where session = :session and turn = :turn;

-- name: way_to
-- The entries on the way to one.
with recursive way (session, n) as (
  select e.session, e.n from entries e where e.session = :session and e.n = :n
  union all
  select e.parent_session, e.parent from way w join entries e on e.session = w.session and e.n = w.n
  where e.parent is not null
)
select session, n from way;

-- name: grown_from
-- A session and all that was forked or spawned from it, whoever's it is.
with recursive line (id) as (
  select id from sessions where id = :session
  union
  select s.id from line join sessions s on s.parent = line.id
)
select id from line order by id;

-- name: spawned_from
-- A session and the children that it spawned, and theirs.
with recursive line (id) as (
  select id from sessions where id = :session
  union
  select s.id from line join sessions s on s.parent = line.id where s.depth > 0
)
select id from line order by id;

-- name: places_of_session
-- Where a session was ever spoken to.
select distinct l.address from bindings b join lanes l on l.key = b.lane where b.session = :session order by l.address;

-- name: private_places_of
-- Where a person has spoken in private.
select a.key as address from (
  select l.address from lanes l where l.person = :person and l.person <> ''
  union
  select l.address from sessions s {cross_join} bindings b on b.session = s.id {cross_join} lanes l on l.key = b.lane
  where s.owner = :person) as spoken
{cross_join} addresses a on a.key = spoken.address where a.kind = 'dm' order by a.key;

-- name: said_by
-- The next entry after a place that a person wrote in somebody else's session and that stands.
select e.session, e.n, e.seq from entries e {cross_join} sessions s on s.id = e.session
where e.seq > :after and e.person = :person and s.owner <> :person
  and (e.parts not like '[{"type":"stone"%' or e.parts like '%"type":"text"%') order by e.seq limit 1;

-- name: unforgotten
-- The next session of a person's that stands.
select id from sessions where owner = :person and forgotten is null order by id limit 1;

-- name: forget_name
-- A person has no name any more.
update persons set name = '' where id = :person;

-- name: forget_name_in_turns
-- The same in their turns.
update turns set name = '' where person = :person;

-- name: forget_names_of_places
-- The places where a person talked in private have no name any more.
update addresses set name = '', topic = '' where kind = 'dm' and key in (
  select l.address from lanes l where l.person = :person and l.person <> '');

-- name: add_forgetting
-- Somebody has something forgotten.
insert into forgettings (kind, session, n, by_person, why, at, address, answers, taken)
values (:kind, :session, :n, :by, :why, :at, :address, :answers, :taken) returning id;

-- name: set_taken
-- What a forgetting took.
update forgettings set taken = :taken where id = :id;

-- name: forgettings_to_clean
-- What was forgotten and isn't cleaned up after, the oldest first.
select id, kind, why, at, address, answers, taken from forgettings where cleaned is null order by id limit :count;

-- name: cleaned
-- Nothing is left of what was forgotten, as far as we reach; nothing comes back if somebody was first.
update forgettings set cleaned = :at where id = :id and cleaned is null returning id;

-- name: last_forgetting
-- The newest forgetting.
select coalesce(max(id), 0) as id from forgettings;

-- name: add_erasure
-- One entry may change, once.
insert into erasures (forgetting, session, n) values (:forgetting, :session, :n);

-- name: lay_stone
-- A stone stands where an entry's words were.
update entries set parts = :parts, name = case when :nameless = 1 then '' else name end where session = :session and n = :n;

-- name: lay_stone_on_turn
-- The same in a turn.
update turns set parts = :parts, error = case when error is not null then '' end where session = :session and seq = :turn;

-- name: lay_stone_on_journal
-- The same in the finished tool calls of a turn.
update journal set parts = :parts where session = :session and turn = :turn;

-- name: clear_partial
-- What a session was writing.
update partials set text = '' where session = :session;

-- name: clear_states
-- The agents' own notes of a session go whole: nobody else can read what they say of it.
delete from agent_states where session = :session;

-- name: clear_deliveries
-- What a turn had sent has no words any more, and what still waited to be sent isn't.
update deliveries set text = '', files = '[]', choices = '[]', error = null, forgotten = :forgetting, streaming = null,
  holder = null, dead = null, sent = coalesce(sent, :at)
where key >= :first and key < :last;

-- name: clear_notices
-- What the gateway itself said at an address: it may have quoted what goes.
update deliveries set text = '', files = '[]', choices = '[]'
where session is null and (sent is not null or dead is not null) and address = :address and text <> '';

-- name: clear_asked
-- What the gateway itself asked at an address: it may have quoted what goes.
update questions set words = '' where session is null and state <> 'open' and words <> ''
and lane in (select key from lanes where address = :address);

-- name: notices_unsent
-- Whether something of before is still to be said at an address, or is asked there by the gateway itself.
select 1 from deliveries where address = :address and session is null and sent is null and dead is null and accepted < :at
union all
select 1 from questions q join lanes l on l.key = q.lane
where l.address = :address and q.session is null and q.state = 'open' and q.asked < :at
limit 1;

-- name: letters_at
-- Dead letters of an account that have words.
select id, account, raw, why, at from letters where account = :account and raw <> '' order by id;

-- name: clear_letter
-- A dead letter has no words any more.
update letters set raw = '', why = 'forgotten', retried = coalesce(retried, :at) where id = :id;

-- name: end_for_good
-- A turn that waits or runs ends here.
update turns set outcome = 'stopped', finished = :at where session = :session and seq = :turn and outcome is null returning seq;

-- name: runs_in
-- Whether a turn runs.
select 1 from sessions where id = :session and holder is not null and head < :turn and running >= :turn;

-- name: fence_session
-- Whoever runs a turn of a session can't write any more.
update sessions set holder = null, epoch = epoch + 1, running = 0, fails = 0, deaths = 0, due = {now}
where id = :session and head < tail;

-- name: forget_session
-- A session is no more than stones: no list shows it.
update sessions set forgotten = :at, label = '' where id = :session;

-- name: forget_titles
-- The titles that a session had.
update titles set name = 'forgotten', until = coalesce(until, :at) where session = :session;

-- name: forget_contexts
-- What the agent was told about where it talks.
update contexts set section = '', notes = null where session = :session;

-- name: forget_schedules
-- Scheduled work of a session ends, and its words go.
update schedules set task = '', due = null, ended = coalesce(ended, :at) where session = :session returning id;

-- name: forget_runs
-- No file is written any more of work that was done.
update runs set kept = coalesce(kept, :at) where schedule = :schedule;

-- name: runs_of_turn
-- The times of scheduled work that a turn did.
select r.schedule, r.due, s.zone from runs r join schedules s on s.id = r.schedule
where r.session = :session and r.turn = :turn;

-- name: drop_from_index (sqlite)
-- An entry can't be found any more; its words are named as they were added.
insert into search (search, rowid, tokens, owner) select 'delete', :seq, :tokens, :owner where :indexed = 1;

-- name: drop_from_index (postgres)
-- An entry can't be found any more.
delete from search where seq = :seq and cast(:tokens as text) <> cast(:owner as text) and cast(:indexed as bigint) >= 0;

-- name: sent_of_forgotten
-- Messages on platforms that showed what was forgotten.
select id, address, message from deliveries where forgotten = :forgetting and message is not null order by id;

-- name: deleted
-- A message is gone from its platform.
update deliveries set message = null where id = :id;

-- name: unused_sessions
-- Sessions that nobody has used since then, by their ids, each with the lanes that it was ever spoken to from.
select distinct s.id, s.used, l.key as lane, a.kind from (
  select id, used from sessions
  where forgotten is null and depth = 0 and used <= :before and id > :after
    and (tip is not null or length > 0 or tail > 0)
  order by id limit :count) as s
left join bindings b on b.session = s.id left join lanes l on l.key = b.lane left join addresses a on a.key = l.address
order by s.id;

-- name: still_open
-- Whether a session was used since, or has an open turn, question, child, handoff or scheduled work to come.
select 1 from sessions s where s.id = :session and (s.used > :used or s.head < s.tail or s.forgotten is not null
  or exists (select 1 from sessions c where c.parent = s.id and c.depth > 0 and c.closed is null)
  or exists (select 1 from handoffs h where h.session = s.id and h.settled is null)
  or exists (select 1 from schedules w where w.session = s.id and w.ended is null)
  or exists (select 1 from questions o join bindings b on b.lane = o.lane and b.until is null
    where b.session = s.id and o.answered is null and o.deadline >= :at));

-- name: files_in_entries
-- A page of entries, the newest first; the words of those that name no file are left out.
select '' as session, seq as n, '' as call, case when parts like '%files/%' then parts else '' end as parts
from entries where seq < :before order by seq desc limit :count;

-- name: files_in_deliveries
-- The same of what was sent or is to be.
select '' as session, id as n, '' as call, case when files like '%files/%' then files else '' end as parts
from deliveries where id < :before order by id desc limit :count;

-- name: files_in_letters
-- The same of dead letters that may be taken in again.
select '' as session, id as n, '' as call, case when raw like '%files/%' and retried is null then raw else '' end as parts
from letters where id < :before order by id desc limit :count;

-- name: files_in_turns
-- A page of turns, by their sessions.
select session, seq as n, '' as call, case when parts like '%files/%' then parts else '' end as parts
from turns where (session, seq) > (:session, :n) order by session, seq limit :count;

-- name: files_in_journal
-- A page of what running turns have done.
select session, turn as n, call, case when parts like '%files/%' then parts else '' end as parts
from journal where (session, turn, call) > (:session, :n, :call) order by session, turn, call limit :count;
