/** A signing secret is rotated while deliveries are sent, and a receiver reads the Secret. */
import { Webhook } from 'standardwebhooks';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type Received, startReceiver } from '#test/receiver.ts';
import { guardSockets } from '#test/socket-guard.ts';
import { startTestWorker } from '#test/worker.ts';
import { setupDeclared, waiting } from '../declared.ts';
import { shareApiServer } from '../share-api-server.ts';

const rotations = 3;
const eventsPerRotation = 20;

const server = shareApiServer();

it('every post verifies with the published secret or the one before it while the secret is rotated', {
  timeout: 300_000,
}, async () => {
  guardSockets(onTestFinished, 'operator');
  const t = await setupDeclared(server());
  const receiver = await startReceiver();
  const declare = (overlap: string) =>
    t.declare('orders', {
      url: `${receiver.url}/`,
      secret: { generate: { secretName: 'orders' }, rotation: { every: '1h', overlap } },
    });
  const readPublished = async () => Buffer.from((await t.readSecret()).data?.secret ?? '', 'base64').toString('utf8');
  await declare('10m');
  await t.start();
  await t.waitUntilReady();
  const published = [await readPublished()];
  /** Returns how many of the last two published secrets verified each post when it arrived. */
  const verified: number[] = [];
  receiver.respond = async (response, post) => {
    const secret = await readPublished();
    if (!published.includes(secret)) published.push(secret);
    verified.push(published.slice(-2).filter((one) => isVerified(one, post)).length);
    response.writeHead(204).end();
  };
  await startTestWorker(t.database);
  const professional = await t.make.member({ orgId: t.orgId });

  for (let rotation = 1; rotation <= rotations; rotation += 1) {
    const before = published.length;
    const text = `update webhook_secret set created_at = created_at - interval '2 hours' where organization_id = $1`;
    await t.rows(text, [t.orgId]);
    const events = Array.from({ length: eventsPerRotation }, () => t.make.grant({ professional }));
    await declare(`${10 + rotation}m`); // the operator checks the age of the secret again
    await Promise.all(events);
    await vi.waitFor(async () => {
      await t.make.grant({ professional });
      expect(published).toHaveLength(before + 1);
    }, waiting);
  }
  const count = async () =>
    (await t.rows<{ n: number }>(`select count(*)::int as n from delivery where state = 'delivered'`))[0]?.n;
  const [made] = await t.rows<{ n: number }>('select count(*)::int as n from delivery');
  await vi.waitFor(async () => expect(await count()).toBe(made?.n), waiting);

  expect(published).toHaveLength(rotations + 1);
  expect(verified.length).toBeGreaterThan(rotations * eventsPerRotation);
  expect(verified.filter((secrets) => secrets === 0)).toEqual([]);
  // A receiver that has not read the new secret yet loses no post either.
  expect(verified.filter((secrets) => secrets === 2).length).toBeGreaterThan(rotations);
  expect((await t.actions()).filter((action) => action === 'webhook.rotate_secret')).toHaveLength(rotations);
});

function isVerified(secret: string, { headers, body }: Received): boolean {
  try {
    new Webhook(secret).verify(body.toString('utf8'), headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}
