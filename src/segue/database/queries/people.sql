-- columns: known
p.id, p.name, p.since, h.at is not null as heard, k.id is not null as blocked,
  exists (select 1 from identities o join grants g on g.person = o.first where o.person = p.id and g.until is null) as granted,
  t.since, t.messages, t.waiting, t.bytes

-- name: identity
-- Who an identity is now, whether an agent ever heard them, whether the host ever let them in, and what they have.
select {known}
from identities i join persons p on p.id = i.person left join heard h on h.person = p.id
left join blocks k on k.person = p.id and k.until is null left join tallies t on t.person = p.id where i.key = :key;

-- name: arriving
-- All that is looked up for an arrival: whether it was seen, who its speaker is, and what its lane speaks to.
select exists (select 1 from seen where account = :account and key in (select value from {each}(:keys))) as seen,
  {known}, {bound}
from (select 1 as one) as once
left join identities i on i.key = :identity
left join persons p on p.id = i.person
left join heard h on h.person = p.id
left join blocks k on k.person = p.id and k.until is null
left join tallies t on t.person = p.id
left join lanes l on l.key = :lane
left join addresses a on a.key = l.address
left join bindings b on b.lane = l.key and b.until is null
left join sessions s on s.id = b.session;

-- name: granted
-- One row if the host let a person in, wherever.
select 1 from identities i join grants g on g.person = i.first where i.person = :person and g.until is null limit 1;

-- name: within
-- Whether a person has no more than they may, once a message of theirs is counted.
select 1 from tallies where person = :person and messages <= :messages and waiting <= :waiting;

-- name: count_message
-- A message more that became no turn.
insert into tallies as t (person, since, messages) values (:person, :at, 1)
on conflict (person) do update set
  messages = 1 + case when :at >= t.since and :at < t.since + 60 then t.messages else 0 end,
  since = case when :at >= t.since and :at < t.since + 60 then t.since else :at end;

-- name: count_bytes
-- Files of a person's that are kept.
insert into tallies as t (person, bytes) values (:person, :bytes)
on conflict (person) do update set bytes = t.bytes + excluded.bytes;

-- name: bytes_today
-- What all strangers of an account had kept in the day that their tally counts.
select bytes from tallies where person = :strangers and since > :after and since <= :at;

-- name: count_strangers
-- Bytes that a stranger has kept, among those of all strangers of the account in a day.
insert into tallies as t (person, since, bytes) values (:strangers, :at, :bytes)
on conflict (person) do update set
  bytes = excluded.bytes + case when :at >= t.since and :at < t.since + 86400 then t.bytes else 0 end,
  since = case when :at >= t.since and :at < t.since + 86400 then t.since else :at end;

-- name: tell_limit
-- A person is told that something of theirs was refused; nothing comes back if they were told lately.
insert into tallies as t (person, told) values (:person, :at)
on conflict (person) do update set told = :at where t.told > :at or t.told <= :at - 60 {counted};

-- name: tallies_as_one
-- Two persons turned out to be one: what is kept of the one is kept of the other.
insert into tallies as t (person, bytes) select :kept, g.bytes from tallies g where g.person = :gone
on conflict (person) do update set bytes = t.bytes + excluded.bytes;

-- name: tallies_as_two
-- Two persons are two again.
update tallies set bytes = bytes - (select g.bytes from tallies g where g.person = :gone)
where person = :kept and bytes >= (select g.bytes from tallies g where g.person = :gone);

-- name: person
-- One person by id.
select id, name, since from persons where id = :person;

-- name: add_person
-- Somebody speaks for the first time.
insert into persons (id, name, since) values (:person, :name, :at);

-- name: rename_person
-- Keep the name that the platform shows now.
update persons set name = :name where id = :person;

-- name: hear
-- Somebody asks an agent something; nothing comes back if they had before.
insert into heard (person, at) values (:person, :at) on conflict (person) do nothing returning person;

-- name: heard_as_one
-- Two persons turned out to be one: an agent has met the one if it has met either.
insert into heard (person, at) select :kept, h.at from heard h where h.person = :gone on conflict (person) do nothing;

-- name: add_identity
-- Another way in which a platform knows this person; nothing comes back if somebody else was first.
insert into identities (key, person, first, since) values (:key, :person, :person, :at)
on conflict (key) do nothing returning key;

-- name: move_identities
-- A merge: all that was one person is the other now.
update identities set person = :kept where person = :gone;

-- name: set_linked_in
-- Somebody asks for a code in a private chat, or types one there.
update identities set linked_in = :address where key = :key;

-- name: merged_into
-- Whom a person was merged into.
select kept from merges where gone = :person and until is null;

-- name: hold_person
-- Keep a person from being merged or parted until the transaction ends.
select id from persons where id = :person {for_share};

-- name: lock_persons
-- Hold two persons while they are joined or parted.
select id from persons where id = :one or id = :two order by since, id {for_update};

-- name: add_merge
-- Two persons turned out to be one.
insert into merges (id, kept, gone, since, why, by_person) values (:merge, :kept, :gone, :at, :why, :by);

-- name: merge
-- A merge that holds.
select id, kept, gone, since, why from merges where id = :merge and until is null;

-- name: end_merge
-- The merge was wrong; nothing comes back if somebody was first to say so.
update merges set until = :at where id = :merge and until is null returning id;

-- name: merges_of
-- The merges that hold into this person.
select id, kept, gone, since, why from merges where kept = :person and until is null order by since, id;

-- name: parted
-- Whether anybody who is one of two persons was one with anybody who is the other now: they were parted since.
with recursive one_in (id) as (
  select p.id from persons p where p.id = :one
  union
  select m.gone from merges m join one_in on m.kept = one_in.id where m.until is null
),
two_in (id) as (
  select p.id from persons p where p.id = :two
  union
  select m.gone from merges m join two_in on m.kept = two_in.id where m.until is null
),
one_was (id, since, until) as (
  select id, cast(0 as {real}), cast(1e18 as {real}) from one_in
  union
  select m.kept, case when m.since > w.since then m.since else w.since end,
    case when coalesce(m.until, 1e18) < w.until then coalesce(m.until, 1e18) else w.until end
  from one_was w join merges m on m.gone = w.id where m.since <= w.until and coalesce(m.until, 1e18) >= w.since
),
two_was (id, since, until) as (
  select id, cast(0 as {real}), cast(1e18 as {real}) from two_in
  union
  select m.kept, case when m.since > w.since then m.since else w.since end,
    case when coalesce(m.until, 1e18) < w.until then coalesce(m.until, 1e18) else w.until end
  from two_was w join merges m on m.gone = w.id where m.since <= w.until and coalesce(m.until, 1e18) >= w.since
)
select 1 from one_was a join two_was b on a.id = b.id and a.since <= b.until and b.since <= a.until limit 1;

-- name: everyone_in
-- A person and all who were merged into them, however far back.
with recursive inside (id) as (
  select p.id from persons p where p.id = :person
  union
  select m.gone from merges m join inside on m.kept = inside.id where m.until is null
)
select id from inside;

-- name: move_identities_back
-- A merge undone: the identities that somebody began with are theirs again.
update identities set person = :gone where person = :kept and first = :first;

-- name: move_sessions
-- A merge: the sessions of one person belong to the other now.
update sessions set owner = :kept where owner = :gone;

-- name: move_sessions_back
-- A merge undone: what somebody began, as themselves or by an identity of theirs while they were one, is theirs again.
update sessions set owner = :gone where owner = :kept and (began_by = :first or exists (
  select 1 from turns t join identities i on i.key = t.identity
  where t.session = sessions.id and t.seq = 1 and i.first = :first));

-- name: move_children_back
-- A merge undone: what a session started, and what that did, belongs to its owner.
with recursive below (id) as (
  select s.id from sessions s join sessions p on p.id = s.parent where p.owner = :gone and s.owner = :kept
  union
  select s.id from sessions s join below on below.id = s.parent where s.owner = :kept
)
update sessions set owner = :gone where id in (select id from below);

-- name: move_schedules_back
-- A merge undone: work that was scheduled in somebody's session is theirs.
update schedules set owner = :gone where owner = :kept and session in (select id from sessions where owner = :gone);

-- name: identities_of
-- Every way in which platforms know a person.
select key from identities where person = :person order by since, key;

-- name: lanes_of_person
-- The lanes that are one person's share of an address.
select key from lanes where person = :person and person <> '' order by key;

-- name: lanes_astray
-- The lanes of a person that speak to a session of another: their share of an address, a private chat in which they
-- spoke, and one in which the other never did, nor began it: a command alone may have brought the session there. A
-- thread of a private chat, which may have been opened for a child, is its person's: `chat` is the key without a thread.
with bound (lane, person, began, chat) as (
  select b.lane, l.person, s.depth = 0 and coalesce(s.origin, '') = b.lane, rtrim(l.address, replace(l.address, '/', ''))
  from sessions s join bindings b on b.session = s.id and b.until is null
  join lanes l on l.key = b.lane join addresses a on a.key = l.address
  where s.owner = :owner and (l.person = :person or l.person = '' and a.kind = 'dm')
), spoken (lane, person) as (
  select distinct bound.lane, i.person from bound
  join bindings h on h.lane >= chat and h.lane < substr(chat, 1, length(chat) - 1) || '0' and h.parted is null
  join turns t on t.session = h.session and rtrim(t.route, replace(t.route, '/', '')) = chat
  join identities i on i.key = t.identity
)
select lane from bound where person = :person
or exists (select 1 from spoken where spoken.lane = bound.lane and spoken.person = :person)
or not began and not exists (select 1 from spoken where spoken.lane = bound.lane and spoken.person = :owner)
order by lane;

-- name: forget_readings_astray
-- Two persons are two again: a private chat in which a session's owner never spoke has no claim to have read it.
delete from readings where session in (select id from sessions where owner = :owner)
and address in (select a.key from addresses a where a.kind = 'dm' and not exists (
  select 1 from turns t join identities i on i.key = t.identity where t.route = a.key and i.person = :owner));

-- name: footing
-- Whether a person is the host, how many grants they have in such places of an account, and who owns a lane's session.
with recursive inside (id) as (
  select p.id from persons p where p.id = :person
  union
  select m.gone from merges m join inside on m.kept = inside.id where m.until is null
)
select
  (select count(*) from identities where key = :host and person = :person) as host,
  (select count(*) from grants g join inside on inside.id = g.person
   where g.account = :account and g.place = :place and g.until is null) as granted,
  (select s.owner from bindings b join sessions s on s.id = b.session where b.lane = :lane and b.until is null) as owner;

-- name: add_grant
-- Somebody may speak in such places of an account from now on; nothing comes back if they might before.
insert into grants (account, person, place, since, why, by_person) values (:account, :person, :place, :at, :why, :by)
on conflict (account, person, place) where until is null do nothing returning id;

-- name: end_grants
-- Somebody may no longer speak there, whoever of them it was that might.
with recursive inside (id) as (
  select p.id from persons p where p.id = :person
  union
  select m.gone from merges m join inside on m.kept = inside.id where m.until is null
)
update grants set until = :at
where account = :account and place = :place and until is null and person in (select id from inside) returning id;

-- name: add_code
-- A code that somebody was given.
insert into codes (digest, kind, account, person, body, made, expires)
values (:digest, :kind, :account, :person, :body, :at, :expires);

-- name: codes_made_since
-- The codes of a kind that a person was given on an account since a time.
select count(*) from codes where kind = :kind and account = :account and person = :person and made > :since;

-- name: codes_of_others
-- How many codes of a kind the others on an account hold that work.
select count(*) from codes
where kind = :kind and account = :account and person <> :person and used is null and expires > :at;

-- name: end_oldest_code
-- The code of a kind on an account that was made first, of those that work, works no more.
update codes set expires = :at where digest = (
  select digest from codes where kind = :kind and account = :account and used is null and expires > :at
  order by made, digest limit 1);

-- name: end_codes
-- What a person was given before works no more.
update codes set expires = :at
where kind = :kind and account = :account and person = :person and used is null and expires > :at;

-- name: code
-- A code that works.
select digest, kind, account, person, body as carried from codes where digest = :digest and used is null and expires > :at;

-- name: use_code
-- A code was used: it works no more.
update codes set used = :at where digest = :digest and used is null returning digest;

-- name: add_try
-- Somebody typed a code that doesn't work.
insert into tries (person, at) values (:person, :at);

-- name: tries_since
-- How many codes that don't work a person has typed since a time.
select count(*) from tries where person = :person and at > :since;

-- name: forget_codes
-- Forget codes that worked no more before a time.
delete from codes where expires < :before;

-- name: forget_tries
-- Forget tries from before a time.
delete from tries where at < :before;

-- name: add_block
-- Somebody may talk nowhere; nothing comes back if that was so before.
insert into blocks (person, since, by_person) values (:person, :at, :by)
on conflict (person) where until is null do nothing returning id;

-- name: end_block
-- Somebody may talk again; nothing comes back if they might before.
update blocks set until = :at where person = :person and until is null returning id;

-- name: block
-- Since when somebody may talk nowhere.
select since from blocks where person = :person and until is null;

-- name: blocked_as_one
-- Two persons turned out to be one: whoever blocked either blocked both.
insert into blocks (person, since, by_person) select :kept, b.since, b.by_person from blocks b
where b.person = :gone and b.until is null on conflict (person) where until is null do nothing;

-- name: count_blocks
-- How many people may talk nowhere.
select count(*) from blocks where until is null;

-- name: known_people
-- Everybody who isn't somebody else by now, the newest first, and whether an agent was ever asked something by them.
select p.id, p.name, p.since, h.at is not null as heard, b.since as blocked
from persons p left join heard h on h.person = p.id left join blocks b on b.person = p.id and b.until is null
where not exists (select 1 from merges m where m.gone = p.id and m.until is null) order by p.since desc, p.id;

-- name: identities_known
-- Every way in which platforms know a person, since when, and as whom they first spoke by it.
select i.key as identity, i.since, i.first from identities i where i.person = :person order by i.since, i.key;

-- name: grants_of_person
-- The grants that a person has, as whoever they were given to.
with recursive inside (id) as (
  select p.id from persons p where p.id = :person
  union
  select m.gone from merges m join inside on m.kept = inside.id where m.until is null
)
select g.account, g.person, g.place as scope, g.since, g.why, g.by_person as "by"
from inside {cross_join} grants g on g.person = inside.id where g.until is null order by g.id;

-- name: everyones_grants
-- Every grant that holds, oldest first.
select account, person, place as scope, since, why, by_person as "by" from grants where until is null order by id;

-- name: signed_out
-- Browsers whose cookies count no more.
select browser from signed_out;

-- name: sign_out
-- A browser signs out; nothing comes back if it had before.
insert into signed_out (browser, at) values (:browser, :at) on conflict (browser) do nothing returning browser;

-- name: forget_signed_out
-- Forget who signed out before a time.
delete from signed_out where at < :before;

-- columns: token
-- A token as its host sees it.
t.id, t.person, t.scope, t.session, t.name, t.made, t.ends, t.used, t.revoked

-- name: add_token
-- A token that a person was given.
insert into tokens (id, digest, person, scope, session, name, made, ends)
values (:id, :digest, :person, :scope, :session, :name, :at, :ends);

-- name: token_shown
-- The token that somebody shows, whether or not it counts.
select {token} from tokens t where t.digest = :digest;

-- name: token
-- A token by its id.
select {token} from tokens t where t.id = :id;

-- name: tokens
-- Every token, the newest first.
select {token} from tokens t order by t.made desc, t.id;

-- name: tokens_of
-- The tokens of a person, also those from before merges, the newest first.
with recursive inside (id) as (
  select p.id from persons p where p.id = :person
  union
  select m.gone from merges m join inside on m.kept = inside.id where m.until is null
)
select {token} from tokens t join inside on inside.id = t.person order by t.made desc, t.id;

-- name: use_token
-- When a token was last used, to the hour.
update tokens set used = :at where id = :id;

-- name: revoke_token
-- A token counts no more; nothing comes back if it didn't before.
update tokens set revoked = :at where id = :id and revoked is null and ends > :at returning id;

-- name: revoke_tokens_of_session
-- Tokens for one session alone count no more: it was forgotten.
update tokens set revoked = :at where session = :session and revoked is null and ends > :at;

-- name: forget_token_name
-- Nothing says any more what a token was for.
update tokens set name = '' where id = :id;

-- name: forget_tokens
-- Forget tokens that count no more since a time.
delete from tokens where ends < :before or revoked < :before;

-- name: persons_after
-- Some persons, by their ids.
select id from persons where id > :after order by id limit :count;

-- name: strangers
-- Persons between two ids whom nothing mentions that is younger than a time, or that stays: they never got in.
select p.id from persons p where p.id between :first and :last and p.since < :before
and not exists (select 1 from heard h where h.person = p.id)
and not exists (select 1 from tallies t where t.person = p.id
  and (t.bytes > 0 or t.waiting > 0 or t.since >= :before or t.told >= :before))
and not exists (select 1 from audit a where a.person = p.id)
and not exists (select 1 from identities i where i.person = p.id
  and (i.first <> p.id or i.linked_in is not null or i.since >= :before))
and not exists (select 1 from identities i where i.first = p.id and i.person <> p.id)
and not exists (select 1 from merges m where m.kept = p.id)
and not exists (select 1 from merges m where m.gone = p.id)
and not exists (select 1 from grants g where g.person = p.id)
and not exists (select 1 from blocks b where b.person = p.id)
and not exists (select 1 from sessions s where s.owner = p.id)
and not exists (select 1 from sessions s where s.began_by = p.id)
and not exists (select 1 from lanes l where l.person = p.id and l.person <> '')
and not exists (select 1 from questions x where x.person = p.id)
and not exists (select 1 from schedules s where s.owner = p.id)
and not exists (select 1 from handoffs h where h.by_person = p.id)
and not exists (select 1 from homes h where h.by_person = p.id)
and not exists (select 1 from tries t where t.person = p.id)
and not exists (select 1 from codes c where c.person = p.id)
and not exists (select 1 from tokens t where t.person = p.id)
order by p.id;

-- name: forget_identities
-- Nobody is known by these ids any more.
delete from identities where person = :person;

-- name: forget_tally
-- Nothing is counted of a person any more.
delete from tallies where person = :person;

-- name: forget_person
-- A person who never got in is known no more.
delete from persons where id = :person;

-- columns: note
-- A note as its person and its agent see it.
id, agent, text, at

-- name: add_note
-- A note about a person.
insert into notes (id, person, agent, call, text, at) values (:id, :person, :agent, :call, :text, :at);

-- name: add_note_source
-- The turn that a note comes of.
insert into note_sources (note, session, turn) values (:note, :session, :turn);

-- name: inherit_note_sources
-- A note comes of all that the one before it came of.
insert into note_sources (note, session, turn)
select :note, session, turn from note_sources where note = :before on conflict (note, session, turn) do nothing;

-- name: note_of_call
-- The note that a call has written, in whichever attempt.
select {note} from notes where call = :call;

-- name: notes_of
-- The notes about a person, also those from before merges, the oldest first.
with recursive inside (id) as (
  select p.id from persons p where p.id = :person
  union
  select m.gone from merges m join inside on m.kept = inside.id where m.until is null
)
select {note} from notes where person in (select id from inside) order by at, id;

-- name: move_notes_back
-- A merge undone: a note that comes of somebody's session is about them.
update notes set person = :gone where person = :kept and exists (
  select 1 from note_sources n join sessions s on s.id = n.session where n.note = notes.id and s.owner = :gone);

-- name: notes_of_turn
-- The notes that come of a turn.
select note from note_sources where session = :session and turn = :turn;

-- name: notes_of_session
-- The notes that come of a session.
select distinct note from note_sources where session = :session;

-- name: drop_note_sources
-- Nothing says any more where a note came from.
delete from note_sources where note = :note;

-- name: drop_note
-- A note goes; whose it was comes back.
delete from notes where id = :note returning person;

-- name: drop_notes_told
-- No agent is told the notes about a person as they were: it is told anew what there is.
update contexts set notes = null, agent = null
where notes is not null and session in (select id from sessions where owner = :person);

-- name: ever_shared
-- Whether a session, or one that it was started by, was ever spoken to from where several people are.
with recursive line (id, parent, depth) as (
  select id, parent, depth from sessions where id = :session
  union all
  select s.id, s.parent, s.depth from line join sessions s on s.id = line.parent where line.depth > 0
)
select 1 as one from line {cross_join} bindings b on b.session = line.id {cross_join} lanes l on l.key = b.lane
{cross_join} addresses a on a.key = l.address where a.kind <> 'dm' limit 1;

-- name: sessions_awaited_by
-- The sessions in which a turn of a person's runs or waits.
select s.id from sessions s where s.holder is not null and exists (
  select 1 from turns t where t.session = s.id and t.seq > s.head and t.outcome is null and t.person = :person)
union all
select s.id from sessions s where s.holder is null and s.head < s.tail and exists (
  select 1 from turns t where t.session = s.id and t.seq > s.head and t.outcome is null and t.person = :person);

-- columns: unfinished
t.session, t.seq, t.kind not in ('opening', 'ending', 'sent', 'result', 'scheduled') as spoken, t.person

-- name: unfinished_turns_of
-- The turns of a person that run or wait in a session.
select {unfinished} from turns t
where t.session = :session and t.person = :person and t.outcome is null and t.seq > (select head from sessions where id = :session)
order by t.seq;

-- name: unfinished_turns
-- Every turn that runs or waits.
select {unfinished} from sessions s {cross_join} turns t on t.session = s.id and t.seq > s.head
where s.holder is not null and t.outcome is null
union all
select {unfinished} from sessions s {cross_join} turns t on t.session = s.id and t.seq > s.head
where s.holder is null and s.head < s.tail and t.outcome is null;

-- name: unfinished_turn
-- A turn that runs.
select {unfinished} from turns t where t.session = :session and t.seq = :turn;

-- name: asked_at
-- The address of the lane in which a turn was asked for.
select l.address from turns t join lanes l on l.key = t.lane where t.session = :session and t.seq = :turn;

-- name: withdraw_turn
-- A turn that waits is taken back; nothing comes back if it runs.
update turns set outcome = 'withdrawn', finished = :at
where session = :session and seq = :turn and outcome is null
  and seq > (select case when holder is null then head else running end from sessions where id = :session) returning seq;

-- name: stop_turn
-- A turn that runs is to end.
update turns set stopped_by = person
where session = :session and seq = :turn and outcome is null and stopped_by is null;
