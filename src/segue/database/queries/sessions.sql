-- columns: session
-- A session `s` with its title `t`.
s.id, s.owner, s.began, s.used, s.tip_session, s.tip as tip_n,
  {shown_title} as title, s.parent, s.label, s.closed, s.origin

-- name: add_session
-- A new session.
insert into sessions (id, owner, began_by, began, used, origin, parent, depth, label, ending, tip_session, tip)
values (:session, :owner, :owner, :at, :at, :origin, :parent, :depth, :label, :ending, :tip_session, :tip);

-- name: add_beneath
-- A session in which a sub-agent worked: its parent's owner's, and closed from the start.
insert into sessions (id, owner, began_by, began, used, closed, parent, depth, label, ending)
select :session, s.owner, s.owner, :at, :at, :at, s.id, s.depth + 1, :label, 'run' from sessions s where s.id = :parent;

-- name: session
-- One session with its title.
select {session}
from sessions s left join titles t on t.session = s.id and t.until is null where s.id = :session;

-- name: lock_session
-- Hold a session and see how a move finds it.
select id, owner, tip_session, tip as tip_n, closed is not null as closed, head < tail as busy, depth from sessions
where id = :session {for_update};

-- name: handoff_running
-- Whether a handoff of a session hasn't settled yet.
select id from handoffs where session = :session and settled is null;

-- name: children
-- The live children of a session, those with a label first.
select {session} from sessions s left join titles t on t.session = s.id and t.until is null
where s.parent = :session and s.closed is null and s.depth > 0 order by s.label desc, s.id limit :most;

-- name: child
-- The live child of a session that goes by a label.
select id from sessions where parent = :parent and label = :label and closed is null;

-- name: sessions_of_owner
-- The sessions of a person in which anything was said, last used first, children only as deep as is asked for.
select {session}
from sessions s left join titles t on t.session = s.id and t.until is null
where s.owner = :owner and (s.used, s.id) < (:before, :id) and s.used >= :since
  and s.depth <= :depth and s.forgotten is null and (s.tip is not null or s.length > 0 or s.tail > 0)
order by s.used desc, s.id desc limit :count;

-- name: sessions_of_lane
-- The open sessions that a lane has spoken to and in which anything was said, the last to come first.
select {session}
from (select session, min(id) as first from bindings where lane = :lane and parted is null group by session) as b
join sessions s on s.id = b.session left join titles t on t.session = s.id and t.until is null
where s.closed is null and s.forgotten is null and (s.tip is not null or s.length > 0 or s.tail > 0) order by b.first desc limit :count;

-- name: sessions_over
-- The open sessions of a person beyond so many, but for those at work.
select id from (select id, head, tail from sessions where owner = :owner and closed is null
  order by used desc, id desc limit :count offset :most) as old where head = tail;

-- name: close_session
-- A session takes no more turns; its transcript stays.
update sessions set closed = :at where id = :session and closed is null returning id;

-- name: reopen_session
-- A closed session goes on; one that did a single task lasts from now on.
update sessions set closed = null, ending = 'session' where id = :session;

-- name: move_origin
-- Sessions that began in one lane count as begun in another.
update sessions set origin = :to where origin = :lane;

-- name: keep_list
-- The list that a person was shown, so that its numbers stay true.
insert into lists (lane, person, kind, sessions, at) values (:lane, :person, :kind, :sessions, :at)
on conflict (lane, person, kind) do update set sessions = excluded.sessions, at = excluded.at;

-- name: kept_list
-- The list that a person was shown last.
select sessions from lists where lane = :lane and person = :person and kind = :kind;

-- name: add_context
-- What the agent is told about where it talks.
insert into contexts (session, lanes, summary, redaction, voices, section, agent, notes, since)
values (:session, :lanes, :summary, :redaction, :voices, :section, :agent, :notes, :at);

-- name: context
-- What the agent is told now.
select lanes, summary, redaction, agent, voices, section, notes from contexts where session = :session order by id desc limit 1;

-- name: context_after
-- What an agent was told last after a summary, behind a redaction.
select lanes, summary, redaction, agent, voices, section, notes from contexts
where session = :session and summary = :summary and redaction = :redaction
  and agent is not distinct from cast(:agent as text)
order by id desc limit 1;

-- name: lanes_staying
-- The lanes that speak to a session and will, the newest first: one that a handoff leaves isn't among them; then those
-- that have left it and wait for an answer.
select l.key as lane, {place} from (
  select b.lane, b.id from bindings b where b.session = :session and b.until is null and not exists (
    select 1 from handoffs h where h.session = b.session and h.origin = b.lane and h.settled is null)
  union all
  select t.lane, min(-t.seq) from sessions s join turns t on t.session = s.id and t.seq > s.head
  where s.id = :session and t.outcome is null and t.lane is not null and not exists (
    select 1 from bindings b where b.lane = t.lane and b.session = t.session and b.until is null)
  group by t.lane) as stays
join lanes l on l.key = stays.lane join addresses a on a.key = l.address order by stays.id desc;

-- name: place_of
-- What is known about the place of a lane.
select {place} from lanes l join addresses a on a.key = l.address where l.key = :lane;

-- name: sources
-- As whom and where people ever spoke to a session, or to one that it goes on from.
with recursive line (id) as (
  select id from sessions where id = :session
  union
  select s.parent from line join sessions s on s.id = line.id where s.parent is not null
)
select distinct t.identity, t.route from line join turns t on t.session = line.id where t.identity <> '';

-- name: branches
-- The sessions that were forked or spawned from one.
select {session}
from sessions s left join titles t on t.session = s.id and t.until is null where s.parent = :session order by s.began, s.id;

-- name: children_at_work
-- Whether a turn of a live child runs or waits, or of a child's child.
with recursive below (id, at_work) as (
  select id, head < tail from sessions where parent = :session and closed is null and depth > 0
  union all
  select c.id, c.head < c.tail from below join sessions c on c.parent = below.id where c.closed is null and c.depth > 0
)
select 1 from below where at_work limit 1;

-- name: skip_turns
-- Turns up to this one happened elsewhere.
update sessions set head = :turn, tail = :turn where id = :session;

-- name: agent_of
-- The agent that a session named, and what it kept there; one that named none is answered by this one.
select s.agent, a.value, a.tip_session, a.tip as tip_n
from sessions s left join agent_states a on a.session = s.id and a.agent = coalesce(s.agent, :agent)
where s.id = :session;

-- name: agent_state
-- The note of one agent about a session.
select value, tip_session, tip as tip_n from agent_states where session = :session and agent = :agent;

-- name: inherited_states
-- The notes of one agent about the sessions that one goes on from, the nearest first.
with recursive line (id, away) as (
  select parent, 1 from sessions where id = :session and parent is not null
  union all
  select s.parent, line.away + 1 from line join sessions s on s.id = line.id where s.parent is not null
)
select a.value, a.tip_session, a.tip as tip_n from line {cross_join} agent_states a on a.session = line.id and a.agent = :agent
order by line.away limit 10;

-- name: name_agent
-- A session names its agent, once.
update sessions set agent = :agent where id = :session and agent is null;

-- name: void_states
-- What agents know of a session, and of those that share its past, isn't what is said there any more.
with recursive line (id) as (
  select id from sessions where id = :session
  union
  select s.id from line join sessions s on s.parent = line.id
)
update agent_states set tip_session = session, tip = 0 where session in (select id from line);

-- name: keep_state
-- An agent keeps something of a session for itself, together with what it said.
insert into agent_states (session, agent, value, tip_session, tip, at) values (:session, :agent, :value, :tip_session, :tip, :at)
on conflict (session, agent) do update
set value = excluded.value, tip_session = excluded.tip_session, tip = excluded.tip, at = excluded.at;
