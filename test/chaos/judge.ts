import { createHash } from 'node:crypto';
import type { Database } from '#domain/db/database.ts';
import { listLedgerFaults, readLedger } from '#domain/webhooks/ledger.ts';
import type { Post } from '#test/receiver-process.ts';
import type { LedgerReading } from './ledger-readings.ts';
import { getNature } from './plan.ts';

/**
 * Lists problems, one sentence each with ids only: at most this many of a kind, and the number of
 * the others.
 */
const shownOfAKind = 5;

interface DeliveryRow {
  webhookId: string;
  eventId: string;
  state: string;
  run: number;
  attempts: number;
  sequence: string | null;
}

interface AttemptRow {
  webhookId: string;
  eventId: string;
  number: number;
  status: number | null;
  cause: string | null;
  endsSchedule: boolean;
}

/** The result of a run. */
export interface Figures {
  required: number;
  delivered: number;
  exhausted: number;
  attempts: number;
  posts: number;
  /** Attempts by cause. */
  causes: Record<string, number>;
  /** Posts without an attempt's row, in the time in which PostgreSQL could forget rows and else. */
  excused: number;
  unrecorded: number;
  /** Posts of an event after the first 2xx. */
  duplicates: number;
  /** Deliveries that were claimed more than once: after a fault, or a retry without a slot. */
  repaired: number;
}

/**
 * Compares the database with the receivers' posts, and the readings of the ledger during the run
 * (`readings`). `webhookIds` are in the order of their behaviors. Returns every problem; none when
 * nothing was lost.
 */
export async function judge(options: {
  database: Database;
  posts: readonly Post[];
  webhookIds: readonly string[];
  events: number;
  readings?: readonly LedgerReading[];
  /**
   * Posts at these positions in `posts` came while PostgreSQL could forget commits. Their rows may
   * be missing, or belong to another post. Only a run with that fault sets this.
   */
  forgettable?: { from: number; before: number } | null;
}): Promise<{ problems: string[]; figures: Figures }> {
  const { database, posts, webhookIds, events, readings = [], forgettable = null } = options;
  const { pool } = database;
  const problems = new Problems();
  const { rows: deliveries } = await pool.query<DeliveryRow>(
    `select webhook_id as "webhookId", event_id as "eventId", state, run, attempts, sequence::text from delivery
      order by 1, delivery.sequence, 2`,
  );
  const { rows: attempts } = await pool.query<AttemptRow>(
    `select webhook_id as "webhookId", event_id as "eventId", number, status, cause, ends_schedule as "endsSchedule"
      from delivery_attempt order by 1, 2, 3`,
  );
  const { rows: bodies } = await pool.query<{ id: string; body: string; deliveryCount: number }>(
    'select id, body, delivery_count as "deliveryCount" from event order by id',
  );

  const counted = bodies.reduce((sum, event) => sum + event.deliveryCount, 0);
  if (bodies.length !== events) problems.add('events', `${bodies.length} events instead of ${events}`);
  if (counted !== events * webhookIds.length || deliveries.length !== counted) {
    problems.add(
      'deliveries',
      `${counted} were counted and ${deliveries.length} are there, of ${events * webhookIds.length}`,
    );
  }
  for (const { when, difference } of readings) {
    if (difference !== 0) problems.add('ledger', `its difference was ${difference} when ${when}`);
  }
  const ledger = await readLedger(database);
  if (ledger.difference !== 0) problems.add('ledger', `its difference is ${ledger.difference}`);
  if (ledger.overdue !== 0) problems.add('overdue', `${ledger.overdue} deliveries are overdue`);
  for (const { kind, webhookId, eventId } of await listLedgerFaults(database)) {
    problems.add('ledger', `${kind} at ${webhookId ?? 'every webhook'}/${eventId}`);
  }
  judgeStates(deliveries, webhookIds, problems);
  judgeSequences(deliveries, webhookIds, events, problems);
  judgeAttempts(deliveries, attempts, problems);
  const isForgettable = (_: Post, place: number) =>
    forgettable !== null && place >= forgettable.from && place < forgettable.before;
  const excused = posts.filter(isForgettable);
  const strict = posts.filter((post, place) => !isForgettable(post, place));
  judgePosts({ posts: strict, deliveries, attempts, bodies, problems });
  judgeExcused(excused, bodies, problems);
  judgeAccepted({ posts: strict, excused, attempts, problems });
  const names = new Set(attempts.map((attempt) => `${formatDeliveryId(attempt)}/${attempt.number}`));
  const countWithoutRow = (some: readonly Post[]) =>
    some.filter((post) => !names.has(`${formatDeliveryId(post)}/${post.attempt}`)).length;
  const withoutRow = { excused: countWithoutRow(excused), unrecorded: countWithoutRow(strict) };
  return { problems: problems.list(), figures: { ...computeFigures(deliveries, attempts, posts), ...withoutRow } };
}

function judgeStates(deliveries: DeliveryRow[], webhookIds: readonly string[], problems: Problems): void {
  for (const { webhookId, eventId, state } of deliveries) {
    const expected = getNature(webhookIds.indexOf(webhookId)) === 'dead' ? 'exhausted' : 'delivered';
    if (state !== expected) problems.add('state', `${webhookId}/${eventId} is ${state} and should be ${expected}`);
  }
}

function judgeSequences(deliveries: DeliveryRow[], webhookIds: readonly string[], events: number, problems: Problems) {
  for (const id of webhookIds) {
    const given = deliveries.filter(({ webhookId }) => webhookId === id).map(({ sequence }) => Number(sequence));
    const hasGap = given.length !== events || given.some((sequence, index) => sequence !== index + 1);
    if (hasGap) problems.add('sequence', `${id} counts its events with a gap`);
  }
}

function judgeAttempts(deliveries: DeliveryRow[], attempts: AttemptRow[], problems: Problems): void {
  const byDelivery = Map.groupBy(attempts, formatDeliveryId);
  for (const delivery of deliveries) {
    const rows = byDelivery.get(formatDeliveryId(delivery)) ?? [];
    const name = `${delivery.webhookId}/${delivery.eventId}`;
    if (rows.length !== delivery.attempts || rows.some(({ number }, index) => number !== index + 1)) {
      problems.add('attempts', `${name} counts ${delivery.attempts} attempts and has ${rows.length}`);
    }
    if (rows.some(({ cause }) => cause === null)) problems.add('open', `${name} has an attempt that was never closed`);
    const isProved =
      delivery.state === 'delivered'
        ? rows.some(isAccepted)
        : rows.some(({ endsSchedule, cause }) => endsSchedule && cause !== null);
    if (!isProved) problems.add('proof', `${name} is ${delivery.state} and no attempt proves it`);
  }
}

/**
 * Compares the receivers' posts: attempts are known and unique, bytes are equal, answers are as
 * recorded.
 */
function judgePosts(options: {
  posts: readonly Post[];
  deliveries: DeliveryRow[];
  attempts: AttemptRow[];
  bodies: { id: string; body: string }[];
  problems: Problems;
}): void {
  const { posts, deliveries, attempts, bodies, problems } = options;
  const hashes = new Map(bodies.map(({ id, body }) => [id, createHash('sha256').update(body).digest('hex')]));
  const sequences = new Map(deliveries.map((delivery) => [formatDeliveryId(delivery), delivery.sequence]));
  const recorded = new Map(attempts.map((attempt) => [`${formatDeliveryId(attempt)}/${attempt.number}`, attempt]));
  const seen = new Set<string>();
  for (const post of posts) {
    const name = `${formatDeliveryId(post)}/${post.attempt}`;
    const attempt = recorded.get(name);
    if (attempt === undefined) problems.add('unrecorded', `${name} was posted without a recorded attempt`);
    if (seen.has(name)) problems.add('repeated', `${name} was posted twice as the same attempt`);
    seen.add(name);
    if (hashes.get(post.eventId) !== post.bodySha256) problems.add('bytes', `${name} had other bytes than the event`);
    if (sequences.get(formatDeliveryId(post)) !== post.sequence)
      problems.add('sequence', `${name} had another sequence`);
    if (post.failedChecks.length > 0) problems.add('signature', `${name} failed ${post.failedChecks.join(', ')}`);
    const isContradicted = attempt !== undefined && attempt.status !== null && attempt.status !== post.answered;
    if (isContradicted)
      problems.add('result', `${name} was answered ${post.answered} and recorded as ${attempt.status}`);
  }
}

/** Checks a post whose rows may be missing: its signature, and its bytes if the event exists. */
function judgeExcused(posts: readonly Post[], bodies: { id: string; body: string }[], problems: Problems): void {
  const hashes = new Map(bodies.map(({ id, body }) => [id, createHash('sha256').update(body).digest('hex')]));
  for (const post of posts) {
    const name = `${formatDeliveryId(post)}/${post.attempt}`;
    const hash = hashes.get(post.eventId);
    if (hash !== undefined && hash !== post.bodySha256) problems.add('bytes', `${name} had other bytes than the event`);
    if (post.failedChecks.length > 0) problems.add('signature', `${name} failed ${post.failedChecks.join(', ')}`);
  }
}

/**
 * Checks that no attempt is recorded as accepted that its receiver did not accept. An outcome
 * written again after its row was forgotten may have another number than its post; `excused` allows
 * that.
 */
function judgeAccepted(options: {
  posts: readonly Post[];
  excused: readonly Post[];
  attempts: AttemptRow[];
  problems: Problems;
}): void {
  const { posts, excused, attempts, problems } = options;
  const excusedDeliveries = new Set(excused.filter(({ answered }) => answered === 200).map(formatDeliveryId));
  const accepted = posts.filter(({ answered }) => answered === 200);
  const names = new Set(accepted.map((post) => `${formatDeliveryId(post)}/${post.attempt}`));
  for (const attempt of attempts.filter(isAccepted)) {
    const name = `${formatDeliveryId(attempt)}/${attempt.number}`;
    if (!names.has(name) && !excusedDeliveries.has(formatDeliveryId(attempt)))
      problems.add('invented', `${name} is recorded as accepted and its receiver never did`);
  }
}

function computeFigures(
  deliveries: DeliveryRow[],
  attempts: AttemptRow[],
  posts: readonly Post[],
): Omit<Figures, 'excused' | 'unrecorded'> {
  const accepted = posts.filter(({ answered }) => answered === 200);
  const causes: Record<string, number> = {};
  for (const { cause } of attempts) causes[cause ?? 'open'] = (causes[cause ?? 'open'] ?? 0) + 1;
  return {
    required: deliveries.length,
    delivered: deliveries.filter(({ state }) => state === 'delivered').length,
    exhausted: deliveries.filter(({ state }) => state === 'exhausted').length,
    attempts: attempts.length,
    posts: posts.length,
    causes,
    duplicates: accepted.length - new Set(accepted.map(formatDeliveryId)).size,
    repaired: deliveries.filter(({ run }) => run > 1).length,
  };
}

const formatDeliveryId = ({ webhookId, eventId }: { webhookId: string; eventId: string }) => `${webhookId}/${eventId}`;
const isAccepted = ({ status }: AttemptRow) => status !== null && status >= 200 && status < 300;

class Problems {
  private readonly byKind = new Map<string, string[]>();

  add(kind: string, sentence: string): void {
    const sentences = this.byKind.get(kind) ?? [];
    sentences.push(sentence);
    this.byKind.set(kind, sentences);
  }

  list(): string[] {
    return [...this.byKind].flatMap(([kind, sentences]) => {
      const more = sentences.length - shownOfAKind;
      const shown = sentences.slice(0, shownOfAKind).map((sentence) => `${kind}: ${sentence}`);
      return more > 0 ? [...shown, `${kind}: and ${more} more`] : shown;
    });
  }
}
