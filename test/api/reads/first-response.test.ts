import { describe, expect, it } from 'vitest';
import { setup } from '#test/setup.ts';

describe('GET /v1/orgs/{orgId}/seats', () => {
  it('answers 403 forbidden after the key’s creator has lost the permission', async () => {
    const { api, make } = await setup();
    const creator = await make.member({ permissions: ['org.billing.manage'] });
    const { key } = await make.apiKey({ creator, scopes: ['org.billing.manage'] });
    expect((await api.get(`/v1/orgs/${creator.orgId}/seats`, { key })).status).toBe(200);

    await make.permissionLost(creator, 'org.billing.manage');

    const response = await api.get(`/v1/orgs/${creator.orgId}/seats`, { key });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ error: 'forbidden' });
  });
});
