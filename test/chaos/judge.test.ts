import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Database } from '#domain/db/database.ts';
import { attemptsSql } from '#test/attempts-sql.ts';
import type { Post } from '#test/receiver-process.ts';
import { setupDatabase } from '#test/setup.ts';
import { judge } from './judge.ts';
import type { LedgerReading } from './ledger-readings.ts';

const rightReading: LedgerReading = { when: 'a server was killed', difference: 0, overdue: 3 };

/**
 * Each possible fault, created on purpose: in the database, in the posts of a receiver, or in a
 * reading of the ledger.
 */
const wrongs: { what: string; kind: string; sql?: string; see?: (posts: Post[]) => void; reading?: LedgerReading }[] = [
  {
    what: 'a difference that was there during the run only',
    kind: 'ledger',
    reading: { ...rightReading, difference: -1 },
  },
  {
    what: 'a delivery that is overdue',
    kind: 'overdue',
    sql: `update delivery set state = 'queued', due_at = now() - interval '2 minutes', settled_at = null`,
  },
  { what: 'a delivery that is gone', kind: 'ledger', sql: `delete from delivery_attempt; delete from delivery` },
  {
    what: 'a delivery that still waits',
    kind: 'state',
    sql: `update delivery set state = 'queued', due_at = now(), settled_at = null`,
  },
  { what: 'a state without its proof', kind: 'proof', sql: `update delivery_attempt set status = 500` },
  { what: 'an attempt that is gone', kind: 'attempts', sql: `delete from delivery_attempt where number = 1` },
  {
    what: 'an attempt that was never closed',
    kind: 'open',
    sql: `update delivery_attempt set finished_at = null, cause = null where number = 1`,
  },
  { what: 'a gap in the sequence', kind: 'sequence', sql: `update delivery set sequence = 2` },
  {
    what: 'a post without an attempt',
    kind: 'unrecorded',
    see: (posts) => posts.push({ ...first(posts), attempt: 3 }),
  },
  { what: 'the same attempt posted twice', kind: 'repeated', see: (posts) => posts.push(first(posts)) },
  { what: 'other bytes', kind: 'bytes', see: (posts) => Object.assign(first(posts), { bodySha256: 'other' }) },
  { what: 'a bad signature', kind: 'signature', see: (posts) => first(posts).failedChecks.push('service_signature') },
  { what: 'a 2xx that was never answered', kind: 'invented', see: (posts) => posts.pop() },
  {
    what: 'another response than recorded',
    kind: 'result',
    see: (posts) => Object.assign(first(posts), { answered: 200 }),
  },
];

describe('the comparison after a chaos run', () => {
  it('finds nothing in a correct run', async () => {
    const { database, posts, webhookIds } = await arrange();
    expect((await judge({ database, posts, webhookIds, events: 1, readings: [rightReading] })).problems).toEqual([]);
  });

  it.each(wrongs)('finds $what', async ({ kind, sql, see, reading = rightReading }) => {
    const { database, posts, webhookIds } = await arrange();
    if (sql !== undefined) await database.pool.query(sql);
    see?.(posts);
    const { problems } = await judge({ database, posts, webhookIds, events: 1, readings: [reading] });
    expect(problems.map((problem) => problem.split(':')[0])).toContain(kind);
  });
});

describe('a post whose row PostgreSQL forgot', () => {
  it('is a problem, unless the run reports when commits could be lost', async () => {
    const { database, posts, webhookIds } = await arrange();
    posts.push({ ...first(posts), attempt: 3 });
    const kinds = async (forgettable: { from: number; before: number } | null) =>
      (await judge({ database, posts, webhookIds, events: 1, forgettable })).problems.map((text) => text.split(':')[0]);
    expect(await kinds(null)).toEqual(['unrecorded']);
    expect(await kinds({ from: 0, before: 2 })).toEqual(['unrecorded']);
    expect(await kinds({ from: 2, before: 3 })).toEqual([]);
  });

  it('has a correct signature, and the bytes of its event', async () => {
    const { database, posts, webhookIds } = await arrange();
    posts.push({ ...first(posts), attempt: 3, bodySha256: 'other', failedChecks: ['service_signature'] });
    const forgettable = { from: 2, before: 3 };
    const { problems } = await judge({ database, posts, webhookIds, events: 1, forgettable });
    expect(problems.map((text) => text.split(':')[0])).toEqual(['bytes', 'signature']);
  });
});

function first(posts: Post[]): Post {
  const [post] = posts;
  if (post === undefined) throw new Error('there is no post');
  return post;
}

/** One event, rejected once and then accepted, and the receiver's record of both posts. */
async function arrange(): Promise<{ database: Database; posts: Post[]; webhookIds: string[] }> {
  const { owner, make } = await setupDatabase();
  const professional = await make.member();
  const { id } = await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
  await make.grant({ professional });
  await owner.pool.query(
    attemptsSql({
      from: 'delivery, generate_series(1, 2) n',
      organization: 'organization_id',
      webhook: 'webhook_id',
      event: 'event_id',
      id: 'gen_random_uuid()',
      number: 'n',
      startedAt: 'now()',
      status: 'case n when 1 then 500 else 200 end',
      cause: "'recorded'",
    }),
  );
  await owner.pool.query(
    `update delivery set state = 'delivered', due_at = null, settled_at = now(), attempts = 2, run = 1, sequence = 1`,
  );
  await owner.pool.query('update receiver set next_sequence = 2');
  const { rows } = await owner.pool.query<{ id: string; body: string }>('select id, body from event');
  const post = (attempt: number, answered: number): Post => ({
    webhookId: id,
    eventId: rows[0]?.id ?? '',
    attempt,
    sequence: '1',
    failedChecks: [],
    answered,
    bodySha256: createHash('sha256')
      .update(rows[0]?.body ?? '')
      .digest('hex'),
  });
  return { database: owner, posts: [post(1, 500), post(2, 200)], webhookIds: [id] };
}
