/** API keys that are sent to the console. */
import { expect, it } from 'vitest';
import { generateKey } from '#domain/keys/key.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupConsole } from './setup.ts';

it('1,500 requests with a revoked key write one audit entry per key and minute, and a stop writes the rest', async () => {
  const t = await setupConsole({ TRUSTED_PROXIES: '127.0.0.1' });
  const creator = await t.make.member();
  const [revoked, valid] = [await t.make.apiKey({ creator }), await t.make.apiKey({ creator })];
  await t.owner.pool.query('update api_key set revoked_at = now(), number = null where id = $1', [revoked.id]);
  const send = async (key: string, address: string) => {
    const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': address };
    expect((await fetch(`${t.origin}/nowhere`, { headers })).status).toBe(403);
  };
  const listLines = async () => {
    const { rows } = await t.owner.pool.query(
      `select key_id as "keyId", extract(epoch from at)::int as second, organization_id as "orgId",
        person_id as "personId", action, status, code, count, host(address) as address
      from audit_entry where status is not null order by at`,
    );
    return rows;
  };
  const countRejected = async (keyId: string) =>
    (await listLines()).filter((line) => line.keyId === keyId).reduce((sum, { count }) => sum + count, 0);

  for (let n = 0; n < 1_500; n += 50)
    await Promise.all(Array.from({ length: 50 }, (_, m) => send(revoked.key, `203.0.113.${m}`)));
  await expect.poll(() => countRejected(revoked.id), { timeout: 10_000 }).toBe(1_500);
  await send(valid.key, '198.51.100.7');
  await send(generateKey('us', testKeySecrets.tagSecrets[0]), '198.51.100.7'); // valid, and of no organization
  await t.console.stop();

  expect(await countRejected(valid.id)).toBe(1);
  const lines = await listLines();
  const minutes = lines.map(({ keyId, second }) => `${keyId} ${second}`);
  expect(new Set(minutes).size).toBe(lines.length);
  expect(lines.length).toBeLessThanOrEqual(4); // two when the minute changed meanwhile
  for (const line of lines) {
    expect(line.second % 60).toBe(0);
    expect(line).toMatchObject({
      orgId: creator.orgId,
      personId: creator.userId,
      action: 'api.console',
      status: 403,
      code: 'api_key_not_accepted',
      address: expect.stringMatching(/^(203\.0\.113|198\.51\.100)\./),
    });
  }
});
