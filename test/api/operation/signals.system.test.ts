/** An API that receives SIGTERM loses no request. */
import { Agent } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { spawnApp } from '#test/child-app.ts';
import { exchange } from '#test/exchange.ts';
import { apiEnvironment, setupDatabase, startTestApi } from '#test/setup.ts';
import { startChildApi } from '../child-api.ts';

const connections = 40;

it('SIGTERM under constant load on keep-alive connections fails no request and exits with code 0', async () => {
  const { database, make } = await setupDatabase();
  const creator = await make.member();
  const keys = await Promise.all(Array.from({ length: 24 }, () => make.apiKey({ creator })));
  const leaving = await startChildApi(database, { DRAIN_DELAY_MS: '1500' });
  // A load balancer checks readiness a few times a second and sends new requests to another pod
  // once it is off.
  const staying = await startTestApi(database);
  let target = leaving.url;
  let loading = true;
  const failures: string[] = [];
  const statuses = new Map<number, number>();
  const agent = new Agent({ keepAlive: true, maxSockets: connections });

  async function watchReadiness(): Promise<void> {
    while (target === leaving.url) {
      const ready = await exchange(`${leaving.url}/readyz`).catch(() => null);
      if (ready?.status !== 200) target = staying.url;
      await wait(200);
    }
  }
  async function load(connection: number): Promise<void> {
    for (let turn = connection; loading; turn += connections) {
      const headers = { authorization: `Bearer ${keys[turn % keys.length]?.key}` };
      try {
        const { status } = await exchange(`${target}/v1/orgs/${creator.orgId}/members`, { agent, headers });
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      } catch (error) {
        failures.push((error as Error).message);
      }
    }
  }
  const loads = Promise.all([
    watchReadiness(),
    ...Array.from({ length: connections }, (_, connection) => load(connection)),
  ]);
  await expect.poll(() => statuses.get(200) ?? 0, { timeout: 30_000 }).toBeGreaterThan(200);
  leaving.process.kill('SIGTERM');
  expect(await leaving.ended).toEqual({ code: 0, signal: null });
  loading = false;
  await loads;
  agent.destroy();

  expect(failures).toEqual([]);
  // 429: the load exceeds the keys' limits
  for (const status of statuses.keys()) expect([200, 429]).toContain(status);
  expect(leaving.lines.join('\n')).toContain('SIGTERM');
}, 60_000);

it('requests in progress are answered when the server closes', async () => {
  const { database, make, owner } = await setupDatabase();
  const creator = await make.member();
  const keys = await Promise.all(Array.from({ length: 3 }, () => make.apiKey({ creator })));
  const api = await startChildApi(database, { DRAIN_DELAY_MS: '0' });
  await exchange(`${api.url}/v1/orgs/${creator.orgId}`, { headers: { authorization: `Bearer ${keys[0]?.key}` } });
  // Reads wait for this lock, so that they are certainly in progress when the signal arrives.
  const lock = await owner.pool.connect();
  await lock.query('begin; lock table membership in access exclusive mode');
  const waiting = async () =>
    (
      await owner.pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
    ).rowCount;
  // One by one, because reads that arrive together share a statement and would wait as one.
  const reads: ReturnType<typeof exchange>[] = [];
  for (const { key } of keys) {
    reads.push(exchange(`${api.url}/v1/orgs/${creator.orgId}`, { headers: { authorization: `Bearer ${key}` } }));
    await expect.poll(waiting, { timeout: 30_000 }).toBe(reads.length);
  }
  api.process.kill('SIGTERM');
  await expect.poll(() => api.lines.join('\n'), { timeout: 10_000 }).toContain('SIGTERM');
  await lock.query('commit');
  lock.release();
  for (const { status, headers } of await Promise.all(reads)) {
    expect(status).toBe(200);
    // Otherwise the kept connections held the server open for seconds after the last response.
    expect(headers.connection).toBe('close');
  }
  expect(await api.ended).toEqual({ code: 0, signal: null });
});

it('a second signal, more than a second later, ends the process at once', async () => {
  const { database } = await setupDatabase();
  const api = await startChildApi(database, { DRAIN_DELAY_MS: '60000' });
  api.process.kill('SIGTERM');
  await expect.poll(() => api.lines.join('\n'), { timeout: 10_000 }).toContain('SIGTERM');
  await wait(1_500);
  api.process.kill('SIGINT');
  expect(await api.ended).toEqual({ code: 1, signal: null });
});

it('a port that is in use is reported in one sentence with the remedy, without a stack trace, and exits with code 1', async () => {
  const { database } = await setupDatabase();
  const first = await startTestApi(database);
  const child = spawnApp('api', apiEnvironment(database, { PORT: new URL(first.url).port }));
  expect(await child.ended).toEqual({ code: 1, signal: null });
  const text = child.lines.join('\n');
  expect(text).toMatch(/cannot listen on 127\.0\.0\.1 port \d+: another process listens there; set another port/);
  expect(text).not.toMatch(/^\s+at /m);
});

it('invalid settings are reported together, without their values or a stack trace, and exit with code 1', async () => {
  const child = spawnApp('api', { REGION: 'mars-9000', API_DATABASE_URL: 'mysql://secret-user@x', PORT: '99999' });
  expect(await child.ended).toEqual({ code: 1, signal: null });
  const text = child.lines.join('\n');
  for (const name of ['REGION', 'API_DATABASE_URL', 'PORT', 'KEY_PEPPERS', 'KEY_TAG_SECRETS'])
    expect(text).toContain(name);
  expect(text).not.toMatch(/mars-9000|secret-user|99999|^\s+at /m);
});
