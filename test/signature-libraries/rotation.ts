/** Posts of a real worker to a real receiver around a real rotation of the webhook's secret. */
import { expect, vi } from 'vitest';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import { startReceiver } from '#test/receiver.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';

/** A request as its receiver got it: headers by lower-case name, and the body's bytes. */
export interface Caught {
  headers: Record<string, string>;
  body: Buffer;
}

/**
 * One delivery at each stage of a secret's life, captured within seconds of now, and the two
 * secrets (`whsec_…`).
 */
export interface CaughtRotation {
  older: string;
  newer: string;
  /** In the middle of the older secret's life. */
  before: Caught;
  /** The first one after the rotation, when the overlap has all of its 24 hours left. */
  atItsBegin: Caught;
  /** When the overlap has seconds left. */
  atItsEnd: Caught;
  /** The first one after the overlap. */
  after: Caught;
}

/**
 * Time left of the overlap when its last delivery is created: more than a post takes on a busy
 * machine.
 */
const secondsLeft = 60;

/**
 * Captures four deliveries of one worker: before a rotation with the default overlap, at its
 * beginning, at its end, and after it. Time passes in the database, whose clock decides which
 * secrets sign: the end of the overlap is moved to the present, and then into the past. Takes about
 * 4 s; must be called in a test, whose end stops the worker.
 */
export async function catchRotation(): Promise<CaughtRotation> {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  const { id: webhookId, secret: older } = await make.webhook({ orgId: professional.orgId, url: receiver.url });
  await startTestWorker(database);
  const catchNext = async (signatures: number): Promise<Caught> => {
    const earlier = receiver.received.length;
    await make.grant({ professional });
    await vi.waitFor(() => expect(receiver.received).toHaveLength(earlier + 1), { timeout: 20_000 });
    const caught = parseCaught(receiver.received[earlier]);
    // Otherwise it belongs to another stage than assumed, and proves nothing about that one.
    expect(countSignatures(caught)).toEqual([signatures, signatures]);
    return caught;
  };
  const moveEnd = async (secondsFromNow: number): Promise<void> => {
    const { rowCount } = await owner.pool.query(
      `update webhook_secret set valid_until = clock_timestamp() + make_interval(secs => $2)
       where webhook_id = $1 and valid_until is not null`,
      [webhookId, secondsFromNow],
    );
    expect(rowCount).toBe(1);
  };

  const before = await catchNext(1);
  const request = { organizationId: professional.orgId, webhookId, by: 'orgctl' } as const;
  const { secret: newer } = await rotateSecret(owner, request, testSealingKeys);
  const atItsBegin = await catchNext(2);
  await moveEnd(secondsLeft);
  const atItsEnd = await catchNext(2);
  await moveEnd(0);
  const after = await catchNext(1);
  return { older, newer, before, atItsBegin, atItsEnd, after };
}

function parseCaught(post: { headers: object; body: Buffer } | undefined): Caught {
  if (post === undefined) throw new Error('there is no post');
  const headers = Object.entries(post.headers).map(([name, value]) => [name, String(value)]);
  return { headers: Object.fromEntries(headers), body: post.body };
}

/** Returns the number of signatures in each of the two forms. */
function countSignatures({ headers }: Caught): [service: number, standard: number] {
  const count = (name: string, mark: RegExp) => headers[name]?.match(mark)?.length ?? 0;
  return [count('service-signature', /v1=/g), count('webhook-signature', /v1,/g)];
}
