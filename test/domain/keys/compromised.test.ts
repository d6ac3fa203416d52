/** A leaked key is found by its value under every pepper, and the result contains nothing else. */
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { findCompromisedKey } from '#domain/keys/compromised.ts';
import { generateKey, type KeySecrets } from '#domain/keys/key.ts';
import type { MadeMember } from '#test/make.ts';
import { countBy } from '#test/people.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';

async function setupSearch() {
  const { owner, make } = await setupDatabase();
  const ada = await make.member({ signedIn: true });
  const find = (text: string, by: MadeMember = ada, secrets: KeySecrets = testKeySecrets, now?: () => Date) =>
    findCompromisedKey(
      owner,
      { organizationId: ada.orgId, personId: by.userId, text, address: '203.0.113.9' },
      secrets,
      now,
    );
  return { owner, make, ada, find };
}

it('a leaked key is found in any pasted text, valid, expired or revoked, and the report is recorded', async () => {
  const { owner, make, ada, find } = await setupSearch();
  const key = await make.apiKey({ creator: ada });
  for (const text of [
    key.key,
    `  ${key.key}\n`,
    `curl -H 'Authorization: Bearer ${key.key}' https://x`,
    `${key.key} ${key.key}`,
  ])
    expect(await find(text)).toEqual({ keyId: key.id });
  await make.keyExpired(key);
  expect(await find(key.key)).toEqual({ keyId: key.id });
  await make.keyRevoked(key);
  expect(await find(key.key)).toEqual({ keyId: key.id });
  const { rows } = await owner.pool.query(
    `select person_id, host(address) as address, detail::text from audit_entry
      where action = 'key.report' and key_id = $1`,
    [key.id],
  );
  expect(rows.length).toBe(6);
  expect(rows[0]).toMatchObject({ person_id: ada.userId, address: '203.0.113.9' });
  expect(JSON.stringify(rows)).not.toContain(key.key);
});

it('a leaked key is found when it was created with an older pepper', async () => {
  const { make, ada, find } = await setupSearch();
  const key = await make.apiKey({ creator: ada });
  const newer = { version: 2, secret: randomBytes(32) };
  expect(await find(key.key, ada, { ...testKeySecrets, peppers: [newer, ...testKeySecrets.peppers] })).toEqual({
    keyId: key.id,
  });
  expect(await find(key.key, ada, { ...testKeySecrets, peppers: [newer] })).toBeNull();
});

it('a key of another organization or region, and a key that does not exist, get the same response: not found', async () => {
  const { owner, make, find } = await setupSearch();
  const theirs = await make.apiKey();
  const [tagSecret] = testKeySecrets.tagSecrets;
  expect(await find(theirs.key)).toBeNull();
  expect(await find(generateKey('us', tagSecret))).toBeNull();
  expect(await find(generateKey('ca', tagSecret))).toBeNull();
  const { rows } = await owner.pool.query(`select from audit_entry where action = 'key.report'`);
  expect(rows.length).toBe(0);
});

it('a text without a key, or with several, is rejected with instructions, and never repeated', async () => {
  const { make, ada, find } = await setupSearch();
  const [one, two] = [await make.apiKey({ creator: ada }), await make.apiKey({ creator: ada })];
  for (const text of ['', 'hello', one.key.slice(0, -1), `${one.key}x`, one.key.toUpperCase()])
    await expect(find(text)).rejects.toMatchObject({ name: 'KeyError', reason: 'no_key_in_text' });
  const both = find(`${one.key} ${two.key}`);
  await expect(both).rejects.toMatchObject({ reason: 'several_keys_in_text' });
  await expect(both).rejects.not.toThrow(one.key);
});

it('a member who may not manage keys is rejected, whatever they paste', async () => {
  const { make, ada, find } = await setupSearch();
  const bo = await make.member({ orgId: ada.orgId, permissions: ['org.read'], signedIn: true });
  const key = await make.apiKey({ creator: ada });
  for (const text of [key.key, 'hello'])
    await expect(find(text, bo)).rejects.toMatchObject({ reason: 'may_not_manage_keys' });
});

it('ten misses make one person wait until time passes, also with keys that are found among them', async () => {
  const { make, ada, find } = await setupSearch();
  const bo = await make.member({ orgId: ada.orgId, signedIn: true });
  const key = await make.apiKey({ creator: ada });
  const [tagSecret] = testKeySecrets.tagSecrets;
  const unknownKey = generateKey('us', tagSecret);
  for (let n = 0; n < 10; n += 1) {
    expect(await find(unknownKey)).toBeNull();
    if (n < 9) expect(await find(key.key)).toEqual({ keyId: key.id });
  }
  await expect(find(key.key)).rejects.toMatchObject({ name: 'TooManyAttemptsError', reason: 'too_many_attempts' });
  expect(await find(key.key, bo)).toEqual({ keyId: key.id });
  const laterMs = Date.now() + 15 * 60_000;
  const later = () => new Date(laterMs);
  countBy(later);
  expect(await find(key.key, ada, testKeySecrets, later)).toEqual({ keyId: key.id });
});
