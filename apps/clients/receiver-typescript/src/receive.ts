import { type Database, insertOnce, type Transaction } from './database.ts';
import type { OrgEvent } from './events.ts';
import { type Headers, InvalidDeliveryError, verify } from './verify.ts';

/**
 * What became of a delivery, all to be answered with 204. `late`: a later event of its seat or grant was applied
 * before. `repeat`: it was received before. `test`: a test event, of which nothing is stored.
 */
export type Outcome = 'applied' | 'late' | 'repeat' | 'test';

export interface ReceiveOptions<T extends Transaction> {
  /** The secrets of a webhook by its id: one, and two while one is being rotated; none of an unknown one. */
  secrets: (endpoint: string) => readonly string[] | Promise<readonly string[]>;
  database: Database<T>;
  /** Your effect, by the transaction that remembers the event. When it throws, both are undone. */
  apply: (event: OrgEvent, transaction: T) => Promise<void>;
  /** Called instead of `apply` with a late event; by default nothing is done. */
  late?: (event: OrgEvent, transaction: T) => Promise<void>;
  /** Milliseconds since 1970. */
  now?: () => number;
}

/**
 * Takes a delivery: verifies it, and in one transaction remembers, orders and applies it. Answer 204. Longer work
 * belongs into a table of jobs, to which `apply` adds one.
 *
 * @param body - the bytes as they came, before any parsing.
 *
 * @throws InvalidDeliveryError when it is not genuine: answer 400. Answer 503 to every other error: the event returns.
 */
export async function receive<T extends Transaction>(
  headers: Headers,
  body: Uint8Array,
  { secrets, database, apply, late, now = Date.now }: ReceiveOptions<T>,
): Promise<Outcome> {
  const nowMs = now();
  const endpoint = headers('webhook-endpoint') ?? '';
  verify(headers, body, await secrets(endpoint), nowMs);
  const event = readEvent(body);
  if (event.test === true) return 'test';
  const sequence = Number(headers('webhook-sequence') ?? 0);
  return database.transaction(async (transaction) => {
    // Also of a repeat: another webhook counts for itself, and a number can come twice.
    if (sequence > 0)
      await insertOnce(database, transaction, { table: 'org_api_sequence', values: [endpoint, sequence, nowMs] });
    if (!(await insertOnce(database, transaction, { table: 'org_api_event', values: [event.id, nowMs] })))
      return 'repeat';
    const subject = findSubject(event);
    if (subject !== null && !(await moveOn(database, transaction, { subject, event, endpoint, sequence, nowMs }))) {
      await late?.(event, transaction);
      return 'late';
    }
    await apply(event, transaction);
    return 'applied';
  });
}

function readEvent(body: Uint8Array): OrgEvent {
  try {
    const event = JSON.parse(new TextDecoder().decode(body)) as OrgEvent;
    if (typeof event.id === 'string' && Number.isFinite(Date.parse(event.createdAt))) return event;
  } catch {} // said below
  throw new InvalidDeliveryError('The body is not the JSON of an event.');
}

/**
 * Returns what an event is about: a seat, or else a grant; null: neither, so it waits for nothing. A grant has several
 * seats, one after another.
 */
function findSubject(event: OrgEvent): string | null {
  const { seatId, grantId } = (event.data ?? {}) as { seatId?: string; grantId?: string };
  if (seatId) return `seat:${seatId}`;
  return grantId ? `grant:${grantId}` : null;
}

/**
 * Makes an event the last one of its subject. Returns false when a later one is.
 *
 * `createdAt` decides, and within a millisecond the sequence. Each webhook counts for itself, so between two of them
 * the ids decide. The lock of the row also orders two deliveries at once. Rows are counted by conditions only: MySQL's
 * drivers differ in how they count a row that an update leaves as it is.
 */
async function moveOn<T extends Transaction>(
  database: Database<T>,
  transaction: T,
  position: { subject: string; event: OrgEvent; endpoint: string; sequence: number; nowMs: number },
): Promise<boolean> {
  const { subject, event, endpoint, sequence, nowMs } = position;
  const at = Date.parse(event.createdAt);
  const update = () =>
    transaction.execute(
      `update org_api_subject set happened_at = ?, endpoint = ?, sequence = ?, event_id = ?, received_at = ?
       where id = ? and (happened_at < ? or (happened_at = ? and (
         (endpoint = ? and sequence < ?) or ((endpoint <> ? or sequence = ?) and event_id < ?))))`,
      [at, endpoint, sequence, event.id, nowMs, subject, at, at, endpoint, sequence, endpoint, sequence, event.id],
    );
  if ((await update()) > 0) return true;
  const values = [subject, at, endpoint, sequence, event.id, nowMs];
  if (await insertOnce(database, transaction, { table: 'org_api_subject', values })) return true;
  // Another delivery inserted it in the meantime, or it was there and is later.
  return (await update()) > 0;
}
