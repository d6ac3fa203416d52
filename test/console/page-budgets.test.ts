/** Pages that one session opens many times at once, and what another organization notices. */
import { expect, it } from 'vitest';
import { sumCalls } from '#test/sum-calls.ts';
import { setupConsole } from './setup.ts';

it.each(['/usage', '', '/activity', '/deliveries', '/keys'])(
  '30 requests of one session for %j take turns with another organization, whose page is answered before most of them',
  async (page) => {
    const t = await setupConsole();
    const [ada, bo] = [await t.enrol(), await t.enrol()];
    const key = await t.make.apiKey({ maker: { orgId: ada.orgId, userId: ada.personId, roleId: null } });
    await t.owner.pool.query(
      `insert into activity (organization_id, key_id, at, action, status, address)
     select $1, $2, now() - n * interval '2 seconds', 'api.getOrg', 200, '203.0.113.9' from generate_series(1, 5000) n`,
      [ada.orgId, key.id],
    );
    await sumCalls(t.owner);
    const [one, other] = [t.http(ada), t.http(bo)];
    let answered = 0;
    const flood = Array.from({ length: 30 }, async () => {
      const { status } = await one.get(`/o/${ada.orgId}${page}`);
      answered += 1;
      return status;
    });
    expect((await other.get(`/o/${bo.orgId}/members`)).status).toBe(200);
    expect(answered).toBeLessThan(20);
    for (const status of await Promise.all(flood)) expect([200, 429]).toContain(status);
  },
);
