/** Only a fingerprint of a key is stored. */
import { Redis } from 'ioredis';
import { expect, inject, it } from 'vitest';
import { createKey } from '#domain/keys/create.ts';
import { rotateKey } from '#domain/keys/rotate.ts';
import { testKeySecrets, testKeySettings } from '#test/secrets.ts';
import { setup, startTestApi } from '#test/setup.ts';
import { dumpTables, listTraces } from '#test/traces.ts';

/** Parts that would reveal a key: 12 characters from the middle of its random part. */
const listKeyTraces = (key: string) => listTraces(key.slice(15, 27));

it('a key is in no table, log line, error or Redis key, in plain, hex or base64', async () => {
  const installation = await setup({ LOG_LEVEL: 'trace' });
  const { api, make, owner, logLines } = installation;
  const creator = await make.member({ signedIn: true });
  const input = {
    organizationId: creator.orgId,
    by: { personId: creator.userId },
    scopes: ['org.read'] as const,
    label: 'x',
  };
  const first = await createKey(owner, { ...input, expiresAt: null }, testKeySecrets);
  const rotation = {
    organizationId: creator.orgId,
    keyId: first.id,
    by: { personId: creator.userId },
    overlapSeconds: 60,
  };
  const second = await rotateKey(owner, { ...rotation, expiresAt: null }, testKeySecrets);
  const keys = [first.key, second.key];
  const bodies: string[] = [];
  for (const key of keys) {
    const sent = [key, `${key}x`, key.replace('us', 'ca'), key.slice(0, -2)];
    for (const bearer of sent) {
      for (const path of [`/v1/orgs/${creator.orgId}`, `/v1/orgs/${creator.orgId}/seats`, '/v1/orgs/x', '/nowhere'])
        for (const method of ['GET', 'POST']) bodies.push(await (await api.get(path, { key: bearer, method })).text());
    }
    for (let n = 0; n < 130; n += 1) bodies.push(await (await api.get('/v1/orgs/x', { key })).text());
  }
  await owner.pool.query('revoke execute on function api.record_key_uses from org_api_read');
  bodies.push(await (await api.get(`/v1/orgs/${creator.orgId}`, { key: second.key })).text());
  await api.stop();

  const redis = new Redis(inject('redisUrl'));
  const redisNames = (await redis.keys('*')).join('\n');
  redis.disconnect();
  const places = {
    database: [...(await dumpTables(installation)).values()].join('\n'),
    logs: logLines.join(''),
    bodies: bodies.join('\n'),
    redisNames,
  };
  expect(places.database).toContain(first.hint);
  expect(places.logs.length).toBeGreaterThan(1_000);
  for (const [place, text] of Object.entries(places)) {
    for (const trace of keys.flatMap(listKeyTraces))
      expect(text.toLowerCase().includes(trace.toLowerCase()), `a trace of a key in ${place}`).toBe(false);
  }
});

it('a key works under an old pepper only while that is listed', async () => {
  const { database, owner, make } = await setup();
  const creator = await make.member({ signedIn: true });
  const old = await make.apiKey({ creator });
  const newPepper = { version: 2, secret: Buffer.from('another pepper, of 32 bytes also') };
  const oldPepper = testKeySecrets.peppers[0];
  const both = { ...testKeySecrets, peppers: [newPepper, oldPepper] as const };
  const input = {
    organizationId: creator.orgId,
    by: { personId: creator.userId },
    scopes: ['org.read'] as const,
    label: '',
  };
  const fresh = await createKey(owner, { ...input, expiresAt: null }, both);
  const { rows } = await owner.pool.query('select pepper_version from api_key order by created_at');
  expect(rows).toEqual([{ pepper_version: 1 }, { pepper_version: 2 }]);

  const setting = `2:${newPepper.secret.toString('base64')}`;
  const during = await startTestApi(database, { KEY_PEPPERS: `${setting},${testKeySettings.KEY_PEPPERS}` });
  const after = await startTestApi(database, { KEY_PEPPERS: setting });
  const statuses = async (api: typeof during) =>
    Promise.all([old.key, fresh.key].map(async (key) => (await api.get(`/v1/orgs/${creator.orgId}`, { key })).status));
  expect(await statuses(during)).toEqual([200, 200]);
  expect(await statuses(after)).toEqual([401, 200]);
});
