/** What the receiver kits remember: until when, and which numbers never came. */
import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { endChild } from '#test/end-child.ts';
import { kitsWithDatabases } from './databases.ts';
import { createTables, type Kit, startKit } from './kills.ts';
import type { ReceiverDatabase } from './own-databases.ts';

const timeout = 300_000;
const dayMs = 86_400_000;
const startMs = Date.parse('2026-03-01T12:00:00Z');

/** Starts a receiver, whose clock each request sets. */
async function setupReceiver(kit: Kit, { database, query }: ReceiverDatabase) {
  await createTables(query);
  const secret = generateSecret();
  const { child, port } = await startKit(kit, { DATABASE: database, SECRET: secret });
  onTestFinished(() => endChild(child).then(() => {}));
  const url = `http://127.0.0.1:${port}/`;
  const deliver = async ({ id, endpoint, sequence }: ReturnType<typeof inventEvent>, nowMs: number) => {
    const data = { grantId: id, kind: 'attorney' };
    const createdAt = new Date(startMs).toISOString();
    const body = JSON.stringify({ id, type: 'client.started', createdAt, organization: { id }, data });
    const signature = signatureHeaders({ id, timestampSeconds: Math.floor(nowMs / 1_000), body, secrets: [secret] });
    const numbers = { 'webhook-endpoint': endpoint, 'webhook-sequence': String(sequence) };
    const headers = { ...signature, ...numbers, 'test-now': String(nowMs) };
    expect((await fetch(url, { method: 'POST', body, headers })).status).toBe(204);
    const { events } = (await (await fetch(url)).json()) as { events: Record<string, number> };
    return events[id];
  };
  const forget = async (nowMs: number) => {
    const response = await fetch(url, { method: 'DELETE', headers: { 'test-now': String(nowMs) } });
    expect(response.status).toBe(204);
  };
  const listGaps = async () => {
    const gaps = (await (await fetch(`${url}gaps`)).json()) as Record<'endpoint' | 'first' | 'last', string>[];
    return gaps.map(({ endpoint, first, last }) => ({ endpoint, first: Number(first), last: Number(last) }));
  };
  const count = async (table: string) =>
    Number((await query(`select count(*) as rows_left from ${table}`))[0]?.rows_left);
  return { deliver, forget, listGaps, count };
}

const inventEvent = (endpoint: string, sequence: number) => ({ id: randomUUID(), endpoint, sequence });

it.each(kitsWithDatabases)(
  'a gap in the numbers of a webhook is listed until its event comes: %s with %s',
  { timeout },
  async (kit, _name, open) => {
    const { deliver, listGaps } = await setupReceiver(kit, await open());
    const [endpoint, other] = [randomUUID(), randomUUID()];
    for (const sequence of [3, 7]) await deliver(inventEvent(endpoint, sequence), startMs);
    await deliver(inventEvent(other, 5), startMs); // counts for itself, and its first number is no gap
    expect(await listGaps()).toEqual([{ endpoint, first: 4, last: 6 }]);
    await deliver(inventEvent(endpoint, 5), startMs);
    expect(await listGaps()).toEqual([
      { endpoint, first: 4, last: 4 },
      { endpoint, first: 6, last: 6 },
    ]);
    for (const sequence of [6, 4]) await deliver(inventEvent(endpoint, sequence), startMs);
    expect(await listGaps()).toEqual([]);
  },
);

it.each(kitsWithDatabases)(
  'forget deletes what is older than 90 days and nothing else, and opens no gap: %s with %s',
  { timeout },
  async (kit, _name, open) => {
    const { deliver, forget, listGaps, count } = await setupReceiver(kit, await open());
    const [endpoint, other] = [randomUUID(), randomUUID()];
    const [first, second] = [inventEvent(endpoint, 1), inventEvent(endpoint, 2)];
    const late = inventEvent(endpoint, 3);
    const quiet = inventEvent(other, 9);
    for (const event of [first, second, quiet]) await deliver(event, startMs);
    await deliver(late, startMs + 10 * dayMs);

    await forget(startMs + 90 * dayMs);
    expect(await Promise.all(['org_api_event', 'org_api_subject', 'org_api_sequence'].map(count))).toEqual([4, 4, 4]);
    expect(await deliver(first, startMs + 90 * dayMs)).toBe(1);

    await forget(startMs + 90 * dayMs + 1);
    // Of each webhook the last old number stays.
    expect(await Promise.all(['org_api_event', 'org_api_subject', 'org_api_sequence'].map(count))).toEqual([1, 1, 3]);
    expect(await listGaps()).toEqual([]);
    expect(await deliver(late, startMs + 91 * dayMs)).toBe(1);
    await deliver(inventEvent(other, 10), startMs + 91 * dayMs);
    expect(await listGaps()).toEqual([]);
    expect(await deliver(first, startMs + 91 * dayMs)).toBe(2); // it was forgotten
  },
);
