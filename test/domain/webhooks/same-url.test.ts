import { describe, expect, it } from 'vitest';
import { setupWebhooks } from './subscriptions.ts';

const url = 'https://hooks.example.com/in';
const inUse = { reason: 'url_in_use', message: expect.stringContaining('get each event twice') };

describe('a second webhook with a URL', () => {
  it('is rejected unless it is asked for, however the URL is written', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create({ url });
    for (const same of [url, 'HTTPS://Hooks.Example.COM:443/in', 'https://hooks.example.com/a/../in'])
      await expect(t.create({ url: same, allowSameUrl: false })).rejects.toMatchObject(inUse);
    await t.create({ url: `${url}?tenant=2`, allowSameUrl: false });
    await t.create({ url, allowSameUrl: true });
    await expect(t.change(id, { url })).rejects.toMatchObject(inUse);
    await t.change(id, { url, allowSameUrl: true });
  });

  it('is rejected for a change of the URL too, and not once the other is deleted or of another organization', async () => {
    const t = await setupWebhooks();
    const first = await t.create({ url, allowSameUrl: false });
    const second = await t.create({ url: 'https://other.example.com/', allowSameUrl: false });
    await t.change(second.id, { url: 'https://other.example.com/' }); // its own
    await expect(t.change(second.id, { url })).rejects.toMatchObject(inUse);
    await t.remove(first.id);
    await t.change(second.id, { url });
    const stranger = await t.make.member({ permissions: ['org.webhooks.manage'], signedIn: true });
    const by = { personId: stranger.userId };
    await t.create({ organizationId: stranger.orgId, by, url, allowSameUrl: false });
  });

  it('is rejected for one of two that are created at once', async () => {
    const t = await setupWebhooks();
    const both = await Promise.allSettled([1, 2].map(() => t.create({ url, allowSameUrl: false })));
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });
});

describe('the order of a webhook’s events', () => {
  it('is kept for new webhooks, can be turned off and on, and is recorded', async () => {
    const t = await setupWebhooks();
    const { id } = await t.create();
    expect(await t.show(id)).toMatchObject({ ordered: true });
    await t.change(id, { ordered: false });
    expect(await t.show(id)).toMatchObject({ ordered: false });
    const details = await t.rows(`select detail from audit_entry where action = 'webhook.change'`);
    expect(details).toMatchObject([{ detail: { changed: ['ordered'], ordered: false } }]);
    const other = await t.create({ ordered: false });
    expect(await t.show(other.id)).toMatchObject({ ordered: false });
  });
});
