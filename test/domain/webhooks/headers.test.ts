/** Custom headers of webhooks: their rules, how they are stored, and what the audit log has of them. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { HeaderChange } from '#domain/webhooks/headers.ts';
import { headersMaxCharacters, headersPerWebhook, headerValueMaxCharacters } from '#domain/webhooks/limits.ts';
import { unsealHeaders } from '#domain/webhooks/seal.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { setupWebhooks } from './subscriptions.ts';

const token = { name: 'Authorization', value: 'Bearer marker-of-the-gateway' };
const removed = (name: string): HeaderChange => ({ name, value: null });

async function setup() {
  const t = await setupWebhooks();
  const { id } = await t.create();
  const setHeaders = (changes: readonly HeaderChange[], more: { url?: string } = {}, sealingKeys = testSealingKeys) =>
    t.change(id, { headers: { changes, sealingKeys }, ...more });
  return {
    ...t,
    id,
    setHeaders,
    names: async () => (await t.show(id)).headerNames,
    /** The headers as a worker reads them. */
    async sent() {
      const [row] = await t.rows<{ headers_sealed: Buffer | null }>('select headers_sealed from webhook');
      const owner = { organizationId: t.organizationId, webhookId: id };
      return row?.headers_sealed ? unsealHeaders(row.headers_sealed, owner, testSealingKeys) : [];
    },
  };
}

describe('custom headers of a webhook', () => {
  it('are set, replaced whatever their case, and removed, one by one; the log has names, old and new', async () => {
    const t = await setup();
    await t.setHeaders([{ name: 'X-Tenant', value: 'alder' }, token]);
    expect(await t.sent()).toEqual([token, { name: 'X-Tenant', value: 'alder' }]);
    await t.setHeaders([{ name: 'authorization', value: 'Bearer another' }]);
    await t.setHeaders([removed('x-tenant')]);
    expect(await t.sent()).toEqual([{ name: 'authorization', value: 'Bearer another' }]);
    await t.setHeaders([removed('Authorization')]);
    expect([await t.sent(), await t.names()]).toEqual([[], []]);
    const changed = { webhookId: t.id, changed: ['headers'] };
    expect((await t.entries()).slice(1).map(({ detail }) => detail)).toEqual([
      {
        ...changed,
        headers: { from: [], to: ['Authorization', 'X-Tenant'] },
        headersSet: ['X-Tenant', 'Authorization'],
      },
      {
        ...changed,
        headers: { from: ['Authorization', 'X-Tenant'], to: ['authorization', 'X-Tenant'] },
        headersSet: ['authorization'],
      },
      { ...changed, headers: { from: ['authorization', 'X-Tenant'], to: ['authorization'] }, headersSet: [] },
      { ...changed, headers: { from: ['authorization'], to: [] }, headersSet: [] },
    ]);
  });

  it('can be given with a new webhook, and are deleted with it', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create({ headers: [token] });
    expect((await t.show(id)).headerNames).toEqual(['Authorization']);
    expect((await t.entries())[0]?.detail).toMatchObject({ headers: ['Authorization'] });
    await t.remove(id);
    expect(await t.rows('select header_names, headers_sealed from webhook')).toEqual([
      { header_names: [], headers_sealed: null },
    ]);
  });

  it('are stored sealed: no column and no entry has a value, or a part of it', async () => {
    const t = await setup();
    await t.setHeaders([token]);
    const stored = await t.rows<{ text: string }>(
      `select to_jsonb(w)::text || encode(w.headers_sealed, 'escape') as text from webhook w
       union all select to_jsonb(a)::text from audit_entry a`,
    );
    expect(stored).toHaveLength(3);
    for (const { text } of stored) expect(text).not.toMatch(/marker|gateway|Bearer/);
    expect(JSON.stringify(await t.show(t.id))).not.toMatch(/marker|gateway|Bearer/);
  });

  it.each([
    'Content-Type',
    'content-length',
    'Content-Anything',
    'HOST',
    'Connection',
    'Keep-Alive',
    'Transfer-Encoding',
    'TE',
    'Trailer',
    'Upgrade',
    'HTTP2-Settings',
    'Expect',
    'User-Agent',
    'Accept',
    'Accept-Encoding',
    'Service-Signature',
    'webhook-id',
    'Webhook-Of-Tomorrow',
    'Proxy-Authorization',
    'Proxy-Connection',
    'Forwarded',
    'X-Forwarded-For',
    'Via',
  ])('cannot be %s, which the service sets, frames the message, or is of the connection', async (name) => {
    const t = await setup();
    await expect(t.setHeaders([{ name, value: 'x' }])).rejects.toMatchObject({
      reason: 'header_reserved',
      message: expect.stringContaining(name),
    });
  });

  it('are rejected with a name that is no token, or a value that is not visible ASCII, without quoting either', async () => {
    const t = await setup();
    for (const name of ['', 'X Key', 'X-Key:', 'X-Kéy', 'X-Key\r\nX-Other', 'X\u0000', '(x)', 'x'.repeat(101)]) {
      const rejection = t.setHeaders([{ name, value: 'marker' }]);
      await expect(rejection).rejects.toMatchObject({ reason: 'header_name_invalid' });
      if (name !== '') await expect(rejection).rejects.not.toMatchObject({ message: expect.stringContaining(name) });
    }
    const breaks = ['a\rb', 'a\nb', 'a\r\nX-Other: b', 'a\n'];
    const wrong = ['', ' ', ' a', 'a ', 'a\t', 'a\u0000b', 'a\u007fb', 'é', '\u202e'];
    for (const value of [...wrong, ...breaks, 'marker'.repeat(200), 'x'.repeat(headerValueMaxCharacters + 1)])
      await expect(t.setHeaders([{ name: 'X-Key', value }])).rejects.toMatchObject({
        reason: 'header_value_invalid',
        message: expect.not.stringMatching(/marker|é/),
      });
    const right = ['!', '~', 'a b\tc', '"quoted\\" {}', 'x'.repeat(headerValueMaxCharacters)];
    for (const value of right) await t.setHeaders([{ name: 'X-Key', value }]);
    const names = ['__proto__', '1', "!#$%&'*+-.^_`|~", 'x'.repeat(100)];
    for (const name of names) await t.setHeaders([{ name, value: 'x' }]);
    expect(await t.names()).toHaveLength(5);
    expect((await t.sent()).map(({ name }) => name)).toEqual(await t.names());
  });

  it('are at most 10, and bounded together; each is named once in a change, and one to remove exists', async () => {
    const t = await setup();
    const many = Array.from({ length: headersPerWebhook }, (_, index) => ({ name: `X-${index}`, value: 'x' }));
    await t.setHeaders(many);
    const eleventh = { name: 'X-Eleventh', value: 'x' };
    await expect(t.setHeaders([eleventh])).rejects.toMatchObject({ reason: 'too_many_headers' });
    await t.setHeaders([removed('X-0'), eleventh]);
    const long = many.slice(1).map(({ name }) => ({ name, value: 'x'.repeat(headersMaxCharacters / 9) }));
    await expect(t.setHeaders(long)).rejects.toMatchObject({ reason: 'headers_too_long' });
    const twice = [
      { name: 'X-Key', value: 'a' },
      { name: 'x-kEY', value: 'b' },
    ];
    await expect(t.setHeaders(twice)).rejects.toMatchObject({ reason: 'header_named_twice' });
    await expect(t.setHeaders([removed('X-0')])).rejects.toMatchObject({ reason: 'no_such_header' });
    expect(await t.names()).toHaveLength(headersPerWebhook);
  });

  it('that two people set at once are both there', async () => {
    const t = await setup();
    await Promise.all(['X-A', 'X-B', 'X-C'].map((name) => t.setHeaders([{ name, value: 'x' }])));
    expect(await t.names()).toEqual(['X-A', 'X-B', 'X-C']);
  });

  it('do not follow a URL to another server, until they are removed or entered again', async () => {
    const t = await setup();
    await t.setHeaders([token, { name: 'X-Tenant', value: 'alder' }]);
    await t.change(t.id, { url: 'https://HOOKS.example.com:443/other?path=1' });
    for (const url of [
      'https://hooks.example.org/in',
      'https://hooks.example.com:8443/in',
      'https://hooks.example.com.evil.example/in',
    ])
      await expect(t.change(t.id, { url })).rejects.toMatchObject({
        reason: 'headers_would_move',
        message: expect.stringContaining('Authorization, X-Tenant'),
      });
    const url = 'https://hooks.example.org/in';
    await expect(t.setHeaders([token], { url })).rejects.toMatchObject({
      reason: 'headers_would_move',
      message: expect.stringMatching(/values of X-Tenant\./),
    });
    await t.setHeaders([token, removed('X-Tenant')], { url });
    expect(await t.show(t.id)).toMatchObject({ url, headerNames: ['Authorization'] });
  });

  it('whose key is gone can be removed and replaced, all of them', async () => {
    const t = await setup();
    const other = [{ version: 9, secret: randomBytes(32) }] as const;
    await t.setHeaders([token]);
    await expect(t.setHeaders([{ name: 'X-Key', value: 'x' }], {}, other)).rejects.toThrow(
      'sealed with key version 1, which is not configured',
    );
    await t.setHeaders([{ name: 'Authorization', value: 'new' }], {}, other);
    await t.setHeaders([removed('Authorization')], {}, testSealingKeys);
    expect(await t.names()).toEqual([]);
  });
});
