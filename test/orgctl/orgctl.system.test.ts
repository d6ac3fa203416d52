/** The operators' command line: its responses, its errors, and the values that it never prints. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { unsealHeaders } from '#domain/webhooks/seal.ts';
import { isSecret } from '#domain/webhooks/secret.ts';
import { callOrgctl, setupOrgctl, spawnOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startTestWorker } from '#test/worker.ts';

const timeout = 90_000;
const unknownId = '00000000-0000-7000-8000-000000000000';
const types = 'client.started,seat.ended';
const redeliver = ['delivery', 'redeliver', '--webhook', unknownId];
const redeliverAll = (failedSince: string) => [...redeliver, '--failed-since', failedSince];

describe('a call of orgctl', () => {
  it('that is invalid exits with 2, a sentence on standard error, and nothing on standard output', {
    timeout,
  }, async () => {
    const env = { ORG_API_STATE: temporaryFolder(), REGION: 'us', DATABASE_URL: 'postgresql://u:p@127.0.0.1:1/none' };
    const wrong: [args: string[], says: RegExp][] = [
      [[], /Enter a command/],
      [['hooks', 'list'], /Unknown noun hooks/],
      [['webhook'], /needs a verb: create/],
      [['webhook', 'destroy'], /Unknown verb destroy/],
      [['webhook', 'show'], /--webhook is missing/],
      [['webhook', 'show', '--webhook', 'abc'], /enter an ID/],
      [['webhook', 'show', '--webhook', unknownId, '--shiny'], /--shiny/],
      [['webhook', 'list', '--org', unknownId, '--region', 'eu'], /us or ca/],
      [['webhook', 'list', '--org', unknownId, '--region', 'ca'], /contradicts REGION/],
      [['webhook', 'rotate', '--webhook', unknownId, '--overlap', 'long'], /duration/],
      [['delivery', 'list', '--webhook', unknownId, '--state', 'lost'], /exhausted/],
      [['delivery', 'list', '--webhook', unknownId, '--limit', '0'], /1 to 100000/],
      [['delivery', 'redeliver', '--webhook', unknownId], /--event ID, --from/],
      [
        ['delivery', 'redeliver', '--webhook', unknownId, '--event', unknownId, '--failed-since', '1h'],
        /--event ID, --from/,
      ],
      [['delivery', 'redeliver', '--webhook', unknownId, '--from', '2h'], /--to is missing/],
      [['delivery', 'redeliver', '--webhook', unknownId, '--failed-since', 'yesterday'], /2026-11-20T08:00:00Z/],
      [redeliverAll('2026-02-30T00:00:00Z'), /2026-11-20T08:00:00Z/],
      [redeliverAll('0000-01-01T00:00:00Z'), /2026-11-20T08:00:00Z/],
      [redeliverAll('0001-01-01T00:00:00+01:00'), /2026-11-20T08:00:00Z/],
      [redeliverAll('999999999d'), /2026-11-20T08:00:00Z/],
      [[...redeliver, '--from', '1h', '--to', '9999-12-31T23:30:00-01:00'], /--to: enter a time/],
      [['audit-log', 'verify', '--month', '0000-01'], /enter a month/],
      [['delivery', 'cancel', '--webhook', unknownId], /--event is missing/],
      [['secrets'], /needs a verb: reseal, status/],
      [['redelivery', 'show'], /--id is missing/],
      [['redelivery', 'list', '--webhook', unknownId, '--limit', 'all'], /1 to 100000/],
    ];
    for (const [args, says] of wrong) {
      const call = args.length === 0 ? spawnOrgctl : callOrgctl; // one shows the code of a process
      const called = await call(env, [...args, ...(args.length > 0 ? ['--json'] : [])]);
      expect({ args, code: called.code, stdout: called.stdout }).toEqual({ args, code: 2, stdout: '' });
      expect(called.stderr).toMatch(says);
    }
  });

  it('for help lists every verb with its options, without any setting', { timeout }, async () => {
    const help = await callOrgctl({ ORG_API_STATE: temporaryFolder() }, ['--help']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const noun of ['org', 'person', 'webhook', 'delivery', 'redelivery', 'ledger', 'key', 'secrets'])
      expect(help.stdout).toContain(`  ${noun} `);
    const webhook = await callOrgctl({ ORG_API_STATE: temporaryFolder() }, ['webhook', '--help']);
    for (const verb of ['create', 'list', 'show', 'rotate', 'test', 'pause', 'resume', 'detach', 'delete'])
      expect(webhook.stdout).toContain(`orgctl webhook ${verb} `);
    const redeliver = await callOrgctl({ ORG_API_STATE: temporaryFolder() }, ['delivery', 'redeliver', '--help']);
    expect(redeliver.stdout).toContain('--failed-since T');
    expect(redeliver.stdout).toContain('[--no-wait]');
    const redelivery = await callOrgctl({ ORG_API_STATE: temporaryFolder() }, ['redelivery', '--help']);
    for (const verb of ['list', 'show', 'cancel']) expect(redelivery.stdout).toContain(`orgctl redelivery ${verb} `);
  });

  it('explains missing settings or servers in one sentence, without a stack trace or a password', {
    timeout,
  }, async () => {
    const folder = temporaryFolder();
    const none = await callOrgctl({ ORG_API_STATE: folder }, ['org', 'list', '--region', 'us']);
    expect(none).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('DATABASE_URL is missing') });
    const url = 'postgresql://someone:p4ssw0rd@127.0.0.1:1/none';
    const unavailable = await callOrgctl({ ORG_API_STATE: folder, REGION: 'us', DATABASE_URL: url }, ['org', 'list']);
    expect(unavailable).toMatchObject({
      code: 1,
      stdout: '',
      // Not that nothing was changed: a command may fail at its second statement.
      stderr: 'No PostgreSQL answers at DATABASE_URL. Check that it runs.\n',
    });
    expect(`${none.stderr}${unavailable.stderr}`).not.toMatch(/p4ssw0rd|\n\s+at /);
  });

  it('takes missing settings from the stack of npm start, and none of its secrets for another database', {
    timeout,
  }, async () => {
    const t = await setupOrgctl();
    const orgId = await t.make.organization();
    const folder = temporaryFolder();
    const stack = { regions: [{ region: 'us', databaseUrl: t.database.ownerUrl, api: 'x', organizations: [] }] };
    writeFileSync(path.join(folder, 'stack.json'), JSON.stringify(stack));
    const secrets = {
      us: { keyPeppers: t.env.KEY_PEPPERS, webhookSecretKeys: t.env.WEBHOOK_SECRET_KEYS, passwords: {} },
    };
    writeFileSync(path.join(folder, 'secrets.json'), JSON.stringify(secrets));
    const create = ['webhook', 'create', '--org', orgId, '--url', 'http://127.0.0.1:9/in', '--types', types, '--json'];

    expect(await callOrgctl({ ORG_API_STATE: folder }, create)).toMatchObject({ code: 0, stderr: '' });
    const elsewhere = await callOrgctl(
      { ORG_API_STATE: folder, DATABASE_URL: t.database.ownerUrl.replace(t.database.name, 'other') },
      create,
    );
    expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining('WEBHOOK_SECRET_KEYS is missing') });
    const absent = await callOrgctl({ ORG_API_STATE: folder }, ['org', 'list', '--region', 'ca']);
    expect(absent).toMatchObject({ code: 1, stderr: expect.stringContaining('no region ca') });
  });
});

describe('orgctl', () => {
  it('lists and shows organizations', { timeout }, async () => {
    const t = await setupOrgctl();
    const b = await t.make.organization({ name: 'Brook Mediation' });
    const a = await t.make.organization({ name: 'Ash\u001b[31m Law' });
    await t.make.webhook({ orgId: b });
    const list = await t.orgctl('org', 'list', '--json');
    expect(list.json<{ id: string }[]>().map(({ id }) => id)).toEqual([a, b]);
    expect((await t.orgctl('org', 'show', '--org', b, '--json')).json()).toMatchObject({
      name: 'Brook Mediation',
      webhooks: 1,
    });
    const shown = await t.orgctl('org', 'list');
    expect(shown.stdout).toContain('Brook Mediation');
    expect(shown.stdout).not.toContain('\u001b'); // a terminal would execute it
    expect(await t.orgctl('org', 'show', '--org', unknownId)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'This organization does not exist in this region.\n',
    });
  });

  it('takes a webhook through its life, and prints each secret only once', {
    timeout,
  }, async () => {
    const t = await setupOrgctl();
    const orgId = await t.make.organization();
    const url = 'https://hooks.example.com/in';
    const created = await t.orgctl(
      'webhook',
      'create',
      '--org',
      orgId,
      '--url',
      url,
      '--types',
      types,
      '--region',
      'us',
      '--json',
    );
    const { id, secret, ...more } = created.json<{ id: string; secret: string }>();
    expect(isSecret(secret)).toBe(true);
    expect(more).toEqual({});
    const on = (verb: string, ...args: string[]) => t.orgctl('webhook', verb, '--webhook', id, ...args, '--json');

    const rotated = await on('rotate', '--overlap', '2h');
    expect(isSecret(rotated.json<{ secret: string }>().secret)).toBe(true);
    const others = [
      await on('change', '--types', 'client.ended', '--description', 'ours'),
      await on('pause'),
      await on('show'),
      await on('resume', '--probe', 'no'),
      await t.orgctl('webhook', 'list', '--org', orgId, '--json'),
      await t.orgctl('webhook', 'list', '--org', orgId),
      await t.orgctl('webhook', 'show', '--webhook', id),
      await on('delete'),
    ];
    expect(others.map(({ code, stderr }) => ({ code, stderr }))).toEqual(others.map(() => ({ code: 0, stderr: '' })));
    expect(others[0]?.json()).toMatchObject({ eventTypes: ['client.ended'], description: 'ours', url });
    expect(others[1]?.json()).toEqual({ id, state: 'paused', deliveries: 0 });
    expect(others[2]?.json()).toMatchObject({ id, state: 'paused', suspendedReason: null, secrets: [{}, {}] });
    expect(others[3]?.json()).toEqual({ id, state: 'active', deliveries: 0 });
    expect(others[4]?.json()).toMatchObject([{ id, state: 'active', concurrency: 1 }]);
    expect(others[7]?.json()).toEqual({ id, state: 'deleted', deliveries: 0 });
    expect(JSON.stringify(others)).not.toContain('whsec_');
    const { rows } = await t.owner.pool.query('select action, person_id, detail from audit_entry order by at');
    expect(rows.map(({ action }) => action)).toEqual([
      'webhook.create',
      'webhook.rotate_secret',
      'webhook.change',
      'webhook.pause',
      'webhook.resume',
      'webhook.delete',
    ]);
    expect(JSON.stringify(rows)).not.toContain('whsec_');
  });

  it('sets custom headers from a file, removes them by name, bounds requests, and prints no value', {
    timeout,
  }, async () => {
    const t = await setupOrgctl();
    const orgId = await t.make.organization();
    const file = path.join(temporaryFolder(), 'headers');
    const write = (text: string) => writeFileSync(file, text);
    write('Authorization: Bearer marker: with a colon\r\n\nX-Tenant:alder\n');
    const url = ['--url', 'https://hooks.example.com/in', '--types', types];
    const options = ['--set-headers', file, '--posts-per-second', '5'];
    const created = await t.orgctl('webhook', 'create', '--org', orgId, ...url, ...options, '--json');
    const { id } = created.json<{ id: string }>();
    const change = (...args: string[]) => t.orgctl('webhook', 'change', '--webhook', id, ...args, '--json');
    const shown = await t.orgctl('webhook', 'list', '--org', orgId, '--json');
    expect(shown.json()).toMatchObject([{ headerNames: ['Authorization', 'X-Tenant'], postsPerSecond: 5 }]);
    write('x-tenant: marker\n');
    const calls = [
      await change('--set-headers', file, '--remove-headers', 'authorization', '--posts-per-second', 'none'),
      await t.orgctl('webhook', 'show', '--webhook', id),
    ];
    expect(calls[0]?.json()).toMatchObject({ headerNames: ['x-tenant'], postsPerSecond: null });
    const { rows } = await t.owner.pool.query<{ sealed: Buffer }>('select headers_sealed as sealed from webhook');
    const owner = { organizationId: orgId, webhookId: id };
    expect(unsealHeaders(rows[0]?.sealed ?? Buffer.alloc(0), owner, testSealingKeys)).toEqual([
      { name: 'x-tenant', value: 'marker' },
    ]);

    const wrong: [text: string, says: string][] = [
      ['marker\n', `Line 1 of ${file} is not a name, a colon and a value.\n`],
      ['X-Key: a\nX-Other:\n', `Line 2 of ${file} is not a name, a colon and a value.\n`],
      ['\n', `${file} contains no headers.\n`],
      ['Content-Type: marker\n', 'You can’t set Content-Type'],
      ['X marker: a\n', 'Enter a header name'],
    ];
    for (const [text, says] of wrong) {
      write(text);
      const called = await change('--set-headers', file);
      expect(called).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(says) });
      calls.push(called);
    }
    calls.push(await change('--remove-headers', 'X-Missing'), await change('--set-headers', `${file}.gone`));
    expect(calls.slice(-2).map(({ code }) => code)).toEqual([1, 1]);
    expect((await change('--posts-per-second', 'fast')).code).toBe(2);
    expect(JSON.stringify([created, shown, calls])).not.toContain('marker');
  });

  it('says that a suspended webhook stays suspended when a member’s is paused', { timeout }, async () => {
    const t = await setupOrgctl();
    const webhook = await t.make.webhook();
    await t.owner.pool.query(`update webhook set state = 'suspended', suspended_reason = 'failures'`);
    const paused = await t.orgctl('webhook', 'pause', '--webhook', webhook.id, '--json');
    expect(paused).toMatchObject({ code: 0, stderr: '' });
    expect(paused.json()).toEqual({ id: webhook.id, state: 'suspended', deliveries: 0 });
  });

  it('lists the faults of the ledger, also those that cancel each other out in its difference', {
    timeout,
  }, async () => {
    const t = await setupOrgctl();
    const webhook = await t.make.webhook();
    const [missing, surplus] = [await t.make.delivery({ webhook }), await t.make.delivery({ webhook })];
    const well = await t.orgctl('ledger', '--json');
    expect(well).toMatchObject({ code: 0, stderr: '' });
    expect(well.json()).toMatchObject({ waiting: 2, difference: 0, missing: 0, surplus: 0, overdue: 0, stuck: 0 });
    await t.owner.pool.query('delete from delivery where event_id = $1', [missing]);
    await t.owner.pool.query('update event set delivery_count = 0 where id = $1', [surplus]);

    const wrong = await t.orgctl('ledger', '--json');

    expect(wrong.json()).toMatchObject({ required: 1, waiting: 1, difference: 0, missing: 1, surplus: 1 });
    expect(wrong.stderr).toMatch(new RegExp(`${missing} .* there are 0[.]`));
    expect(wrong.stderr).toMatch(new RegExp(`${surplus} .* there are 1[.]`));
  });

  it('exits with 1, a sentence, and nothing on standard output when it rejects', { timeout }, async () => {
    const t = await setupOrgctl();
    const webhook = await t.make.webhook();
    await t.orgctl('webhook', 'delete', '--webhook', webhook.id);
    const make = ['webhook', 'create', '--org', webhook.orgId];
    const rejected: [args: string[], says: string][] = [
      [[...make, '--url', 'http://hooks.example.com:0', '--types', types], 'Port 0'],
      [[...make, '--url', 'https://10.1.2.3/', '--types', types], 'not public'],
      [
        [...make, '--url', 'https://hooks.example.com', '--types', 'client.gone'],
        'The event type client.gone does not exist',
      ],
      [[...make, '--url', 'https://hooks.example.com', '--types', ''], 'at least one event type'],
      [
        ['webhook', 'create', '--org', unknownId, '--url', 'https://a.example.com', '--types', types],
        'no such organization',
      ],
      [['webhook', 'list', '--org', unknownId], 'organization does not exist'],
      [['webhook', 'show', '--webhook', unknownId], 'webhook does not exist'],
      [['webhook', 'rotate', '--webhook', webhook.id, '--overlap', '8d'], 'deleted'],
      [['webhook', 'pause', '--webhook', webhook.id], 'deleted'],
      [['webhook', 'test', '--webhook', webhook.id], 'deleted'],
      [['person', 'invite', '--org', unknownId, '--email', 'a@example.org'], 'organization does not exist'],
      [['person', 'invite', '--org', webhook.orgId, '--email', 'nobody'], 'Enter a complete email address'],
      [['person', 'invite', '--org', webhook.orgId, '--email', 'a@example.org', '--roles', 'king'], 'no role king'],
      [['delivery', 'show', '--webhook', webhook.id, '--event', unknownId], 'no delivery'],
      [['delivery', 'redeliver', '--webhook', webhook.id, '--event', unknownId], 'deleted'],
      [['delivery', 'redeliver', '--webhook', webhook.id, '--failed-since', '1h'], 'deleted'],
      [['delivery', 'redeliver', '--webhook', webhook.id, '--from', '1h', '--to', '2h'], 'deleted'],
      [['delivery', 'cancel', '--webhook', webhook.id, '--event', unknownId], 'no delivery'],
      [['redelivery', 'show', '--id', unknownId], 'redelivery does not exist'],
      [['redelivery', 'cancel', '--id', unknownId], 'redelivery does not exist'],
      [['redelivery', 'list', '--webhook', unknownId], 'webhook does not exist'],
      [['key', 'revoke', '--key', unknownId], 'key does not exist'],
    ];
    for (const [args, says] of rejected) {
      const called = await t.orgctl(...args, '--json');
      expect({ args, code: called.code, stdout: called.stdout }).toEqual({ args, code: 1, stdout: '' });
      expect(called.stderr).toContain(says);
      expect(called.stderr.trim().split('\n')).toHaveLength(1);
    }
  });

  it('revokes a key by its id or by its text, and never prints one', { timeout }, async () => {
    const t = await setupOrgctl();
    const first = await t.make.apiKey();
    const second = await t.make.apiKey();
    const calls = [
      await t.orgctl('key', 'revoke', '--key', first.id, '--json'),
      await t.orgctl('key', 'revoke', '--key', second.key, '--json'),
      await t.orgctl('key', 'list', '--org', first.orgId, '--json'),
    ];
    expect(calls.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(calls[1]?.json()).toEqual({ id: second.id, state: 'revoked' });
    expect(calls[2]?.json()).toMatchObject([{ id: first.id, state: 'revoked' }]);
    expect(JSON.stringify(calls)).not.toContain(second.key);
  });

  it('lists deliveries by state and page by page, and reads the ledger', { timeout }, async () => {
    const t = await setupOrgctl();
    const webhook = await t.make.webhook();
    const at = (hours: number) => new Date(Date.now() - hours * 3_600_000);
    const made: string[] = [];
    for (const hours of [5, 4, 3]) {
      const fields = { webhook, state: 'exhausted', createdAt: at(hours), settledAt: at(hours) } as const;
      made.unshift(await t.make.delivery({ ...fields, attempts: [{ status: 500, endsSchedule: true }] }));
    }
    const list = (...args: string[]) => t.orgctl('delivery', 'list', '--webhook', webhook.id, ...args, '--json');
    const first = await list('--limit', '2');
    expect(first.json<{ eventId: string }[]>().map(({ eventId }) => eventId)).toEqual(made.slice(0, 2));
    expect(first.stderr).toContain(`--before ${made[1]}`);
    const rest = await list('--before', made[1] ?? '');
    expect(rest.json<{ eventId: string }[]>().map(({ eventId }) => eventId)).toEqual(made.slice(2));
    expect((await list('--state', 'waiting')).json()).toEqual([]);
    const read = await t.orgctl('ledger', '--json');
    expect(read.json()).toMatchObject({ required: 3, waiting: 0, exhausted: 3, difference: 0, overdue: 0 });
  });

  it('holds all deliveries of the region, and says when they are drained', { timeout }, async () => {
    const t = await setupOrgctl();
    const deliverySwitch = (...args: string[]) => t.orgctl('delivery', 'switch', ...args, '--json');
    expect((await deliverySwitch()).json()).toMatchObject({ state: 'running', underWay: 0, isDrained: false });
    expect((await deliverySwitch('--set', 'draining')).json()).toMatchObject({ state: 'draining', isDrained: false });
    await t.owner.pool.query(`update delivery_switch set changed_at = changed_at - interval '10 seconds'`);
    expect((await deliverySwitch()).json()).toMatchObject({ state: 'draining', isDrained: true });
    expect((await deliverySwitch('--set', 'stopped')).code).toBe(2);
    expect((await deliverySwitch('--set', 'running')).json()).toMatchObject({ state: 'running' });
  });

  it('retries a waiting delivery now without Temporal, and shows every attempt', {
    timeout,
  }, async () => {
    const t = await setupOrgctl();
    const receiver = await startReceiver();
    receiver.respond = (response) => void response.writeHead(receiver.received.length < 2 ? 500 : 204).end();
    const professional = await t.make.member();
    const { id } = await t.make.webhook({ orgId: professional.orgId, url: receiver.url });
    await startTestWorker(t.database, { DELIVERY_SCHEDULE: '6h,6h' });
    await t.make.grant({ professional });
    await vi.waitFor(async () => {
      const { rows } = await t.owner.pool.query(
        "select attempts from delivery d where due_at > now() + interval '1 hour'",
      );
      expect(rows).toEqual([{ attempts: 1 }]);
    }, 20_000);
    const [waiting] = (await t.orgctl('delivery', 'list', '--webhook', id, '--json')).json<{ eventId: string }[]>();
    const event = waiting?.eventId ?? '';

    const { TEMPORAL_ADDRESS: _address, ...withoutTemporal } = t.env;
    const sent = await callOrgctl(withoutTemporal, ['delivery', 'redeliver', '--webhook', id, '--event', event]);
    expect(sent).toMatchObject({ code: 0, stdout: `${event}: redelivery queued.\n`, stderr: '' });
    await vi.waitFor(() => expect(receiver.received).toHaveLength(2), 20_000);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([event]));
    await vi.waitFor(async () => {
      const shown = await t.orgctl('delivery', 'show', '--webhook', id, '--event', event, '--json');
      expect(shown.json()).toMatchObject({
        state: 'delivered',
        attempts: [
          { number: 1, status: 500, startedAt: expect.stringMatching(/Z$/) },
          { number: 2, status: 204, cause: 'accepted' },
        ],
      });
    }, 20_000);
    const again = await t.orgctl('delivery', 'redeliver', '--webhook', id, '--event', event, '--json');
    expect(again.json()).toEqual({ eventId: event, how: 'queued' });
    await vi.waitFor(() => expect(receiver.received).toHaveLength(3), 20_000);
  });
});
