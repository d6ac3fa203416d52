/** Encoding on a machine whose threads are busy: what a client gets whose body waits too long. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { MadeKey } from '#test/make.ts';
import { setup } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { giveGrants } from './readers.ts';

/** Holds every thread that Node encodes with: each opens a pipe, which blocks until a writer opens it. */
function holdThreads(): () => void {
  const folder = temporaryFolder();
  const count = Number(process.env.UV_THREADPOOL_SIZE ?? 4);
  const pipes = Array.from({ length: count }, (_, n) => path.join(folder, String(n)));
  execFileSync('mkfifo', pipes);
  const readers = pipes.map((pipe) => open(pipe, 'r'));
  const writers: number[] = [];
  const release = () => {
    if (writers.length === 0) writers.push(...pipes.map((pipe) => openSync(pipe, 'r+')));
  };
  onTestFinished(async () => {
    release();
    for (const reader of await Promise.all(readers)) await reader.close();
    for (const writer of writers) closeSync(writer);
  });
  return release;
}

it('of three large bodies, the one that finds no free encoder for 5 s gets 503 and Retry-After: 5', async () => {
  const { api, owner, make } = await setup();
  const keys: MadeKey[] = [];
  for (let n = 0; n < 3; n += 1) {
    const creator = await make.member();
    await giveGrants(owner, creator, 1_000);
    keys.push(await make.apiKey({ creator }));
  }
  // Opens a connection of the API for each read: their passwords are hashed by the threads that are held below.
  const openConnections = async () => {
    await Promise.all(keys.map(({ key, orgId }) => api.get(`/v1/orgs/${orgId}/clients`, { key })));
    const { rowCount } = await owner.pool.query(
      `select from pg_stat_activity where datname = current_database() and application_name = 'org-api'`,
    );
    return rowCount;
  };
  await expect.poll(openConnections).toBe(keys.length);
  const release = holdThreads();
  const statuses: number[] = [];
  const reads = keys.map(async ({ key, orgId }) => {
    const headers = { 'accept-encoding': 'gzip' };
    const response = await api.get(`/v1/orgs/${orgId}/clients`, { key, headers });
    statuses.push(response.status);
    const body = (await response.json()) as { clients?: unknown[]; error?: string };
    return { retryAfter: response.headers.get('retry-after'), error: body.error, clients: body.clients?.length };
  });
  await expect.poll(() => statuses, { timeout: 60_000 }).toEqual([503]);
  release();
  const responses = await Promise.all(reads);
  expect(statuses).toEqual([503, 200, 200]);
  expect(responses.filter(({ error }) => error !== undefined)).toEqual([
    { retryAfter: '5', error: 'unavailable', clients: undefined },
  ]);
  expect(responses.filter(({ clients }) => clients === 1_000)).toHaveLength(2);
});
