import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'kysely';
import { firstEventIdAt } from '../contract/events.ts';
import type { Queryable } from '../db/database.ts';
import { chainStartSql } from './chain.ts';

/** The chain of one month, as an evidence package states it. Hashes are hexadecimal. */
export interface EvidenceChain {
  /** `YYYY-MM`, UTC. */
  month: string;
  /** The positions of its first and last entry. */
  from: number;
  to: number;
  /** The hash before the first entry, and that of the last. */
  hashBefore: string;
  hashAfter: string;
  /** The position of the newest anchor that was logged, its hash and day; null without one. */
  anchor: { position: number; hash: string; loggedOn: string } | null;
}

/** Lists the months of the log that an organization has, oldest first. */
export async function listEvidenceChains(db: Queryable, organizationId: string): Promise<EvidenceChain[]> {
  return db.query(sql<EvidenceChain>`
    select to_char(c.month, 'YYYY-MM') as month, (c.dropped_length + 1)::float8 as "from", c.length::float8 as "to",
      ${sql.raw(chainStartSql)} as "hashBefore",
      encode(c.hash, 'hex') as "hashAfter",
      case when l.hash is not null then json_build_object('position', l.position, 'hash', encode(l.hash, 'hex'),
        'loggedOn', to_char(c.anchored_on, 'YYYY-MM-DD')) end as anchor
    from audit_chain c
    left join audit_link l on l.organization_id = c.organization_id and l.month = c.month
      and l.position = c.anchored_length
    where c.organization_id = ${organizationId}::uuid and c.length > c.dropped_length
    order by c.month`);
}

/** One entry of a chain, in its order. */
export interface EvidenceEntry {
  position: number;
  /** Hexadecimal. */
  hash: string;
  /** The text that the entry's digest covers; empty for an entry that was removed. */
  text: string;
}

interface EntryRow extends EvidenceEntry {
  entryId: string;
  /** Of a version of an entry that counts requests, hexadecimal; else null. */
  digest: string | null;
  count: number;
}

const rowsPerFetch = 500;

/**
 * Yields the entries of a chain in batches. Each fetch is a statement of its own, so no connection
 * or snapshot is held between them.
 */
export async function* eachEvidenceEntry(
  db: Queryable,
  organizationId: string,
  { month, from, to }: EvidenceChain,
): AsyncGenerator<EvidenceEntry[]> {
  const counted = new Map<string, number>();
  let position = from - 1;
  while (position < to) {
    const rows = await db.query(sql<EntryRow>`
      select l.position::float8 as position, encode(l.hash, 'hex') as hash, encode(l.digest, 'hex') as digest,
        l.entry_id as "entryId", coalesce(a.count, 0) as count,
        case when a.id is null then '' else audit_entry_text(a) end as text
      from audit_link l
      left join audit_entry a on a.organization_id = l.organization_id and a.id = l.entry_id and a.at = l.entry_at
      where l.organization_id = ${organizationId}::uuid and l.month = to_date(${month}, 'YYYY-MM')
        and l.position > ${position} and l.position <= ${to}
      order by l.position limit ${sql.lit(rowsPerFetch)}`);
    const last = rows.at(-1);
    if (last === undefined) return;
    const entries: EvidenceEntry[] = [];
    for (const row of rows) {
      const { position, hash, digest } = row;
      entries.push({ position, hash, text: digest === null ? row.text : await findVersion(row, digest, counted) });
    }
    yield entries;
    position = last.position;
  }
}

const triesPerSlice = 10_000;

/**
 * Returns the version of an entry that a link covers. An entry that counts requests is linked again
 * each time its count grew, and nothing else of it changes: an older version has a smaller count.
 * Counts of one entry grow along the chain, so each is tried once.
 */
async function findVersion(
  { entryId, text, count }: EntryRow,
  digest: string,
  counted: Map<string, number>,
): Promise<string> {
  const end = (value: number) => `, ${value}, null, null]`;
  const head = text.slice(0, -end(count).length);
  for (let tried = counted.get(entryId) ?? 1; tried <= count; tried += 1) {
    if (tried % triesPerSlice === 0) await setImmediate();
    const version = head + end(tried);
    if (hash('sha256', version) !== digest) continue;
    counted.set(entryId, tried);
    return version;
  }
  return text;
}

/** How the people and objects of an entry were named at its time. */
export interface EvidenceNames {
  position: number;
  /** Hexadecimal. */
  salt: string;
  /** The text that, after the salt, the entry's digest of names covers. */
  text: string;
}

/** Yields the names of a chain's entries in batches. Names that were erased are not there. */
export async function* eachEvidenceNames(
  db: Queryable,
  organizationId: string,
  { month, from, to }: EvidenceChain,
): AsyncGenerator<EvidenceNames[]> {
  let position = from - 1;
  for (;;) {
    const names = await db.query(sql<EvidenceNames>`
      select l.position::float8 as position, encode(a.names_salt, 'hex') as salt, a.names::text as text
      from audit_link l
      join audit_entry a on a.organization_id = l.organization_id and a.id = l.entry_id and a.at = l.entry_at
      where l.organization_id = ${organizationId}::uuid and l.month = to_date(${month}, 'YYYY-MM')
        and l.position > ${position} and l.position <= ${to} and a.names is not null
      order by l.position limit ${sql.lit(rowsPerFetch)}`);
    const last = names.at(-1);
    if (last === undefined) return;
    yield names;
    position = last.position;
  }
}

/** One delivery of the months, as the region's database has it. Times: ISO, UTC, milliseconds. */
export interface EvidenceDelivery {
  eventId: string;
  eventType: string;
  createdAt: string;
  webhookId: string;
  host: string;
  state: string;
  attempts: number;
  /** Attempts whose response is not known. */
  lostAttempts: number;
  /** When the first 2xx response had arrived, by the worker's clock; null without one. */
  acknowledgedAt: string | null;
  httpStatus: number | null;
}

/** Yields the deliveries of the events from one moment to another in batches, oldest event first. */
export async function* eachEvidenceDelivery(
  db: Queryable,
  organizationId: string,
  { from, until }: { from: Date; until: Date },
): AsyncGenerator<EvidenceDelivery[]> {
  let after = { eventId: firstEventIdAt(from), webhookId: '00000000-0000-0000-0000-000000000000' };
  for (;;) {
    const rows = await db.query(sql<EvidenceDelivery>`
      select d.event_id as "eventId", e.type as "eventType", api.utc(e.created_at) as "createdAt",
        d.webhook_id as "webhookId", w.host, d.state, d.attempts, r.lost as "lostAttempts",
        api.utc(r.acknowledged_at) as "acknowledgedAt", r.status as "httpStatus"
      from delivery d
      join event e on e.organization_id = d.organization_id and e.id = d.event_id
      join webhook w on w.organization_id = d.organization_id and w.id = d.webhook_id
      cross join lateral delivery_response(d.organization_id, d.webhook_id, d.event_id) r
      where d.organization_id = ${organizationId}::uuid
        and (d.event_id, d.webhook_id) > (${after.eventId}::uuid, ${after.webhookId}::uuid)
        and d.event_id < ${firstEventIdAt(new Date(until.getTime() + 2_000))}::uuid
      order by d.event_id, d.webhook_id limit ${sql.lit(rowsPerFetch)}`);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.filter(({ createdAt }) => new Date(createdAt) >= from && new Date(createdAt) < until);
    after = last;
  }
}
