-- name: footing
-- Whether a person is the host, how many grants they have in such places of an account, and who owns a lane's session.
with recursive inside (id) as (
  select p.id from persons p where p.id = :person
  union
  select m.gone from merges m join inside on m.kept = inside.id where m.until is null
)
select
  (select count(*) from identities where key = :host and person = :person),
  (select count(*) from grants g join inside on inside.id = g.person
   where g.account = :account and g.place = :place and g.until is null),
  (select s.owner from bindings b join sessions s on s.id = b.session where b.lane = :lane and b.until is null);

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

-- name: grants_of_account
-- Who may speak on an account by a grant, oldest first.
select person, place, since, why, by_person from grants where account = :account and until is null order by id;

-- name: code_secret
-- What the digests of codes are made with.
select value from settings where name = 'codes.secret';

-- name: add_code_secret
-- Keep what the digests of codes are made with.
insert into settings (name, value) values ('codes.secret', :value);

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

-- name: end_codes
-- What a person was given before works no more.
update codes set expires = :at
where kind = :kind and account = :account and person = :person and used is null and expires > :at;

-- name: code
-- A code that works.
select kind, account, person, body from codes where digest = :digest and used is null and expires > :at;

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
