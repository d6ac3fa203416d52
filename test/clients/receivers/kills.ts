/** Kills receivers at any moment while everything is delivered out of order and again, and looks what is left. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { endChild } from '#test/end-child.ts';
import { gapsSql, schema } from '../../../apps/clients/receiver-typescript/src/index.ts';
import { tools } from '../installed-packages.ts';
import { type Delivery, inventEvents, shuffle } from './events.ts';

export type Kit = 'typescript' | 'python';

/** What a run left; all but the counts of kills and deliveries are 0 for a correct kit. */
export interface Remains {
  kills: number;
  deliveries: number;
  missing: number;
  twice: number;
  wrongStates: number;
  gaps: number;
  forgedAccepted: number;
}

export interface KillOptions {
  kit: Kit;
  /** A URL of PostgreSQL or MariaDB, or a file of SQLite. */
  database: string;
  query: (sql: string) => Promise<Record<string, unknown>[]>;
  kills: number;
  mutation?: string;
  grants?: number;
}

const tables = [
  'create table effect (event_id varchar(64) not null, is_late integer not null)',
  'create table state (subject varchar(64) primary key, status varchar(16) not null)',
];
/** Returns a receiver's command. The drivers of servers are in an environment of Python. */
async function getCommand(kit: Kit, database: string): Promise<readonly [string, string]> {
  const source = (name: string) => path.join(import.meta.dirname, name);
  if (kit === 'typescript') return [process.execPath, source('server.ts')];
  const python = database.includes('://') ? path.join(await tools.python(), 'bin/python') : 'python3';
  return [python, source('server.py')];
}

interface Running {
  child: ChildProcess;
  port: number;
}

/** Creates the tables of the kit and of the effects. */
export async function createTables(query: KillOptions['query']): Promise<void> {
  for (const sql of [...schema, ...tables]) await query(sql);
}

/** Starts a receiver. It ends with this process at the latest. */
export async function startKit(kit: Kit, environment: { DATABASE: string; [name: string]: string }): Promise<Running> {
  const [program, source] = await getCommand(kit, environment.DATABASE);
  const child = spawn(program, [source], {
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit').then(() => {
    throw new Error(`the receiver in ${kit} ended before it listened`);
  });
  ended.catch(() => {});
  const [text] = await Promise.race([once(child.stdout, 'data'), ended]);
  return { child, port: Number(String(text).trim()) };
}

/** Runs until so many receivers were killed, and then until everything is accepted. */
export async function runKills(options: KillOptions): Promise<Remains> {
  const { kit, database, query, mutation = '' } = options;
  const secret = generateSecret();
  await createTables(query);
  const { deliveries: all, states, eventIds } = inventEvents(options.grants ?? 100);
  const environment = { DATABASE: database, SECRET: secret, FAILING: '0.1', MUTATION: mutation };
  const alive: Running[] = [];
  const starts = new Set<Promise<void>>();
  const start = () => {
    const started = startKit(kit, environment).then((running) => void alive.push(running));
    starts.add(started);
    return started.finally(() => starts.delete(started));
  };
  await Promise.all([start(), start(), start()]);

  let kills = 0;
  const killAll = (async () => {
    while (kills < options.kills) {
      await pause(20 + Math.random() * 60);
      if (alive.length < 2) continue;
      const [{ child } = { child: null }] = alive.splice(Math.floor(Math.random() * alive.length), 1);
      child?.kill('SIGKILL');
      kills += 1;
      void start();
    }
  })();

  const counts = { deliveries: 0, forgedAccepted: 0 };
  const deliver = async (delivery: Delivery): Promise<boolean> => {
    const isForged = Math.random() < 0.02;
    const status = await post(alive, delivery, isForged ? generateSecret() : secret);
    counts.deliveries += 1;
    if (isForged && status === 204) counts.forgedAccepted += 1;
    return status === 204 && !isForged;
  };
  await deliverAll(shuffle(all), deliver);
  while (kills < options.kills) await deliverAll(shuffle(all).slice(0, all.length / 5), deliver);
  await killAll;
  await Promise.all(starts);
  const remains = { ...(await readRemains(query, eventIds, states)), ...counts, kills };
  await Promise.all(alive.map(({ child }) => endChild(child)));
  return remains;
}

/** Delivers twelve at a time, and again what was not accepted, at another moment. */
async function deliverAll(queue: Delivery[], deliver: (delivery: Delivery) => Promise<boolean>): Promise<void> {
  const deliverNext = async () => {
    for (let delivery = queue.pop(); delivery !== undefined; delivery = queue.pop()) {
      if (await deliver(delivery)) continue;
      queue.splice(Math.floor(Math.random() * queue.length), 0, delivery);
      await pause(5);
    }
  };
  await Promise.all(Array.from({ length: 12 }, deliverNext));
}

/** Delivers to any of the receivers. Returns the status, or 0 without one. */
function post(alive: readonly Running[], { event, endpoint, sequence }: Delivery, secret: string): Promise<number> {
  const to = alive[Math.floor(Math.random() * alive.length)];
  if (to === undefined) return Promise.resolve(0);
  const body = JSON.stringify(event);
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const headers = {
    ...signatureHeaders({ id: event.id, timestampSeconds, body, secrets: [secret] }),
    'webhook-endpoint': endpoint,
    'webhook-sequence': String(sequence),
    'content-length': Buffer.byteLength(body),
  };
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port: to.port, method: 'POST', headers, timeout: 30_000 }, (response) => {
      response
        .on('error', () => resolve(0))
        .on('end', () => resolve(response.statusCode ?? 0))
        .resume();
    });
    sent
      .on('timeout', () => sent.destroy())
      .on('error', () => resolve(0))
      .end(body);
  });
}

async function readRemains(
  query: KillOptions['query'],
  eventIds: readonly string[],
  states: ReadonlyMap<string, string>,
) {
  const effects = await query('select event_id, count(*) as times from effect group by event_id');
  const left = new Map((await query('select subject, status from state')).map((row) => [row.subject, row.status]));
  const known = new Set(effects.map(({ event_id }) => event_id));
  return {
    missing: eventIds.filter((id) => !known.has(id)).length,
    twice: effects.filter(({ times }) => Number(times) !== 1).length,
    wrongStates: [...states].filter(([subject, status]) => left.get(subject) !== status).length,
    gaps: (await query(gapsSql)).length,
  };
}
