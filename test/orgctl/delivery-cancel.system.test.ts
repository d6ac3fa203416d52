import { describe, expect, it, vi } from 'vitest';
import { callOrgctl, setupOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startTestWorker } from '#test/worker.ts';

const timeout = 90_000;
const patient = { timeout: 30_000, interval: 50 };

describe('delivery cancel', () => {
  it('ends a waiting delivery at once, records the operator’s action, and is rejected the second time', {
    timeout,
  }, async () => {
    const t = await setupOrgctl();
    const receiver = await startReceiver();
    receiver.respond = (response) => void response.writeHead(500).end();
    const professional = await t.make.member();
    const webhook = await t.make.webhook({ orgId: professional.orgId, url: receiver.url });
    await startTestWorker(t.database, { DELIVERY_SCHEDULE: '6h,6h' });
    await t.make.grant({ professional });
    await vi.waitFor(async () => {
      const { rows } = await t.owner.pool.query('select attempts from delivery where due_at > now()');
      expect(rows).toEqual([{ attempts: 1 }]);
    }, patient);
    const list = await t.orgctl('delivery', 'list', '--webhook', webhook.id, '--json');
    const event = list.json<{ eventId: string }[]>()[0]?.eventId ?? '';
    const named = ['--webhook', webhook.id, '--event', event];

    const cancelled = await t.orgctl('delivery', 'cancel', ...named, '--json');

    expect(cancelled).toMatchObject({ code: 0, stderr: '' });
    expect(cancelled.json()).toEqual({ eventId: event, state: 'cancelled' });
    const shown = await t.orgctl('delivery', 'show', ...named, '--json');
    expect(shown.json()).toMatchObject({ state: 'cancelled', attempts: [{ number: 1, status: 500 }] });
    const entries = await t.owner.pool.query(
      `select person_id, detail from audit_entry where action = 'delivery.cancel'`,
    );
    expect(entries.rows).toEqual([{ person_id: null, detail: { webhookId: webhook.id, eventId: event } }]);
    expect((await t.orgctl('ledger', '--json')).json()).toMatchObject({ cancelled: 1, waiting: 0, difference: 0 });
    const twice = await t.orgctl('delivery', 'cancel', ...named, '--json');
    expect(twice).toMatchObject({ code: 1, stdout: '', stderr: 'This delivery is already cancelled.\n' });
    const again = await t.orgctl('delivery', 'redeliver', ...named);
    expect(again).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('cancelled') });
    expect(receiver.received).toHaveLength(1);
  });

  it('works without Temporal, and reports nothing else', { timeout }, async () => {
    const t = await setupOrgctl();
    const webhook = await t.make.webhook();
    const { TEMPORAL_ADDRESS: _address, ...none } = t.env;
    for (const env of [none, { ...t.env, TEMPORAL_ADDRESS: '127.0.0.1:1' }]) {
      const event = await t.make.delivery({ webhook, state: 'running' });
      const called = await callOrgctl(env, ['delivery', 'cancel', '--webhook', webhook.id, '--event', event]);
      expect(called).toMatchObject({ code: 0, stdout: expect.stringMatching(`^${event}: cancelled[.]`), stderr: '' });
      const sleeping = await t.make.delivery({ webhook, state: 'running' });
      const redelivered = await callOrgctl(env, [
        'delivery',
        'redeliver',
        '--webhook',
        webhook.id,
        '--event',
        sleeping,
      ]);
      expect(redelivered).toMatchObject({ code: 0, stderr: '' });
    }
    expect((await t.orgctl('ledger', '--json')).json()).toMatchObject({ cancelled: 2, difference: 0 });
  });

  it('explains its options in its help', { timeout }, async () => {
    const help = await callOrgctl({ ORG_API_STATE: temporaryFolder() }, ['delivery', 'cancel', '--help']);
    expect(help.stdout).toContain('orgctl delivery cancel --webhook ID --event ID\n');
  });
});
