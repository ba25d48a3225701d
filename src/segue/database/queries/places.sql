-- columns: place
-- A place as it is known.
a.key as address, a.kind, a.name, a.topic, a.opened_for is not null as opened, a.parent

-- name: address
-- What is known about an address.
select {place} from addresses a where a.key = :address;

-- name: see_address
-- Remember an address and what is known about it now; an opened thread stays one.
insert into addresses (key, kind, name, topic, opened_for, parent, since)
values (:address, :kind, :name, :topic, :opened_for, :parent, :at)
on conflict (key) do update set kind = excluded.kind, name = excluded.name, topic = excluded.topic,
  opened_for = coalesce(addresses.opened_for, excluded.opened_for), parent = coalesce(excluded.parent, addresses.parent);

-- name: see_lane
-- Remember a lane.
insert into lanes (key, address, person, since) values (:lane, :address, :person, :at) on conflict (key) do nothing;

-- name: alias
-- The address that another id of the same chat stands for.
select address from aliases where alias = :alias;

-- name: aliases_in
-- The addresses that some ids stand for, of those that are another id of a chat.
select alias, address from aliases where alias in (select value from {each}(:keys));

-- name: add_alias
-- Another id of the same chat.
insert into aliases (alias, address, since) values (:alias, :address, :at)
on conflict (alias) do update set address = excluded.address;

-- name: lanes_at
-- The lanes at an address.
select key from lanes where address = :address order by key;

-- name: addresses_in
-- A chat and its threads: their keys begin with the chat's.
select {place} from addresses a where a.key >= :chat and a.key < :after order by a.key;

-- name: chat_since
-- Since when a chat or any of its threads is known.
select min(since) from addresses where key >= :chat and key < :after having min(since) is not null;

-- name: aliases_of
-- The other ids of a chat.
select alias from aliases where address = :address order by alias;

-- name: ids_of_chat
-- The other ids of a chat, the newest last.
select alias from aliases where address = :address order by since, alias;

-- name: all_lanes
-- Every lane that ever spoke to a session, with the one that it speaks to.
select l.key as lane, a.kind, a.name, b.session, b.since, b.why
from lanes l join addresses a on a.key = l.address left join bindings b on b.lane = l.key and b.until is null
where l.key > :after and exists (select 1 from bindings e where e.lane = l.key) order by l.key limit :count;

-- name: lock_lane
-- Hold a lane. What it speaks to is read after this, since only a new statement sees what was waited for.
select key from lanes where key = :lane {for_update};

-- name: home
-- The address that an account's owner named for what has nowhere else to go.
select {place}, h.by_person as "by", h.since from homes h join addresses a on a.key = h.address
where h.account = :account;

-- name: set_home
-- Name the home of an account.
insert into homes (account, address, by_person, since) values (:account, :address, :by, :at)
on conflict (account) do update set address = excluded.address, by_person = excluded.by_person, since = excluded.since;

-- name: homes
-- Every home.
select {place}, h.by_person as "by", h.since from homes h join addresses a on a.key = h.address
order by h.account;

-- columns: chat_merge
-- A merge of two chats.
id, kept, gone, since, why, by_person as "by"

-- name: add_chat_merge
-- Two ids turned out to be one chat's.
insert into chat_merges (id, kept, gone, since, why, by_person) values (:merge, :kept, :gone, :at, :why, :by);

-- name: chat_merge
-- A merge of chats that holds.
select {chat_merge} from chat_merges where id = :merge and until is null;

-- name: chat_merges
-- Merges of chats that hold, the newest first.
select {chat_merge} from chat_merges where until is null order by since desc, id desc limit :count;

-- name: chat_merges_into
-- The merges that hold into an id of a chat.
select {chat_merge} from chat_merges where kept = :chat and until is null order by since, id;

-- name: end_chat_merge
-- Two chats are two again.
update chat_merges set until = :at, parted_by = :move where id = :merge and until is null;

-- name: unspoken_merges
-- Merges of ids that were told before a time and by which nobody ever spoke, nor in any chat that they were told with.
select m.id from chat_merges m where m.until is null and m.since < :before and not exists (
  select 1 from aliases s join addresses a on a.key >= s.address and a.key < substr(s.address, 1, length(s.address) - 1) || '0'
  where s.alias = m.gone) order by m.id limit :count;

-- name: forget_merge
-- The same for one of them, whose id is known no more.
delete from chat_merges as m where m.id = :merge and m.until is null and m.since < :before and not exists (
  select 1 from aliases s join addresses a on a.key >= s.address and a.key < substr(s.address, 1, length(s.address) - 1) || '0'
  where s.alias = m.gone) returning gone;

-- name: chats_within
-- The id that went in a merge, and all that were merged into it, however far back.
with recursive inside (id) as (
  select gone from chat_merges where id = :merge
  union
  select m.gone from chat_merges m join inside on m.kept = inside.id where m.until is null
)
select id from inside;

-- name: keep_origins
-- Keep in which lane sessions began that are about to count as begun in another.
insert into merged_origins (merge, session, lane)
select cast(:merge as text), id, origin from sessions where origin = :lane;

-- name: move_origins_back
-- Sessions count again as begun where they did before a merge, if they are still counted in that chat.
update sessions set origin = (select o.lane from merged_origins o where o.merge = :merge and o.session = sessions.id)
where id in (select o.session from merged_origins o where o.merge = :merge)
  and origin in (select key from lanes where address >= :chat and address < :after);

-- name: parted_chats
-- Ids that were taken for one chat's once and parted, of some.
select one, two from partings where one in (select value from {each}(:keys)) and two in (select value from {each}(:keys));

-- name: add_parting
-- Two ids aren't one chat's.
insert into partings (one, two, merge) values (:one, :two, :merge) on conflict (one, two) do update set merge = excluded.merge;

-- name: forget_parting
-- Two ids may be one chat's after all.
delete from partings where one = :one and two = :two;

-- name: forget_partings
-- All ids of a chat are one chat's again.
delete from partings where (one = :chat or one in (select alias from aliases where address = :chat))
  and (two = :chat or two in (select alias from aliases where address = :chat));

-- name: remove_alias
-- An id stands for itself again.
delete from aliases where alias = :alias;

-- name: sessions_in
-- The sessions that any lane of a chat has spoken to.
select distinct b.session from lanes l join bindings b on b.lane = l.key
where l.address >= :chat and l.address < :after order by b.session;

-- name: spoken_in
-- Whether any lane of a chat has spoken to a session, and no lane of an address had before a time.
select 1 from bindings b join lanes l on l.key = b.lane
where b.session = :session and l.address >= :chat and l.address < :after and not exists (
  select 1 from bindings o join lanes k on k.key = o.lane
  where o.session = :session and k.address = :address and o.since < :since) limit 1;

-- name: speaking_in
-- What each lane of a chat speaks to, and by which move.
select b.lane, b.session, b.move from lanes l join bindings b on b.lane = l.key and b.until is null
where l.address >= :chat and l.address < :after order by b.lane;

-- name: part_bindings
-- The lanes of a chat that stayed have no part in what they spoke to only because another was taken for it.
update bindings set parted = :at where parted is null and since >= :since
and lane in (select key from lanes where address >= :chat and address < :after)
and exists (select 1 from bindings b join lanes l on l.key = b.lane where b.session = bindings.session
  and l.address >= :gone and l.address < :gone_after)
and not exists (select 1 from bindings o join lanes k on k.key = o.lane join lanes h on h.key = bindings.lane
  where o.session = bindings.session and k.address = h.address and o.since < :since);

-- name: forget_readings_like
-- A chat is two again: the one that stayed has read nothing that only the other had, or that was only the other's.
delete from readings where address >= :chat and address < :after
and (exists (select 1 from readings g where g.session = readings.session and g.n = readings.n
    and g.address >= :gone and g.address < :gone_after)
  or exists (select 1 from bindings b join lanes l on l.key = b.lane where b.session = readings.session
    and l.address >= :gone and l.address < :gone_after))
and not exists (select 1 from bindings o join lanes k on k.key = o.lane
  where o.session = readings.session and k.address = readings.address and o.since < :since);

-- name: repoint_aliases
-- What stood for one address stands for another now.
update aliases set address = :address where address = :old and alias <> :address;

-- name: people_at
-- The people who ever spoke at an address, whoever they were taken for at the time.
select distinct p.id, p.name, p.since from lanes l join bindings b on b.lane = l.key and b.parted is null
join turns t on t.session = b.session and t.route = l.address
join identities i on i.key = t.identity join persons p on p.id = i.person where l.address = :address;

-- name: private_lanes
-- The private chats on an account in which a person's sessions were spoken to, the newest first.
select {place} from sessions s join bindings b on b.session = s.id and b.parted is null join lanes l on l.key = b.lane
join addresses a on a.key = l.address
where s.owner = :person and a.kind = 'dm' and a.key >= :first and a.key < :last and l.person in ('', :person)
order by b.id desc limit :count;

-- name: linked_chats
-- The private chats on an account in which a person said by a code who they are.
select {place} from identities i join addresses a on a.key = i.linked_in
where i.person = :person and a.kind = 'dm' and a.key >= :first and a.key < :last order by i.key;

-- name: address_after
-- The first address between two keys.
select key from addresses where key >= :first and key < :last order by key limit 1;

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

-- name: widen_places
-- A chat and its threads aren't private any more; returns those that were.
update addresses set kind = :kind where key >= :chat and key < :after and kind = 'dm' returning key;

-- name: narrow_places
-- A chat and its threads are private. Those that were are locked by this, too: before their lanes, as everywhere.
update addresses set kind = 'dm' where key >= :chat and key < :after;

-- name: sessions_spoken_to
-- What the lanes of a chat and of its threads speak to, and whose session that is.
select b.lane, b.session, s.owner from lanes l join bindings b on b.lane = l.key and b.until is null
join sessions s on s.id = b.session where l.address >= :chat and l.address < :after order by b.lane;

-- name: start_afresh
-- Other people read an address from now on.
update addresses set afresh = :at where key = :address;

-- name: part_lanes_at
-- The lanes of an address have no part in what they have spoken to, but for those of one person's sessions.
update bindings set parted = :at where parted is null and lane in (select key from lanes where address = :address)
and not exists (select 1 from sessions s where s.id = bindings.session and s.owner = :but);

-- name: started_afresh
-- Whether other people came to read an address.
select 1 from addresses where key = :address and afresh is not null;

-- name: forget_readings_at
-- An address has read nothing, but for one person's sessions.
delete from readings where address = :address
and not exists (select 1 from sessions s where s.id = readings.session and s.owner = :but);

-- name: forget_home_at
-- An address is nobody's home any more.
delete from homes where address = :address;

-- name: withdraw_deliveries_at
-- What sessions wanted to say at an address and surely haven't is not to be said there any more.
update deliveries set sent = :at, holder = null, streaming = null
where address = :address and session is not null and sent is null and dead is null and holder is null and doubtful = 0;
