/** A read is answered only after its audit entry is committed, whenever the process is killed. */
import { Agent } from 'node:http';
import { expect, it } from 'vitest';
import { exchange } from '#test/exchange.ts';
import { setupDatabase } from '#test/setup.ts';
import { startChildApi } from '../child-api.ts';

const connections = 32;
/** Number of responses before the kill, within the limits of 20 keys. */
const responsesBeforeKill = [250, 600, 1_100];

/**
 * Reads over many connections until enough answers arrived, then calls `kill` while others are in
 * progress. Returns the complete responses, and the number of incomplete ones.
 */
async function readUntilKilled(
  urls: string[],
  keys: string[],
  enough: number,
  kill: () => void,
): Promise<{ received: string[]; lost: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const received: string[] = [];
  let lost = 0;
  let killed = false;

  async function read(turn: number): Promise<void> {
    const url = urls[turn % urls.length] ?? '';
    const headers = { authorization: `Bearer ${keys[turn % keys.length]}` };
    const response = await exchange(url, { agent, headers }).catch(() => null);
    if (response === null) lost += 1;
    else if (response.status === 200) received.push(String(response.headers['request-id']));
    if (received.length < enough || killed) return;
    killed = true;
    kill();
  }
  async function load(connection: number): Promise<void> {
    for (let turn = connection; !killed; turn += connections) await read(turn);
  }
  await Promise.all(Array.from({ length: connections }, (_, connection) => load(connection)));
  agent.destroy();
  return { received, lost };
}

it('every response that a client received has its audit entry, also when the API is killed with SIGKILL under load', async () => {
  const { database, owner, make } = await setupDatabase();
  const creator = await make.member();
  let lostInAll = 0;
  for (const enough of responsesBeforeKill) {
    const keys = await Promise.all(Array.from({ length: 20 }, () => make.apiKey({ creator })));
    const api = await startChildApi(database);
    const path = `${api.url}/v1/orgs/${creator.orgId}`;
    const { received, lost } = await readUntilKilled(
      [path, `${path}/members`, `${path}/seats`],
      keys.map(({ key }) => key),
      enough,
      () => api.process.kill('SIGKILL'),
    );
    expect(await api.ended).toEqual({ code: null, signal: 'SIGKILL' });
    lostInAll += lost;

    const { rows } = await owner.pool.query<{ id: string }>(
      `select id from audit_entry where action like 'api.%' and id = any ($1)`,
      [received],
    );
    const recorded = new Set(rows.map(({ id }) => id));
    expect(recorded.size).toBe(rows.length);
    expect(received.filter((id) => !recorded.has(id))).toEqual([]);
    for (const made of keys) await make.keyRevoked(made);
  }
  expect(lostInAll).toBeGreaterThan(0); // the kill came while requests were in progress
}, 90_000);
