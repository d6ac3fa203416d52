import dns from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { urlProblems } from '#domain/webhooks/address/url-problems.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { webhooksPerOrganization } from '#domain/webhooks/limits.ts';
import { startDnsServer } from '#test/dns-server.ts';
import { verifySnippets } from '../../apps/console/pages/webhooks/verify-snippets.ts';
import { type ConsoleInstallation, type Enrolled, setupConsole } from './setup.ts';
import { insertWebhook, makeDeliveries } from './webhook-stories.ts';

const fields = {
  url: 'https://hooks.example.com/events?token=fjord',
  eventTypes: ['client.started', 'seat.given'],
  description: 'Case management',
};

async function setup(settings: Record<string, string> = {}) {
  const t = await setupConsole(settings);
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const visitor = t.http(ada);
  const at = (rest: string) => `/o/${ada.orgId}/webhooks${rest}`;
  /** Sends a form of the page to the same URL. */
  const submit = (rest: string, values: Record<string, string | string[]> = {}) =>
    visitor.submit(at(rest), at(rest), values);
  return { ...t, ada, visitor, at, submit };
}

const listActions = async ({ owner }: Pick<ConsoleInstallation, 'owner'>, action: string) =>
  (
    await owner.pool.query<{ personId: string; detail: Record<string, unknown> }>(
      `select person_id as "personId", detail from audit_entry where action = $1 order by at, id`,
      [action],
    )
  ).rows;

const webhookRows = async ({ owner }: Pick<ConsoleInstallation, 'owner'>, { orgId }: Pick<Enrolled, 'orgId'>) =>
  (
    await owner.pool.query<{ id: string; url: string; description: string; types: string[]; state: string }>(
      'select id, url, description, event_types as types, state from webhook where organization_id ' +
        '= $1 order by created_at',
      [orgId],
    )
  ).rows;

describe('adding a webhook', () => {
  it('reports the problems of the URL and of the events together, when it is added and edited', async () => {
    const t = await setup();
    const webhook = await insertWebhook(t, t.ada);
    for (const rest of ['/new', `/${webhook.id}/edit`]) {
      const rejected = await t.submit(rest, { ...fields, url: 'https://a:b@hooks.example.com', eventTypes: [] });
      expect([rest, rejected.status]).toEqual([rest, 422]);
      expect(rejected.text).toContain('Choose at least one event type.');
      expect(rejected.text).toContain(urlProblems.url_credentials);
      expect(rejected.text.indexOf(urlProblems.url_credentials)).toBeLessThan(
        rejected.text.indexOf('Choose at least one'),
      );
    }
  });

  it('warns that the host name has no address, and accepts it; a name that DNS does not answer for gets no warning', async () => {
    const t = await setup();
    const { server } = await startDnsServer((name) => {
      if (name === 'slow.example.com') return null;
      return name === 'hooks.example.com' ? [{ type: 'A', value: '203.0.113.9' }] : 'NXDOMAIN';
    });
    dns.setServers([server]);
    const warning = 'has no address in DNS now';
    const addressed = await t.submit('/new', fields);
    expect([addressed.status, addressed.text.includes(warning)]).toEqual([200, false]);
    const unknown = await t.submit('/new', { ...fields, url: 'https://hoks.example.com/' });
    expect([unknown.status, unknown.text.includes(warning), unknown.text.includes('whsec_')]).toEqual([
      200,
      true,
      true,
    ]);
    const silent = await t.submit('/new', { ...fields, url: 'https://slow.example.com/' });
    expect([silent.status, silent.text.includes(warning)]).toEqual([200, false]);
    const plain = await t.submit('/new', { ...fields, url: 'http://hooks.example.com/' });
    expect(plain.text).toContain('Nothing is sent over http unless the name resolves to an address');
    const [{ id } = { id: '' }] = await webhookRows(t, t.ada);
    const sameUrl = { ...fields, url: 'https://hoks.example.com/', allowSameUrl: 'on' };
    const moved = await t.submit(`/${id}/edit`, sameUrl);
    expect([moved.status, moved.text.includes(warning)]).toEqual([200, true]);
    expect((await webhookRows(t, t.ada)).map(({ url }) => url)).toEqual([
      'https://hoks.example.com/',
      'https://hoks.example.com/',
      'https://slow.example.com/',
      'http://hooks.example.com/',
    ]);
  });

  it('without a description is named apart from others at its host, on its page, in lists and in the log', async () => {
    const t = await setup();
    const ids = [];
    for (const path of ['/a', '/b']) {
      await t.submit('/new', { ...fields, url: `https://hooks.example.com${path}`, description: '' });
      ids.push((await webhookRows(t, t.ada)).at(-1)?.id ?? '');
    }
    const names = ids.map((id) => `hooks.example.com (${id.slice(-6)})`);
    expect(new Set(names).size).toBe(2);
    for (const page of [t.at(''), `/o/${t.ada.orgId}/audit-log`, `/o/${t.ada.orgId}/deliveries`]) {
      const { text } = await t.visitor.get(page);
      for (const name of names) expect([page, text.includes(name)]).toEqual([page, true]);
    }
    for (const [index, id] of ids.entries())
      expect((await t.visitor.get(t.at(`/${id}`))).text).toContain(`<h1>${names[index]}</h1>`);
  });

  it('shows its secret once with the signature check, and never again; the log names the creator, without the URL’s token', async () => {
    const t = await setup();
    const made = await t.submit('/new', fields);
    expect(made.status).toBe(200);
    const [secret = ''] = /whsec_[A-Za-z0-9+/]{32}/.exec(made.text) ?? [];
    expect(secret).not.toBe('');
    for (const { language } of verifySnippets) expect(made.text).toContain(`>${language}</summary>`);
    const [webhook] = await webhookRows(t, t.ada);
    expect(webhook).toMatchObject({ url: fields.url, description: fields.description, types: fields.eventTypes });
    for (const rest of ['', '/edit', '/rotate', '/test', '/verify', '/deliveries']) {
      const { status, text } = await t.visitor.get(t.at(`/${webhook?.id}${rest}`));
      expect([rest, status, text.includes(secret)]).toEqual([rest, 200, false]);
      if (rest === '/verify') expect(text).toContain('<code>npm run tool -- certify URL --secret-file FILE</code>');
    }
    expect(await listActions(t, 'webhook.create')).toEqual([
      {
        personId: t.ada.personId,
        detail: { webhookId: webhook?.id, host: 'hooks.example.com', eventTypes: fields.eventTypes },
      },
    ]);
    for (const hidden of [secret, 'fjord', 'Case management']) expect(t.logLines.join('')).not.toContain(hidden);
  });

  it('explains why a URL is rejected and how to correct it, keeps the input, and creates nothing', async () => {
    const t = await setup({ WEBHOOK_ALLOW: '' });
    for (const [url, why] of [
      ['http://hooks.example.com/', 'Enter a URL that starts with https://.'],
      ['https://10.0.0.8/events', 'not public'],
      ['https://[::ffff:169.254.169.254]/', 'not public'],
      ['https://ada:pass@hooks.example.com/', 'user name or password'],
      ['https://metadata.internal/', 'exists only inside a network'],
      ['nothing at all', 'contains a space'],
      ['', 'Enter a URL.'],
    ] as const) {
      const rejected = await t.submit('/new', { ...fields, url });
      expect([url, rejected.status]).toEqual([url, 422]);
      expect(rejected.text).toContain(why);
      expect(rejected.text).toContain(`value="${url}"`);
      expect(rejected.text).toContain('value="Case management"');
    }
    const none = await t.submit('/new', { ...fields, eventTypes: [] });
    expect(none.text).toContain('at least one event type');
    expect(await webhookRows(t, t.ada)).toEqual([]);
  });

  it('accepts http only where the installation allows it, and says so', async () => {
    const allowed = 'or an http or https URL at an address that this installation allows';
    const readForm = async (t: Awaited<ReturnType<typeof setup>>) => (await t.visitor.get(t.at('/new'))).text;
    expect(await readForm(await setup({ WEBHOOK_ALLOW: '' }))).not.toContain(allowed);
    expect(await readForm(await setup({ WEBHOOK_ALLOW: '127.0.0.1' }))).toContain(allowed);
  });

  it('explains the limit instead of showing a form', async () => {
    const t = await setup();
    const form = await t.visitor.get(t.at('/new'));
    for (let count = 0; count < webhooksPerOrganization; count += 1) await insertWebhook(t, t.ada);
    const { text } = await t.visitor.get(t.at('/new'));
    expect(text).toContain('20 webhooks, which is the maximum');
    expect(text).not.toContain('name="url"');
    // A form that was open before is rejected with the same message.
    const late = await t.visitor.submit(form, t.at('/new'), fields);
    expect(late.status).toBe(422);
    expect(late.text).toContain('20 webhooks, which is the maximum');
    expect(await webhookRows(t, t.ada)).toHaveLength(webhooksPerOrganization);
  });

  it('shows a description of markup or bidirectional controls as text', async () => {
    const t = await setup();
    await t.submit('/new', { ...fields, description: '<img src=x onerror=alert(1)> \u202Egnillib' });
    const [webhook] = await webhookRows(t, t.ada);
    for (const rest of ['', `/${webhook?.id}`, `/${webhook?.id}/delete`]) {
      const { text } = await t.visitor.get(t.at(rest));
      expect(text).not.toContain('<img src=x');
      expect(text).not.toContain('\u202E');
      expect(text).toContain('U+202E');
    }
  });
});

describe('changing a webhook', () => {
  it('changes only the changed fields, and the log lists them', async () => {
    const t = await setup();
    const { id } = await insertWebhook(t, t.ada);
    const same = { url: 'https://hooks.example.com/events', description: 'Case management', ordered: 'on' };
    const types = ['client.started', 'client.ended', 'seat.given'];
    const unchanged = await t.submit(`/${id}/edit`, { ...same, eventTypes: types });
    expect(unchanged.to).toBe(t.at(`/${id}`));
    expect(await listActions(t, 'webhook.change')).toEqual([]);
    await t.submit(`/${id}/edit`, { ...same, eventTypes: ['seat.ended'] });
    expect(await listActions(t, 'webhook.change')).toMatchObject([
      { personId: t.ada.personId, detail: { webhookId: id, changed: ['eventTypes'], eventTypes: ['seat.ended'] } },
    ]);
    const rejected = await t.submit(`/${id}/edit`, { ...same, url: 'https://192.168.0.1/', eventTypes: types });
    expect(rejected.text).toContain('not public');
    expect(await webhookRows(t, t.ada)).toMatchObject([{ url: same.url, types: ['seat.ended'] }]);
  });

  it('to a new secret shows the secret once with the overlap; an overlap of 8 days is rejected', async () => {
    const t = await setup();
    const { id, secret } = await insertWebhook(t, t.ada);
    expect((await t.submit(`/${id}/rotate`, { overlapHours: String(8 * 24) })).status).toBe(422);
    const rotated = await t.submit(`/${id}/rotate`, { overlapHours: '168' });
    const [next = ''] = /whsec_[A-Za-z0-9+/]{32}/.exec(rotated.text) ?? [];
    expect(next).not.toBe('');
    expect(next).not.toBe(secret);
    const { text } = await t.visitor.get(t.at(`/${id}?tab=signatures`));
    expect(text).toContain('>Current<');
    expect(text).toContain('>Replaced<');
    const endsAt = /Replaced[\s\S]*?Until <time datetime="([^"]+)"/.exec(text)?.[1] ?? '';
    const days = (Date.parse(endsAt) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(6.99);
    expect(days).toBeLessThanOrEqual(7);
    const alone = await t.submit(`/${id}/rotate`, { overlapHours: '0' });
    expect(alone.text).toContain('has stopped signing');
    expect((await t.visitor.get(t.at(`/${id}`))).text).not.toContain('>Replaced<');
  });

  it('asks for a fresh second factor; viewing, testing and redelivering do not', async () => {
    const t = await setup();
    const { id } = await insertWebhook(t, t.ada);
    t.pass(6 * 60_000);
    for (const [rest, values] of [
      ['/new', fields],
      [`/${id}/edit`, fields],
      [`/${id}/rotate`, { overlapHours: '0' }],
      [`/${id}/pause`, {}],
      [`/${id}/delete`, {}],
    ] as const)
      expect((await t.submit(rest, { ...values })).text).toContain('Confirm your identity');
    expect(await webhookRows(t, t.ada)).toMatchObject([{ id, state: 'active' }]);
    const test = await t.submit(`/${id}/test`, { type: 'client.started' });
    expect(test.text).not.toContain('Confirm your identity');
  });
});

describe('without Temporal', () => {
  it('pages explain what works and what waits; tests and checks are rejected with a reason, and record nothing', async () => {
    const t = await setup();
    const { id } = await insertWebhook(t, t.ada);
    // The page addresses the member; the log names the setting.
    expect((await t.visitor.get(t.at(`/${id}`))).text).toContain('Sending is not available on this installation');
    expect(t.logLines.filter((line) => line.includes('TEMPORAL_ADDRESS is not set'))).toHaveLength(1);
    for (const [rest, values] of [
      ['/test', { type: 'client.started' }],
      ['/verify', {}],
    ] as const) {
      const rejected = await t.submit(`/${id}${rest}`, { ...values });
      expect(rejected.status).toBe(422);
      expect(rejected.text).toContain('Sending is not available on this installation. Contact support.');
      expect(rejected.text).not.toMatch(/temporal|worker/i);
    }
    expect([...(await listActions(t, 'webhook.test')), ...(await listActions(t, 'webhook.verify'))]).toEqual([]);
  });

  it('a page explains that Temporal does not answer, and loads within seconds', async () => {
    const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:9' });
    const ada = await t.enrol();
    const { id } = await insertWebhook(t, ada);
    const path = `/o/${ada.orgId}/webhooks/${id}/test`;
    const rejected = await t.http(ada).submit(path, path, { type: 'client.started' });
    expect(rejected.status).toBe(422);
    expect(rejected.text).toContain('temporarily unavailable');
    expect(rejected.text).not.toContain('127.0.0.1');
  });

  it('a webhook can be paused, and resumed without a probe', async () => {
    const t = await setup();
    const webhook = await insertWebhook(t, t.ada);
    await makeDeliveries(t, webhook);
    const { id } = webhook;
    expect((await t.visitor.get(t.at(`/${id}/pause`))).text).toContain('1 unfinished delivery will be held');
    expect((await t.submit(`/${id}/pause`)).to).toBe(t.at(`/${id}`));
    const page = await t.visitor.get(t.at(`/${id}`));
    expect(page.text).toContain('Webhook paused');
    expect((await t.visitor.get(t.at(`/${id}/resume`))).text).toContain('1 held delivery');
    const rejected = await t.submit(`/${id}/resume`);
    expect(rejected.text).toContain('You can also resume without it.');
    expect(await webhookRows(t, t.ada)).toMatchObject([{ state: 'paused' }]);
    await t.submit(`/${id}/resume`, { withoutProbe: 'on' });
    expect(await webhookRows(t, t.ada)).toMatchObject([{ state: 'active' }]);
  });

  it('that failed is resumed with an offer to redeliver what failed since then, which is sent only on request', async () => {
    const t = await setup();
    const webhook = await insertWebhook(t, t.ada);
    await makeDeliveries(t, webhook);
    const { id } = webhook;
    const redeliveries = async () => (await t.owner.pool.query('select failed_since from redelivery')).rows;
    const suspend = async () => {
      await t.owner.pool.query(`update receiver set failing_since = now() - interval '3 days' where webhook_id = $1`, [
        id,
      ]);
      await t.owner.pool.query(`update webhook set state = 'suspended', suspended_reason = 'failures' where id = $1`, [
        id,
      ]);
    };
    await suspend();
    expect((await t.visitor.get(t.at(`/${id}/resume`))).text).toContain('Redeliver failed events');
    await t.submit(`/${id}/resume`, { withoutProbe: 'on' });
    expect(await redeliveries()).toEqual([]);
    await suspend();
    const resumed = await t.submit(`/${id}/resume`, { withoutProbe: 'on', redeliverFailed: 'on' });
    expect((await t.visitor.get(resumed.to ?? '')).text).toContain('Redelivery of failed events requested.');
    expect(await redeliveries()).toHaveLength(1);
    expect(await webhookRows(t, t.ada)).toMatchObject([{ state: 'active' }]);
  });
});

describe('a webhook that a cluster object manages', () => {
  it('is shown with the name of its object, without actions, and every action sent to it is rejected', async () => {
    const t = await setup();
    const webhook = await insertWebhook(t, t.ada);
    const { waiting, delivered } = await makeDeliveries(t, webhook);
    const at = (rest: string) => `/${webhook.id}${rest}`;
    const forms: [page: string, values: Record<string, string | string[]>][] = [
      ['/edit', { ...fields, description: 'Other' }],
      ['/rotate', { overlapHours: '24' }],
      ['/pause', {}],
      ['/delete', {}],
      [`/deliveries/${waiting}`, { how: 'retry' }],
      [`/deliveries/${delivered}`, { how: 'redeliver' }],
      [`/deliveries/${waiting}/cancel`, {}],
    ];
    const opened = await Promise.all(forms.map(([rest]) => t.visitor.get(t.at(at(rest)))));
    await t.owner.pool.query(
      `update webhook set managed_by = 'WebhookSubscription us/orders', managed_uid = gen_random_uuid() where id = $1`,
      [webhook.id],
    );
    const before = await webhookRows(t, t.ada);
    for (const [index, [rest, values]] of forms.entries()) {
      const page = opened[index];
      if (page === undefined) throw new Error('every form was opened');
      const { status, text } = await t.visitor.submit(page, t.at(at(rest)), values);
      expect([rest, status >= 400 || text.includes('notice-bad')]).toEqual([rest, true]);
      expect(text).toContain('This webhook is managed by WebhookSubscription us/orders in Kubernetes.');
    }
    expect(await webhookRows(t, t.ada)).toEqual(before);
    const { text } = await t.visitor.get(t.at(at('')));
    expect(text).toContain('Managed by <bdi>WebhookSubscription us/orders</bdi> in Kubernetes');
    for (const action of ['edit', 'rotate', 'pause', 'delete', 'test', 'redeliver', 'verify'])
      expect(text).not.toContain(`${at(`/${action}`)}"`);
  });
});

describe('deleting a webhook', () => {
  it('lists what will be cancelled, cancels exactly that, and keeps the history visible', async () => {
    const t = await setup();
    const webhook = await insertWebhook(t, t.ada);
    const { waiting, delivered } = await makeDeliveries(t, webhook);
    const requested = await t.visitor.get(t.at(`/${webhook.id}/delete`));
    expect(requested.text).toContain('1 open delivery');
    const deleted = await t.visitor.submit(requested, t.at(`/${webhook.id}/delete`));
    expect(deleted.to).toBe(t.at(''));
    expect((await t.visitor.get(t.at(''))).text).not.toContain(webhook.id);
    const page = await t.visitor.get(t.at(`/${webhook.id}`));
    expect(page.text).toContain('This webhook is deleted');
    expect(page.text).not.toContain('/rotate"');
    const states = await t.owner.pool.query(
      'select event_id, state from delivery where event_id = any ($1) order by created_at',
      [[waiting, delivered]],
    );
    expect(states.rows).toEqual([
      { event_id: delivered, state: 'delivered' },
      { event_id: waiting, state: 'cancelled' },
    ]);
    expect(await readLedger(t.owner)).toMatchObject({ cancelled: 1, difference: 0 });
    for (const rest of ['/edit', '/rotate', '/test', '/pause'])
      expect((await t.visitor.get(t.at(`/${webhook.id}${rest}`))).status).toBe(200);
    expect((await t.submit(`/${webhook.id}/edit`, fields)).text).toContain('The webhook is deleted');
  });
});

it('the verification code to copy is that of the sample receivers, which are tested with real deliveries', () => {
  const files = {
    Node: 'node/verify.mjs',
    Python: 'python/verify.py',
    Go: 'go/verify.go',
    Java: 'java/src/main/java/receiver/Verify.java',
    Rust: 'rust/src/verify.rs',
  };
  // The name of the verification code, and the call, as both have them.
  const essence = {
    Node: ["from 'standardwebhooks'", '.verify(body, '],
    Python: ['from standardwebhooks import Webhook', '.verify(body, headers)'],
    Go: ['verifier, err := standardwebhooks.NewWebhook(', 'return verifier.Verify(body, '],
    Java: ['new com.standardwebhooks.Webhook(', '.verify(new String(body, StandardCharsets.UTF_8), headers)'],
    Rust: ['standardwebhooks::Webhook::new(', '?.verify(body, headers)?'],
  };
  for (const { language, code } of verifySnippets) {
    const sample = readFileSync(new URL(`../signature-libraries/${files[language]}`, import.meta.url), 'utf8');
    for (const part of essence[language]) {
      expect([language, code.includes(part), part]).toEqual([language, true, part]);
      expect([language, sample.includes(part), part]).toEqual([language, true, part]);
    }
  }
});
