/** WebhookSubscriptions against a real API server and a real PostgreSQL. */
import { EventsV1Api, type V1Secret } from '@kubernetes/client-node';
import { describe, expect, it, vi } from 'vitest';
import { changeWebhook } from '#domain/webhooks/change.ts';
import { unsealHeaders } from '#domain/webhooks/seal.ts';
import { originAnnotation, secretLabel } from '../../apps/operator/webhook-subscription/secrets.ts';
import { testAllowList, testSealingKeys } from '../support/secrets.ts';
import { setupDeclared, waiting } from './declared.ts';
import { shareApiServer } from './share-api-server.ts';

const server = shareApiServer();

const generate = { generate: { secretName: 'orders' } };

const setup = () => setupDeclared(server());

/** Returns the URL of the only webhook, and the custom headers that are sent there. */
async function sent(t: Awaited<ReturnType<typeof setup>>) {
  const [webhook] = await t.rows<{ id: string; url: string; headers_sealed: Buffer | null }>('select * from webhook');
  const { id: webhookId = '', url, headers_sealed: sealed } = webhook ?? {};
  const headers = sealed ? unsealHeaders(sealed, { organizationId: t.orgId, webhookId }, testSealingKeys) : [];
  return { url, headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])) };
}

const decodeSecret = (secret: V1Secret): string => Buffer.from(secret.data?.secret ?? '', 'base64').toString('utf8');

describe('the schema of WebhookSubscription', () => {
  it.each<[string, Record<string, unknown>, RegExp]>([
    ['no secret', { secret: {} }, /either generate or secretRef/],
    ['two secrets', { secret: { ...generate, secretRef: { name: 'a' } } }, /either generate or secretRef/],
    [
      'a rotation of a referenced secret',
      { secret: { secretRef: { name: 'a' }, rotation: { every: '24h' } } },
      /needs generate/,
    ],
    ['a rotation every minute', { secret: { ...generate, rotation: { every: '1m', overlap: '1s' } } }, /at least 1h/],
    ['an overlap of more than a week', { secret: { ...generate, rotation: { overlap: '169h' } } }, /at most 168h/],
    [
      'an overlap longer than the period',
      { secret: { ...generate, rotation: { every: '2h', overlap: '2h' } } },
      /shorter/,
    ],
    ['an unknown event', { eventTypes: ['client.moved'] }, /Unsupported value/],
    ['no event', { eventTypes: [] }, /eventTypes/],
    ['another URL than HTTP', { url: 'ftp://a.example/' }, /url/],
    ['no post in a second', { postsPerSecond: 0 }, /postsPerSecond/],
    ['more posts in a second than the console', { postsPerSecond: 101 }, /postsPerSecond/],
  ])('rejects %s', async (_, spec, message) => {
    const t = await setup();
    await expect(t.declare('orders', spec)).rejects.toThrow(message);
  });

  it('keeps the organization and the name of the Secret, and has a name that is the value of a label', async () => {
    const t = await setup();
    await t.declare();
    await expect(t.declare('orders', { organizationId: t.namespace })).rejects.toThrow();
    await expect(t.declare('a'.repeat(64))).rejects.toThrow(/at most 63 characters/);
    await t.declare('a'.repeat(63));
    const other = '00000000-0000-7000-8000-000000000009';
    await expect(t.declare('orders', { organizationId: other })).rejects.toThrow(/organizationId cannot change/);
    await expect(t.declare('orders', { secret: { generate: { secretName: 'other' } } })).rejects.toThrow(
      /secretName cannot change/,
    );
  });
});

describe('a WebhookSubscription', () => {
  it('creates a webhook, publishes its secret, follows changes, and is deleted with it', async () => {
    const t = await setup();
    await t.start();
    await t.declare('orders', { reclaimPolicy: 'delete' });
    await t.waitUntilReady();
    const { status } = await t.read();
    const secret = await t.readSecret();
    expect(decodeSecret(secret)).toMatch(/^whsec_/);
    expect(secret.metadata?.ownerReferences).toHaveLength(1);
    expect(JSON.stringify(status)).not.toContain('whsec_');

    await t.declare('orders', { reclaimPolicy: 'delete', url: 'https://other.example.com/', suspend: true });
    await vi.waitFor(async () => expect(await t.conditions()).toContain('Delivering False Paused'), waiting);
    expect(await t.rows('select url, state from webhook where id = $1', [status?.id])).toEqual([
      { url: 'https://other.example.com/', state: 'paused' },
    ]);
    await t.remove();
    await vi.waitFor(async () => expect(await t.exists()).toBe(false), waiting);
    expect(await t.rows('select state from webhook')).toEqual([{ state: 'deleted' }]);
    expect(await t.actions()).toEqual(['create', 'change', 'pause', 'delete'].map((action) => `webhook.${action}`));
  });

  it('bounds the posts of its webhook, and removes a bound that it does not declare', async () => {
    const t = await setup();
    await t.start();
    const bound = async () => (await t.rows('select posts_per_second from webhook'))[0];
    const change = (postsPerSecond: number | null) =>
      vi.waitFor(async () => expect(await bound()).toEqual({ posts_per_second: postsPerSecond }), waiting);
    await t.declare('orders', { postsPerSecond: 5 });
    await t.waitUntilReady();
    expect(await bound()).toEqual({ posts_per_second: 5 });
    await t.declare('orders', { postsPerSecond: 100 });
    await change(100);
    await t.declare();
    await change(null);
    expect(await t.actions()).toEqual(['create', 'change', 'change'].map((action) => `webhook.${action}`));
  });

  it('gives its webhook the headers of a Secret, for the server that the Secret names and no other', async () => {
    const t = await setup();
    await t.start();
    const value = 'Bearer marker-of-the-gateway';
    const put = (headers: Record<string, string>, more: object = {}) =>
      server().apply({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'gateway', namespace: t.namespace, ...more },
        data: Object.fromEntries(
          Object.entries(headers).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
        ),
      });
    const declare = (spec: object = { headersSecretRef: { name: 'gateway' } }) => t.declare('orders', { ...spec });
    const labels = { [secretLabel]: 'orders' };
    const mark = (origin: string) => ({ labels, annotations: { [originAnnotation]: origin } });
    const shows = (condition: string) =>
      vi.waitFor(async () => expect(await t.conditions()).toContain(`Ready ${condition}`), waiting);
    const sends = (headers: object, url = 'https://hooks.example.com/in') =>
      vi.waitFor(async () => expect(await sent(t)).toEqual({ url, headers }), waiting);

    await put({ Authorization: value }, { ...mark('https://hooks.example.com'), labels: { [secretLabel]: 'other' } });
    await declare();
    await shows('False HeadersNotFound');
    await put({ Authorization: value }, { labels });
    await shows('False HeadersOfOtherServer');
    expect(await t.rows('select from webhook')).toEqual([]);
    await put({ Authorization: `${value}\n` }, mark('https://hooks.example.com'));
    await t.waitUntilReady();
    await sends({ Authorization: value });

    await put({ authorization: 'Bearer next', 'X-Tenant': 'alder' }, mark('https://hooks.example.com'));
    await sends({ authorization: 'Bearer next', 'X-Tenant': 'alder' });
    await put({ Host: 'a.example' }, mark('https://hooks.example.com'));
    await shows('False HeaderReserved');
    await put({ 'X-Tenant': 'alder' }, mark('https://hooks.example.com'));
    await sends({ 'X-Tenant': 'alder' });
    await t.waitUntilReady();

    const moved = { url: 'https://other.example.com/', headersSecretRef: { name: 'gateway' } };
    await declare(moved);
    await shows('False HeadersOfOtherServer');
    await sends({ 'X-Tenant': 'alder' });
    await put({ 'X-Tenant': 'alder' }, mark('https://other.example.com'));
    await sends({ 'X-Tenant': 'alder' }, 'https://other.example.com/');
    await declare({ url: 'https://other.example.com/' });
    await sends({}, 'https://other.example.com/');
    await t.waitUntilReady();

    const told = await t.rows('select detail from audit_entry');
    const events = await server().kubeConfig.makeApiClient(EventsV1Api).listNamespacedEvent({ namespace: t.namespace });
    expect(JSON.stringify([await t.read(), told, events])).not.toMatch(/marker|Bearer|alder/);
  });

  it('hands its webhook over to the members when it is deleted, and keeps the Secret', async () => {
    const t = await setup();
    await t.start();
    await t.declare();
    await t.waitUntilReady();
    await t.remove();
    await vi.waitFor(async () => expect(await t.exists()).toBe(false), waiting);
    expect(await t.rows('select state, managed_by from webhook')).toEqual([{ state: 'active', managed_by: null }]);
    expect((await t.readSecret()).metadata?.ownerReferences).toBeUndefined();
  });

  it('is rejected for an organization that the Region does not allow', async () => {
    const t = await setup();
    await t.start([]);
    await t.declare();
    await vi.waitFor(async () => expect(await t.conditions()).toContain('Ready False OrganizationNotAllowed'), waiting);
    expect(await t.rows('select from webhook')).toEqual([]);
  });

  it('shows the rejection of a URL that the console would reject too, and creates nothing', async () => {
    const t = await setup();
    await t.start();
    await t.declare('orders', { url: 'https://10.0.0.1/' });
    await vi.waitFor(async () => expect(await t.conditions()).toContain('Ready False UrlInvalid'), waiting);
    expect(await t.rows('select from webhook')).toEqual([]);
  });

  it('takes no Secret that is of another, and no key that another manager owns', async () => {
    const t = await setup();
    await t.start();
    const metadata = { name: 'orders', namespace: t.namespace };
    const data = { secret: Buffer.from('of another').toString('base64') };
    await server().apply({ apiVersion: 'v1', kind: 'Secret', metadata, data });
    await t.declare();
    await vi.waitFor(async () => expect(await t.conditions()).toContain('Ready False SecretNotOwned'), waiting);
    expect(decodeSecret(await t.readSecret())).toBe('of another');

    await t.core.deleteNamespacedSecret(metadata);
    await t.waitUntilReady();
    const own = decodeSecret(await t.readSecret());
    await server().apply({ apiVersion: 'v1', kind: 'Secret', metadata, data });
    await vi.waitFor(async () => expect(await t.conditions()).toContain('Ready False SecretConflict'), waiting);
    expect(own).toMatch(/^whsec_/);
    expect(decodeSecret(await t.readSecret())).toBe('of another');
    const message = 'Secret orders is not published. The field manager kubectl owns .data.secret.';
    expect((await t.read()).status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', message }));
    const { items } = await server()
      .kubeConfig.makeApiClient(EventsV1Api)
      .listNamespacedEvent({ namespace: t.namespace });
    expect(items.filter(({ reason }) => reason === 'SecretConflict').map(({ note }) => note)).toEqual([message]);
  });

  it('publishes the secret again after the Secret was deleted, and the same one', async () => {
    const t = await setup();
    await t.start();
    await t.declare();
    await t.waitUntilReady();
    const before = decodeSecret(await t.readSecret());
    await t.core.deleteNamespacedSecret({ namespace: t.namespace, name: 'orders' });
    await vi.waitFor(async () => expect(decodeSecret(await t.readSecret())).toBe(before), waiting);
    expect(await t.actions()).toEqual(['webhook.create']);
  });

  it('signs with a referenced secret, and with its successor beside it', async () => {
    const t = await setup();
    await t.start();
    const put = (letter: string) =>
      server().apply({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'own', namespace: t.namespace, labels: { [secretLabel]: 'orders' } },
        data: { secret: Buffer.from(`whsec_${letter.repeat(32)}`).toString('base64') },
      });
    await t.declare('orders', { secret: { secretRef: { name: 'own' } } });
    await vi.waitFor(async () => expect(await t.conditions()).toContain('Ready False SecretNotFound'), waiting);
    await put('A');
    await t.waitUntilReady();
    await put('B');
    await vi.waitFor(async () => expect(await t.rows('select from webhook_secret')).toHaveLength(2), waiting);
    await t.waitUntilReady();
    expect(await t.actions()).toEqual(['webhook.create', 'webhook.rotate_secret']);
  });

  it('uses no Secret that is not labelled for exactly its name, neither before nor after it has a webhook', async () => {
    const t = await setup();
    await t.start();
    const put = (label: Record<string, string>, letter: string) =>
      server().apply({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'own', namespace: t.namespace, labels: label },
        data: { secret: Buffer.from(`whsec_${letter.repeat(32)}`).toString('base64') },
      });
    const rejected = async () =>
      vi.waitFor(async () => expect(await t.conditions()).toContain('Ready False SecretNotFound'), waiting);
    const labels = [
      {},
      { [secretLabel]: '' },
      { [secretLabel]: 'orders-2' },
      { 'orgapi.dev/webhook-secret': 'orders' },
    ];
    for (const [index, label] of labels.entries()) {
      await put(label, 'A');
      await t.declare('orders', { secret: { secretRef: { name: 'own' } }, suspend: index % 2 === 1 });
      await vi.waitFor(async () => {
        const { metadata, status } = await t.read();
        expect(status?.observedGeneration).toBe(metadata.generation);
      }, waiting);
      await rejected();
    }
    expect(await t.rows('select from webhook')).toEqual([]);
    await put({ [secretLabel]: 'orders' }, 'A');
    await t.waitUntilReady();
    await put({ [secretLabel]: 'orders-2' }, 'B');
    await rejected();
    expect(await t.rows('select from webhook_secret')).toHaveLength(1);
  });

  it('cannot use the Secret that the operator published for another', async () => {
    const t = await setup();
    await t.start();
    await t.declare();
    await t.waitUntilReady();
    expect((await t.readSecret()).metadata?.labels).toEqual({ [secretLabel]: 'orders' });
    await t.declare('other', { secret: { secretRef: { name: 'orders' } } });
    await vi.waitFor(async () => expect(await t.conditions('other')).toContain('Ready False SecretNotFound'), waiting);
    expect(await t.rows('select from webhook')).toHaveLength(1);
  });
});

it('a member of the organization cannot change what is declared', async () => {
  const t = await setup();
  await t.start();
  await t.declare();
  await t.waitUntilReady();
  const member = await t.make.member({ orgId: t.orgId, permissions: ['org.webhooks.manage'] });
  const webhookId = (await t.read()).status?.id ?? '';
  const input = { organizationId: t.orgId, webhookId, by: { personId: member.userId }, url: 'https://a.example/' };
  await expect(changeWebhook(t.owner, input, testAllowList)).rejects.toThrow(
    `managed by WebhookSubscription ${t.namespace}/orders`,
  );
});
