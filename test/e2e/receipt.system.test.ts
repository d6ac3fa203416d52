/** The receipt of an end says, at every moment of an outage, no more than the receivers did. */
import { expect, it, vi } from 'vitest';
import { deleteWebhook, pauseWebhook } from '#delivery/requests.ts';
import { findReceipt, getReceiptResult, type ReceiptReceiver } from '#domain/clients/receipt.ts';
import { type ChildWorker, startChildWorker } from '#test/child-worker.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openAs } from '#test/webhook-rows.ts';
import { workerEnvironment } from '#test/worker.ts';

const timeout = 300_000;

/** How each receiver answers its nth post; null: not at all. */
const kinds: Record<string, (nth: number) => number | null> = {
  accepts: () => 200,
  fails: () => 500,
  hangs: () => null,
  acceptsThird: (nth) => (nth < 3 ? 503 : 200),
  paused: () => 200,
  deleted: () => 500,
  killed: () => 200,
};

/** A webhook and a receiver of each kind, subscribed to the end of access. */
async function setupReceivers() {
  const { database, owner, make } = await setupDatabase();
  const member = await make.member();
  const { orgId } = member;
  /** Who gave a 2xx, as the receivers know it. */
  const accepted = new Set<string>();
  const names = new Map<string, string>();
  const ids: Record<string, string> = {};
  const worker = Promise.withResolvers<ChildWorker>();
  for (const [name, answer] of Object.entries(kinds)) {
    const receiver = await startReceiver();
    const { id } = await make.webhook({ orgId, url: receiver.url, eventTypes: ['client.ended'] });
    names.set(id, name);
    ids[name] = id;
    receiver.respond = (response) => {
      const status = answer(receiver.received.length);
      if (status === null) return;
      const end = () => {
        if (status === 200) accepted.add(id);
        response.writeHead(status).end();
      };
      if (name !== 'killed' || receiver.received.length > 1) return end();
      // Its answer is on the way, and nothing has recorded it.
      void worker.promise.then(({ process }) => {
        end();
        process.kill('SIGKILL');
      });
    };
  }
  const grant = await make.grant({ professional: member });
  return { database, owner, orgId, grant, accepted, names, ids, worker };
}

it('a receipt names an acknowledgement only after the receiver gave it, and never another time, with receivers that accept, fail, hang, accept the third, are paused, are deleted, or whose worker is killed after their 2xx', {
  timeout,
}, async () => {
  const { database, owner, orgId, grant, accepted, names, ids, worker } = await setupReceivers();
  const reader = await openAs(database.urls.console, 2);
  const of = (name: string) => ({ organizationId: orgId, webhookId: ids[name] ?? '', by: 'orgctl' as const });
  await pauseWebhook(owner, of('paused'));
  const wrong: string[] = [];
  const times = new Map<string, string>();
  const seen = new Set<string>();
  let looks = 0;
  const look = async () => {
    const receipt = await findReceipt(reader, orgId, grant.id);
    looks += 1;
    for (const row of receipt?.receivers ?? []) wrong.push(...listFaults(row));
    const shown = (receipt?.receivers ?? []).map((row) => `${names.get(row.webhookId)} ${getReceiptResult(row)}`);
    for (const each of shown) seen.add(each);
    return shown.sort();
  };
  const listFaults = ({ webhookId, acknowledgedAt }: ReceiptReceiver): string[] => {
    const before = times.get(webhookId);
    if (acknowledgedAt === null) return before === undefined ? [] : [`${names.get(webhookId)} lost its time`];
    times.set(webhookId, acknowledgedAt);
    return [
      accepted.has(webhookId) || `${names.get(webhookId)} has accepted nothing`,
      before === undefined ||
        before === acknowledgedAt ||
        `${names.get(webhookId)} at ${before}, then ${acknowledgedAt}`,
      Date.parse(acknowledgedAt) <= Date.now() || `${names.get(webhookId)} accepts later than now`,
    ].filter((each) => typeof each === 'string');
  };
  const until = (isDone: (shown: string[]) => boolean | Promise<boolean>) =>
    vi.waitFor(async () => expect(await isDone(await look())).toBe(true), { timeout: 120_000, interval: 5 });

  expect(await look()).toEqual([]);
  await owner.pool.query(
    `update client_grant set status = 'ended', end_reason = 'ended', ends_at = clock_timestamp() where id = $1`,
    [grant.id],
  );
  expect(await look()).toEqual(
    [...Object.keys(kinds)].map((name) => `${name} ${name === 'paused' ? 'unsent' : 'pending'}`).sort(),
  );
  const environment = { ...workerEnvironment(database), DELIVERY_SCHEDULE: '1s,1s,2s', REQUEUE_AFTER: '2s' };
  const killed = await startChildWorker(environment);
  worker.resolve(killed);
  await until(() => killed.process.signalCode === 'SIGKILL');
  await deleteWebhook(owner, of('deleted'));
  // Nothing has recorded its 2xx: an attempt is under way until it counts as lost.
  expect(await look()).toContain('killed pending');
  await startChildWorker(environment);
  // The kill may also have interrupted an attempt of those that accept nothing.
  const final = {
    accepts: ['acknowledged'],
    acceptsThird: ['acknowledged'],
    deleted: ['unsent', 'unknown'],
    fails: ['failed', 'unknown'],
    killed: ['acknowledged'],
    paused: ['unsent'],
  };
  await until(async (shown) => {
    const open = await owner.pool.query(`select from delivery where webhook_id = any ($1) and settled_at is null`, [
      [ids.fails, ids.deleted],
    ]);
    const isFinal = ([name, results]: [string, string[]]) =>
      shown.some((each) => results.some((result) => each === `${name} ${result}`));
    return open.rowCount === 0 && Object.entries(final).every(isFinal);
  });
  expect(wrong).toEqual([]);
  expect([...times.keys()].sort()).toEqual([...accepted].sort());
  expect(seen).toContain('killed unknown');
  expect(accepted).toEqual(new Set(['accepts', 'acceptsThird', 'killed'].map((name) => ids[name])));
  expect(looks).toBeGreaterThan(100);
});
