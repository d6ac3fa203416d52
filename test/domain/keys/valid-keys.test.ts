/** An organization can have at most 25 valid keys, and create at most 60 in any hour. */
import { expect, it } from 'vitest';
import { keysCreatedPerHour, validKeysPerOrganization } from '#domain/contract/limits.ts';
import type { Database } from '#domain/db/database.ts';
import { createKey } from '#domain/keys/create.ts';
import { KeyError } from '#domain/keys/errors.ts';
import { listKeys } from '#domain/keys/list.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { rotateKey } from '#domain/keys/rotate.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import type { MadeMember } from '#test/make.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';

const day = 86_400_000;
/** Fifty transactions wait for one lock, on a machine with other work. */
const patient = { connectTimeoutMs: 60_000, statementTimeoutMs: 60_000 };

const buildInput = (creator: MadeMember, expiresAt: Date | null = null) => ({
  organizationId: creator.orgId,
  by: { personId: creator.userId },
  scopes: ['org.read'] as const,
  label: 'one of many',
  expiresAt,
});

async function validKeys(database: Database, orgId: string, now = new Date()) {
  return (await listKeys(database, orgId, now)).filter(({ state }) => state === 'valid');
}

it('50 parallel creations with the console’s rights leave exactly 25 valid keys, and the others are rejected with the reason', async () => {
  const { database, owner, make } = await setupDatabase();
  const creator = await make.member({ signedIn: true });
  const consoles = await Promise.all(
    Array.from({ length: 5 }, () =>
      openDatabase({
        server: parsePostgresUrl(database.urls.console),
        applicationName: 'test',
        poolMax: 4,
        ...patient,
      }),
    ),
  );
  try {
    const tries = await Promise.allSettled(
      Array.from({ length: 50 }, (_, n) =>
        createKey(consoles[n % consoles.length] as Database, buildInput(creator), testKeySecrets),
      ),
    );
    const made = tries.filter((attempt) => attempt.status === 'fulfilled');
    const rejected = tries.filter((attempt) => attempt.status === 'rejected').map(({ reason }) => reason as unknown);
    expect(made.length).toBe(validKeysPerOrganization);
    for (const reason of rejected) expect(reason).toMatchObject({ name: 'KeyError', reason: 'too_many_keys' });
    expect((await validKeys(owner, creator.orgId)).length).toBe(validKeysPerOrganization);
    const { rows } = await owner.pool.query(
      `select count(*)::int as entries from audit_entry where action = 'key.create'`,
    );
    expect(rows).toEqual([{ entries: validKeysPerOrganization }]); // rejected requests leave no row
  } finally {
    for (const database of consoles) await database.close();
  }
});

it('parallel creations, revocations and rotations never leave more than 25 valid keys', async () => {
  const { owner, make } = await setupDatabase();
  const creator = await make.member({ signedIn: true });
  const { orgId, userId } = creator;
  const db = owner;
  const first = await Promise.all(Array.from({ length: 24 }, () => createKey(db, buildInput(creator), testKeySecrets)));
  const counts: number[] = [];
  const by = { personId: userId };
  const ignoreRejection = (error: unknown) => expect(error).toBeInstanceOf(KeyError);
  await Promise.all(
    first.map(async ({ id }, n) => {
      const common = { organizationId: orgId, keyId: id };
      if (n % 3 === 0) await revokeKey(db, { ...common, by });
      else if (n % 3 === 1) {
        const rotation = { ...common, by, overlapSeconds: n % 2 === 0 ? 0 : 3_600, expiresAt: null };
        await rotateKey(db, rotation, testKeySecrets);
      }
      await createKey(db, buildInput(creator), testKeySecrets).catch(ignoreRejection);
      counts.push((await validKeys(owner, orgId)).length);
    }),
  );
  expect(Math.max(...counts)).toBeLessThanOrEqual(validKeysPerOrganization);
  const { rows } = await owner.pool.query<{ number: number }>(
    'select number from api_key where number is not null order by number',
  );
  expect(new Set(rows.map(({ number }) => number)).size).toBe(rows.length);
});

it('the valid keys of one organization do not count for another', async () => {
  const { owner, make } = await setupDatabase();
  const [one, two] = [await make.member({ signedIn: true }), await make.member({ signedIn: true })];
  for (let n = 0; n < validKeysPerOrganization; n += 1) await createKey(owner, buildInput(one), testKeySecrets);
  await createKey(owner, buildInput(two), testKeySecrets);
  expect((await validKeys(owner, two.orgId)).length).toBe(1);
});

it('a revoked or expired key frees its number', async () => {
  const { owner, make } = await setupDatabase();
  const creator = await make.member({ signedIn: true });
  const db = owner;
  const start = new Date();
  const made = [];
  for (let n = 0; n < validKeysPerOrganization; n += 1) {
    const expiresAt = n === 7 ? new Date(start.getTime() + day) : null;
    made.push(await createKey(db, buildInput(creator, expiresAt), testKeySecrets, () => start));
  }
  const justBefore = () => new Date(start.getTime() + day - 1);
  const atExpiry = () => new Date(start.getTime() + day);
  await expect(createKey(db, buildInput(creator), testKeySecrets, justBefore)).rejects.toThrow(/25 active keys/);
  await createKey(db, buildInput(creator), testKeySecrets, atExpiry);
  await expect(createKey(db, buildInput(creator), testKeySecrets, atExpiry)).rejects.toThrow(/25 active keys/);
  await revokeKey(db, { organizationId: creator.orgId, keyId: made[3]?.id ?? '', by: 'orgctl' }, atExpiry);
  await createKey(db, buildInput(creator), testKeySecrets, atExpiry);
  expect((await validKeys(owner, creator.orgId, atExpiry())).length).toBe(validKeysPerOrganization);
});

it('parallel rotations and creations make exactly 60 keys in an hour, those of an operator apart', async () => {
  const { owner, make } = await setupDatabase();
  const creator = await make.member({ signedIn: true });
  const { orgId: organizationId, userId: creatorId } = creator;
  const by = { personId: creatorId };
  const start = Date.now();
  const at = (ms: number) => () => new Date(start + ms);
  const rotateFrom = async (key: { id: string }, now: () => Date): Promise<string> => {
    const rotation = { organizationId, by, overlapSeconds: 0, expiresAt: null };
    for (let last = key; ; ) {
      const made = rotateKey(owner, { ...rotation, keyId: last.id }, testKeySecrets, now);
      const rejected = await made.then(
        (next) => {
          last = next;
          return null;
        },
        (error: KeyError) => error,
      );
      if (rejected !== null) return `${rejected.reason}: ${rejected.message}`;
    }
  };
  const first = await Promise.all(
    Array.from({ length: 4 }, () => createKey(owner, buildInput(creator), testKeySecrets, at(0))),
  );
  const ends = await Promise.all(first.map((key) => rotateFrom(key, at(600_000))));
  expect(new Set(ends)).toEqual(
    new Set([
      'too_many_new_keys: The organization has created 60 keys within an hour, which is the maximum. Try again in 50 minutes.',
    ]),
  );
  const count = async () => (await listKeys(owner, organizationId, new Date(start))).length;
  expect(await count()).toBe(keysCreatedPerHour);
  const rejected = createKey(owner, buildInput(creator), testKeySecrets, at(3_599_000));
  await expect(rejected).rejects.toThrow('Try again in a minute.');
  await createKey(owner, { ...buildInput(creator), by: 'orgctl', creatorId }, testKeySecrets, at(3_599_000));
  // The first four are an hour old, and three of them leave room: the operator's counts.
  for (let n = 0; n < 3; n += 1) await createKey(owner, buildInput(creator), testKeySecrets, at(3_600_000));
  await expect(createKey(owner, buildInput(creator), testKeySecrets, at(3_600_000))).rejects.toThrow('10 minutes');
  const other = await make.member({ signedIn: true });
  await createKey(owner, buildInput(other), testKeySecrets, at(3_599_000));
});
