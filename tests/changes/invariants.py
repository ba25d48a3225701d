"""What holds in every database at every moment, beyond what its schema says: each query finds a violation."""

from tests.changes.world import RawSql

VIOLATIONS = {
    "a lane speaks to a session that is closed": """
        select b.lane, b.session from bindings b join sessions s on s.id = b.session
        where b.until is null and s.closed is not null""",
    "a lane spoke to two sessions at once": """
        select a.lane, a.session, b.session from bindings a join bindings b on b.lane = a.lane and b.id > a.id
        where (a.until is null or a.until > b.since) and (b.until is null or b.until > b.since)""",
    "a session belongs to somebody who is gone": """
        select s.id from sessions s join merges m on m.gone = s.owner and m.until is null""",
    "an identity is somebody who is gone": """
        select i.key from identities i join merges m on m.gone = i.person and m.until is null""",
    "the share of somebody who is gone speaks to a session": """
        select l.key from lanes l join merges m on m.gone = l.person and m.until is null
        join bindings b on b.lane = l.key and b.until is null""",
    "somebody's title is on a session of somebody else": """
        select t.session from titles t join sessions s on s.id = t.session
        where t.until is null and t.owner <> s.owner""",
    "an alias stands for another alias": """
        select a.alias from aliases a join aliases b on b.alias = a.address""",
    "an id stands for another without a merge that holds, or the other way round": """
        select coalesce(a.alias, m.gone) from aliases a
        full join (select gone from chat_merges where until is null) m on m.gone = a.alias
        where a.alias is null or m.gone is null""",
    "two ids that were parted are one chat's": """
        select p.one, p.two from partings p
        where coalesce((select address from aliases where alias = p.one), p.one)
          = coalesce((select address from aliases where alias = p.two), p.two)""",
    "a lane speaks to what was another chat's": """
        select lane, session from bindings where until is null and parted is not null""",
    "a lane at another id of a chat speaks to a session": """
        select l.key from lanes l join aliases a on a.alias = l.address join bindings b on b.lane = l.key
        where b.until is null""",
    "a session's turns aren't numbered from 1 to its tail": """
        select s.id from sessions s left join turns t on t.session = s.id group by s.id, s.tail
        having count(t.seq) <> s.tail or coalesce(max(t.seq), 0) <> s.tail""",
    "a turn behind a session's head was never ended": """
        select t.session, t.seq from turns t join sessions s on s.id = t.session
        where t.seq <= s.head and t.outcome is null""",
    "a session's entries aren't numbered from 1 to its length": """
        select s.id from sessions s left join entries e on e.session = s.id group by s.id, s.length
        having count(e.n) <> s.length or coalesce(max(e.n), 0) <> s.length""",
    "a turn came from a lane that never spoke to its session": """
        select t.session, t.seq from turns t where t.lane is not null and not exists (
          select 1 from bindings b where b.lane = t.lane and b.session = t.session)""",
    "two deliveries to one address are being sent": """
        select address from deliveries where holder is not null and sent is null and dead is null
        group by address having count(*) > 1""",
}


async def violations(raw: RawSql) -> list[str]:
    """The sentences that aren't true any more, with where."""
    return [f"{what}: {rows}" for what, sql in VIOLATIONS.items() if (rows := await raw(sql))]
