/** A committed change that removes a key's right applies to every read that starts afterwards. */
import { setTimeout as wait } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { ErrorCode } from '#domain/contract/errors.ts';
import { rotateKey } from '#domain/keys/rotate.ts';
import type { MadeKey, MadeMember } from '#test/make.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { shareApi, startTestApi, type TestApi, type TestInstallation } from '#test/setup.ts';

const shared = shareApi();

/**
 * Concurrent reads of a key, and how many it makes before and after the change: within the key's
 * limit of 120.
 */
const readers = 4;
const readsBefore = 16;
const readsAfter = 24;

interface Case {
  creator: MadeMember;
  made: MadeKey;
  installation: TestInstallation;
}
type Change = (c: Case) => Promise<unknown>;

const sql =
  (text: string, value: (c: Case) => string | null): Change =>
  (c) =>
    c.installation.owner.pool.query(text, [value(c)]);
const person = (c: Case) => c.creator.userId;

const changes: Record<string, [change: Change, code: ErrorCode]> = {
  'a revocation': [(c) => c.installation.make.keyRevoked(c.made), 'invalid_api_key'],
  'a rotation without overlap': [
    (c) =>
      rotateKey(
        c.installation.owner,
        {
          organizationId: c.made.orgId,
          keyId: c.made.id,
          by: { personId: c.creator.userId },
          overlapSeconds: 0,
          expiresAt: null,
        },
        testKeySecrets,
      ),
    'invalid_api_key',
  ],
  'an expiry': [sql('update api_key set expires_at = now() where id = $1', (c) => c.made.id), 'invalid_api_key'],
  'a scope taken from the key': [
    sql(`update api_key set scopes = array['org.roles.read'] where id = $1`, (c) => c.made.id),
    'insufficient_scope',
  ],
  'a permission taken from the role': [
    (c) => c.installation.make.permissionLost(c.creator, 'org.clients.read'),
    'forbidden',
  ],
  'a role taken from the creator': [sql('delete from membership_role where person_id = $1', person), 'forbidden'],
  'a suspension of the creator': [
    sql(`update membership set status = 'suspended' where person_id = $1`, person),
    'forbidden',
  ],
  'the creator’s leaving': [sql(`update membership set status = 'left' where person_id = $1`, person), 'forbidden'],
  'the removal of the creator’s row': [sql('delete from membership where person_id = $1', person), 'forbidden'],
};

/**
 * Reads with one key from all APIs while the change runs. Returns when it had committed, and the
 * response of each read.
 */
async function readBeside(c: Case, apis: TestApi[], change: Change) {
  const reads: { startedAt: number; status: number; error: string | undefined }[] = [];
  let committedAt = Number.POSITIVE_INFINITY;
  let began = 0;
  let left = Number.POSITIVE_INFINITY;
  let changing: Promise<void> | undefined;

  async function read(api: TestApi): Promise<void> {
    while (left > 0) {
      left -= 1;
      began += 1;
      if (began === readsBefore) {
        changing = change(c).then(() => {
          committedAt = performance.now();
          left = readsAfter;
        });
      }
      // Reads continue while the change runs, up to a limit.
      if (began > 90 && committedAt === Number.POSITIVE_INFINITY) await changing;
      const startedAt = performance.now();
      const response = await api.get(`/v1/orgs/${c.creator.orgId}/clients`, { key: c.made.key });
      const { error } = (await response.json()) as { error?: string };
      reads.push({ startedAt, status: response.status, error });
    }
  }
  await Promise.all(Array.from({ length: readers }, (_, n) => read(apis[n % apis.length] as TestApi)));
  return { reads, committedAt };
}

it.each(Object.entries(changes))('%s is seen by every read that begins after it', async (_name, [change, code]) => {
  const installation = shared();
  const apis = [installation.api, await startTestApi(installation.database)];
  const cases = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const creator = await installation.make.member({
        permissions: ['org.clients.read', 'org.roles.read', 'org.keys.manage'],
        signedIn: true,
      });
      const made = await installation.make.apiKey({ creator, scopes: ['org.clients.read'] });
      return { creator, made, installation };
    }),
  );

  const results = await Promise.all(cases.map((c) => readBeside(c, apis, change)));

  for (const { reads, committedAt } of results) {
    const after = reads.filter((read) => read.startedAt > committedAt);
    expect(after.length).toBeGreaterThanOrEqual(readsAfter - readers);
    expect(new Set(after.map((read) => `${read.status} ${read.error}`))).toEqual(
      new Set([code === 'invalid_api_key' ? '401 invalid_api_key' : `403 ${code}`]),
    );
    expect(reads.filter((read) => read.startedAt < committedAt && read.status === 200).length).toBeGreaterThan(0);
    expect(reads.map((read) => read.status)).not.toContain(429);
  }
});

it('an expiry is seen by every read that begins after its time', async () => {
  const { api, make } = shared();
  const creator = await make.member();
  const expiresAt = new Date(Date.now() + 2_000);
  const { key } = await make.apiKey({ creator, expiresAt });
  const reads: { startedAt: number; status: number }[] = [];
  while (reads.filter((read) => read.startedAt > expiresAt.getTime()).length < 20) {
    const startedAt = Date.now();
    const { status } = await api.get(`/v1/orgs/${creator.orgId}`, { key });
    reads.push({ startedAt, status });
    if (startedAt < expiresAt.getTime()) await wait(20);
  }
  expect(reads[0]?.status).toBe(200);
  for (const read of reads) if (read.startedAt >= expiresAt.getTime()) expect(read.status).toBe(401);
});

it('a restored permission or membership is seen by the next read', async () => {
  const { api, make, owner } = shared();
  const creator = await make.member({ permissions: ['org.read'] });
  const { key } = await make.apiKey({ creator, scopes: ['org.read'] });
  const readStatus = async () => (await api.get(`/v1/orgs/${creator.orgId}`, { key })).status;
  for (let turn = 0; turn < 10; turn += 1) {
    await owner.pool.query(`update membership set status = 'suspended' where person_id = $1`, [creator.userId]);
    expect(await readStatus()).toBe(403);
    await owner.pool.query(`update membership set status = 'active' where person_id = $1`, [creator.userId]);
    expect(await readStatus()).toBe(200);
  }
});
