/**
 * A pod uses bounded memory for responses: reads wait for it, and it is freed however they end.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { constants, patient, type TestSettings } from '#test/constants.ts';
import type { MadeKey } from '#test/make.ts';
import { setup, setupDatabase, shareInstallation, type TestInstallation } from '#test/setup.ts';
import { untilFigures } from './figures.ts';
import { giveGrants, openReader, type Reader } from './readers.ts';

/** A pod with enough memory for one roster of a key at a time. */
const tight: TestSettings = { RESPONSE_MEMORY_MIB: '16', [constants]: patient };
/**
 * A roster of 4 MB, and one that is larger than the system's buffers (4 MB on loopback) for a
 * client that does not read.
 */
const grants = { many: 20_000, more: 30_000 };

vi.setConfig({ testTimeout: 120_000 });

interface Scene extends TestInstallation {
  key: MadeKey;
  path: string;
}

/** A database that tests copy, whose organization has a roster of 6 MB, with a key that reads it. */
const prepared = shareInstallation(async (onFinished) => {
  const { database, owner, make } = await setupDatabase(onFinished);
  const creator = await make.member();
  await giveGrants(owner, creator, grants.more);
  const key = await make.apiKey({ creator });
  await owner.close(); // nothing may be connected to a database that is copied
  return { template: database.name, creator, key, path: `/v1/orgs/${creator.orgId}/clients` };
});

/** Starts an API on a copy, and reads the roster once, so that its length is known. */
async function setupRoster(settings: TestSettings = tight): Promise<Scene> {
  const { template, key, path } = prepared();
  const installation = await setup(settings, onTestFinished, template);
  const first = await installation.api.get(path, { key: key.key });
  expect((await first.arrayBuffer()).byteLength).toBeGreaterThan(6_000_000);
  return { ...installation, key, path };
}

/**
 * Starts a client that receives the beginning of the roster and stops reading: the key's memory
 * stays in use.
 */
async function holdMemory({ api, path, key, owner }: Scene): Promise<Reader> {
  const reader = await openReader(api.url, { path, key: key.key, bytesPerSecond: 0 });
  const countUses = async () =>
    (await owner.pool.query(`select from audit_entry where action = 'api.getFirmRoster'`)).rowCount;
  await expect.poll(countUses, { timeout: 30_000 }).toBe(2);
  await untilFigures(
    api.metricsUrl,
    ({ heldBytes, waiting }) => heldBytes > 500_000 && heldBytes < 6_000_000 && waiting === 0,
  );
  return reader;
}

const isFree = ({ heldBytes, waiting }: { heldBytes: number; waiting: number }) => heldBytes === 0 && waiting === 0;

it('the key is checked after the wait for memory, so a revocation during the wait is seen', async () => {
  const scene = await setupRoster();
  const holder = await holdMemory(scene);
  const response = scene.api.get(scene.path, { key: scene.key.key });
  await untilFigures(scene.api.metricsUrl, ({ waiting }) => waiting === 1);

  await scene.make.keyRevoked(scene.key);
  holder.socket.destroy();

  expect((await response).status).toBe(401);
  const { waits } = await untilFigures(scene.api.metricsUrl, isFree);
  expect(waits).toMatchObject({ admitted: 1 });
});

it('a wait ends when its client disconnects, and no read runs for it', async () => {
  const scene = await setupRoster();
  const holder = await holdMemory(scene);
  const waiter = await openReader(scene.api.url, { path: scene.path, key: scene.key.key });
  await untilFigures(scene.api.metricsUrl, ({ waiting }) => waiting === 1);

  waiter.socket.destroy();
  const { waits } = await untilFigures(scene.api.metricsUrl, ({ waiting }) => waiting === 0);
  expect(waits).toEqual({ gone: 1 });
  holder.socket.destroy();
  await untilFigures(scene.api.metricsUrl, isFree);
  const { rows } = await scene.owner.pool.query('select count(*)::int as count from audit_entry where action = $1', [
    'api.getFirmRoster',
  ]);
  expect(rows).toEqual([{ count: 2 }]);
});

it('a wait ends with 503 and Retry-After when no memory becomes free, while other keys are answered', async () => {
  // Long enough for the reads of a busy machine before it ends.
  const scene = await setupRoster({ ...tight, [constants]: { ...patient, readWaitMs: 10_000 } });
  await holdMemory(scene);
  const other = await scene.make.apiKey();
  const response = scene.api.get(scene.path, { key: scene.key.key });
  await untilFigures(scene.api.metricsUrl, ({ waiting }) => waiting === 1);
  expect((await scene.api.get(`/v1/orgs/${other.orgId}/clients`, { key: other.key })).status).toBe(200);
  expect((await scene.api.get(`/v1/orgs/${scene.key.orgId}`, { key: scene.key.key })).status).toBe(200);

  const rejected = await response;
  expect(rejected.status).toBe(503);
  expect(rejected.headers.get('retry-after')).toBe('5');
  expect(await rejected.json()).toMatchObject({ error: 'unavailable' });
});

it('memory is freed on every path: 200, 304, error response, and a client that leaves before, during or after the statement', async () => {
  const scene = await setupRoster();
  const { api, path, key, make } = scene;
  const whole = await api.get(path, { key: key.key });
  await whole.arrayBuffer();
  const headers = { 'if-none-match': whole.headers.get('etag') ?? '' };
  expect((await api.get(path, { key: key.key, headers })).status).toBe(304);
  expect((await api.get(`${path}?x=1`, { key: key.key })).status).toBe(400);
  expect((await api.get(path, { key: (await make.apiKey()).key })).status).toBe(403);
  expect((await api.get(path, { key: key.key, method: 'HEAD' })).status).toBe(403);
  await untilFigures(api.metricsUrl, isFree);

  for (const afterMs of [0, 2, 5, 10, 20, 40, 80, 160, 320]) {
    const reader = await openReader(api.url, { path, key: key.key, times: 3 });
    await wait(afterMs);
    reader.socket.destroy();
  }
  await untilFigures(api.metricsUrl, isFree);
  await scene.database.drop();
  expect((await api.get(path, { key: key.key })).status).toBeGreaterThanOrEqual(500);
  await untilFigures(api.metricsUrl, isFree);
});

it('20 parallel calls of one key for a roster of 4 MB all succeed when all are read', async () => {
  const installation = await setup({ [constants]: patient });
  const creator = await installation.make.member();
  await giveGrants(installation.owner, creator, grants.many);
  const { key } = await installation.make.apiKey({ creator });
  const path = `/v1/orgs/${creator.orgId}/clients`;
  for (let round = 0; round < 2; round += 1) {
    const responses = await Promise.all(Array.from({ length: 20 }, () => installation.api.get(path, { key })));
    const bodies = await Promise.all(responses.map((response) => response.text()));
    expect(responses.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(new Set(bodies).size).toBe(1);
    expect(JSON.parse(bodies[0] ?? '').clients).toHaveLength(grants.many);
  }
  const { waits } = await untilFigures(installation.api.metricsUrl, isFree);
  expect(waits).not.toHaveProperty('rejected');
});

it('a roster that is larger than the memory of its key is answered completely', async () => {
  const { template, creator, key, path } = prepared();
  const installation = await setup(tight, onTestFinished, template);
  await giveGrants(installation.owner, creator, grants.more);
  // Characters of one to four bytes, so that a chunk could end within a character.
  await installation.owner.pool.query(`update family set name = name || repeat('aé€😀', length(id::text) - 30)`);
  const response = await installation.api.get(path, { key: key.key });
  const roster = (await response.json()) as { clients: { family: string }[] };
  expect(roster.clients).toHaveLength(2 * grants.more);
  expect(roster.clients.every(({ family }) => family.endsWith('aé€😀'.repeat(6)))).toBe(true);
  await untilFigures(installation.api.metricsUrl, isFree);
});

it('a client that reads a few bytes at a time is disconnected at the deadline, with one log line without the key', async () => {
  const { template, key, path } = prepared();
  const slow = { ...patient, responseDeadlineMs: 5_000 };
  const scene = await setup({ ...tight, [constants]: slow }, onTestFinished, template);
  await openReader(scene.api.url, { path, key: key.key, bytesPerSecond: 200_000 });
  const { cut } = await untilFigures(scene.api.metricsUrl, (figures) => figures.cut.deadline !== undefined);
  expect(cut).toEqual({ deadline: 1 });
  await untilFigures(scene.api.metricsUrl, isFree);
  const lines = scene.logLines.filter((line) => line.includes('was cut'));
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ reason: 'deadline', requestId: expect.any(String) });
  expect(lines[0]).not.toContain(key.key);
});
