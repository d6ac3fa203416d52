/** `orgctl redelivery`: requested, watched, left running, shown, cancelled. */

import { spawn } from 'node:child_process';
import { describe, expect, it, vi } from 'vitest';
import { childEnvironment } from '#test/child-environment.ts';
import { callOrgctl, setupOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { startTestWorker } from '#test/worker.ts';
import { insertExhausted } from './exhausted-deliveries.ts';

const timeout = 120_000;
const patient = { timeout: 45_000, interval: 50 };

describe('delivery redeliver of many', () => {
  it('waits until all are sent, prints its progress, and shows the results; then a range is sent, no other event', {
    timeout,
  }, async () => {
    const t = await setupRedelivery(90);
    await startTestWorker(t.database);
    const done = await t.orgctl(...t.redeliver, '--failed-since', '2h', '--json');
    expect(done.code).toBe(0);
    expect(done.json()).toMatchObject({ state: 'done', queued: 90, webhookId: t.webhook.id });
    expect(done.stderr).toMatch(/^(\d+ redelivered, \d+ scanned\n)+$/);
    const { id } = done.json<{ id: string }>();
    await vi.waitFor(() => expect(t.receiver.received).toHaveLength(90), patient);

    t.receiver.received.splice(0);
    const { rows: events } = await t.owner.pool.query<{ id: string; at: string; body: string }>(
      'select id, api.utc(created_at) as at, body from event order by created_at',
    );
    const chosen = events.slice(30, 70);
    const [from, to] = [events[30]?.at, events[70]?.at];
    const range = await t.orgctl(...t.redeliver, '--from', `${from}`, '--to', `${to}`);
    expect(range).toMatchObject({ code: 0, stdout: expect.stringContaining('40 deliveries queued.') });
    await vi.waitFor(() => expect(t.receiver.received).toHaveLength(40), patient);
    const posts = t.receiver.received.map(({ headers, body }) => [headers['webhook-id'], String(body)]);
    expect(posts.sort()).toEqual(chosen.map(({ id, body }) => [id, body]).sort());
    const shown = await t.orgctl('redelivery', 'show', '--id', id, '--json');
    expect(shown.json()).toEqual(done.json());
    const list = await t.orgctl('redelivery', 'list', '--webhook', t.webhook.id, '--limit', '1', '--json');
    expect(list.json()).toMatchObject([{ state: 'done', failedSince: null }]);
    expect(list.stderr).toContain('--before');
    const all = await t.orgctl('redelivery', 'list', '--webhook', t.webhook.id);
    expect(all.stdout).toContain(id);
    expect((await t.orgctl('ledger', '--json')).json()).toMatchObject({ difference: 0 });
  });

  it('reports that no worker has begun, keeps the request, and rejects a second one until it is cancelled', {
    timeout,
  }, async () => {
    const t = await setupRedelivery(2);
    const late = await t.orgctl(...t.redeliver, '--failed-since', '2h', '--json');
    expect(late).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('No worker started') });
    const id = /redelivery show --id (\S+) /.exec(late.stderr)?.[1] ?? '';
    const shown = await t.orgctl('redelivery', 'show', '--id', id, '--json');
    expect(shown.json()).toMatchObject({ id, state: 'requested', requestedBy: null });
    const second = await t.orgctl(...t.redeliver, '--failed-since', '2h', '--no-wait');
    expect(second).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`in progress (${id})`) });
    const cancelled = await t.orgctl('redelivery', 'cancel', '--id', id, '--json');
    expect(cancelled).toMatchObject({ code: 0, stderr: '' });
    expect(cancelled.json()).toMatchObject({ id, state: 'cancelled' });
  });

  it('continues after --no-wait and Ctrl-C, which explain how to follow it, and can be cancelled', {
    timeout,
  }, async () => {
    const t = await setupRedelivery(400);
    await startTestWorker(t.database);
    const requested = await t.orgctl(...t.redeliver, '--failed-since', '2h', '--no-wait', '--json');
    expect(requested).toMatchObject({ code: 0, stderr: '' });
    const { id, state } = requested.json<{ id: string; state: string }>();
    expect(state).toBe('requested');
    await vi.waitFor(async () => expect(await t.findState(id)).toBe('running'), patient);
    const cancelled = await t.orgctl('redelivery', 'cancel', '--id', id, '--json');
    expect(cancelled).toMatchObject({ code: 0, stderr: '' });
    await vi.waitFor(async () => expect(await t.findState(id)).toBe('cancelled'), patient);

    const watching = t.spawn(...t.redeliver, '--failed-since', '2h');
    await vi.waitFor(async () => expect(await t.states()).toContain('running'), patient);
    watching.child.kill('SIGINT');
    expect(await watching.ended).toBe(130);
    expect(watching.output.stdout).toBe('');
    const left = /continues in the background\. To follow it, run orgctl redelivery show --id (\S+) /.exec(
      watching.output.stderr,
    )?.[1];
    expect(left).not.toBe(id);
    expect(await t.findState(left ?? '')).toBe('running');

    const { TEMPORAL_ADDRESS: _address, ...withoutTemporal } = t.env;
    const stop = await callOrgctl(withoutTemporal, ['redelivery', 'cancel', '--id', left ?? '']);
    const stdout = expect.stringContaining('Stopping after the current batch');
    expect(stop).toMatchObject({ code: 0, stdout, stderr: '' });
    await vi.waitFor(async () => expect(await t.findState(left ?? '')).toBe('cancelled'), patient);
    expect((await t.orgctl('ledger', '--json')).json()).toMatchObject({ difference: 0 });
  });

  it('that ends early because its webhook was paused reports that', { timeout }, async () => {
    const t = await setupRedelivery(400);
    await startTestWorker(t.database);
    const watching = t.spawn(...t.redeliver, '--failed-since', '2h', '--json');
    await vi.waitFor(async () => expect(await t.states()).toContain('running'), patient);
    await t.orgctl('webhook', 'pause', '--webhook', t.webhook.id);
    expect(await watching.ended).toBe(1);
    expect(watching.output.stdout).toBe('');
    expect(watching.output.stderr).toContain('because the webhook was paused');
  });
});

/** A webhook with a number of exhausted deliveries, and a receiver that accepts. */
async function setupRedelivery(count: number) {
  const t = await setupOrgctl();
  const receiver = await startReceiver();
  const webhook = await t.make.webhook({ url: receiver.url });
  await insertExhausted(t.owner.pool, { organizationId: webhook.orgId, webhookId: webhook.id, count });
  const states = async () =>
    (await t.owner.pool.query<{ id: string; state: string }>('select id, state from redelivery order by id')).rows;
  return {
    ...t,
    receiver,
    webhook,
    redeliver: ['delivery', 'redeliver', '--webhook', webhook.id],
    findState: async (id: string) => (await states()).find((one) => one.id === id)?.state,
    states: async () => (await states()).map(({ state }) => state),
    /** Starts a call, so that the test can act before it ends. */
    spawn(...args: string[]) {
      const env = { ...childEnvironment, ...t.env };
      const child = spawn(process.execPath, ['apps/orgctl/main.ts', ...args], { env });
      const output = { stdout: '', stderr: '' };
      for (const stream of ['stdout', 'stderr'] as const) {
        child[stream].on('data', (chunk: Buffer) => {
          output[stream] += chunk;
        });
      }
      const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
      return { child, output, ended };
    },
  };
}
