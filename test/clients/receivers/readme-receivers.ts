/** The receivers that the READMEs of the kits show, as they are, in an empty project. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished } from 'vitest';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { endChild } from '#test/end-child.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { getFreePort } from '../../../apps/dev/servers/ports.ts';
import { certify } from '../../../apps/receiver/certify/certify.ts';

const clients = path.join(import.meta.dirname, '../../../apps/clients');
const { CLIENTS_PYTHON = 'python3' } = process.env;

/** Returns the blocks of code of a README in a language. */
export function readBlocks(folder: string, language: string): string[] {
  const text = readFileSync(path.join(clients, folder, 'README.md'), 'utf8');
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(([, code = '']) => code);
  expect(blocks.length).toBeGreaterThanOrEqual(1);
  return blocks;
}

/** Returns the whole program of the TypeScript kit's README that uses a driver. */
export function readTypescriptReceiver(driver: 'pg' | 'node:sqlite' | 'better-sqlite3'): string {
  if (driver === 'better-sqlite3') {
    const [own, other] = ["import { DatabaseSync } from 'node:sqlite';", "import DatabaseSync from 'better-sqlite3';"];
    return readTypescriptReceiver('node:sqlite').replace(own, other);
  }
  const found = readBlocks('receiver-typescript', 'ts').find((code) => code.includes(`from '${driver}';`));
  return found ?? expect.fail(`the README has no receiver with ${driver}`);
}

/** Where the program runs, and what is read of its table: the clients with whether they are active. */
export interface ReadmeReceiver {
  /** The file, with its text. */
  file: { name: string; code: string };
  /** An empty folder. */
  folder: string;
  environment?: Record<string, string>;
  /** Modules beside the kit: folders by name. */
  modules?: Record<string, string>;
  query: (sql: string) => Promise<Record<string, unknown>[]>;
}

/**
 * Starts a receiver and certifies it: it passes all that its table shows, ten events at once too. Then takes its table
 * away: it answers 503, and its log has the reason.
 */
export async function expectCertified(receiver: ReadmeReceiver): Promise<void> {
  const { query } = receiver;
  const { url, port, secret, log } = await startReceiver(receiver);
  await sendHalfOfRequest(port);
  const run = () =>
    certify({
      target: { url, ca: null },
      secrets: [secret],
      organizationId: randomUUID(),
      endpoint: randomUUID(),
      deadlineMs: 10_000,
      async readState() {
        const rows = await query('select id, active from client');
        return { grants: Object.fromEntries(rows.map(({ id, active }) => [id, active ? 'active' : 'ended'])) };
      },
    });
  const { scenarios } = await run();
  const found = scenarios.filter(({ result }) => result !== 'passed').map(({ name, ...rest }) => [name, rest.found]);
  expect(found, log()).toEqual([
    ['applies-repeat-once', '--state-url reports no events.'],
    ['applies-simultaneous-repeat-once', '--state-url reports no events.'],
    ['forged-event-blocks-nothing', '--state-url reports no events.'],
    ['keeps-seats-apart', '--state-url reports no seats.'],
  ]);

  await query('drop table client');
  const { scenarios: broken } = await run();
  expect(broken[0]).toMatchObject({ found: expect.stringContaining('503'), fix: expect.stringContaining('log') });
  await expect.poll(log).toMatch(/no such table: client|relation "client" does not exist/);
}

async function startReceiver({ file, folder, environment = {}, modules = {} }: ReadmeReceiver) {
  const kit = path.join(folder, 'node_modules/@org-api/receiver');
  mkdirSync(kit, { recursive: true });
  const source = JSON.stringify(path.join(clients, 'receiver-typescript/src/index.ts'));
  writeFileSync(path.join(kit, 'package.json'), '{ "type": "module", "exports": "./index.js" }');
  writeFileSync(path.join(kit, 'index.js'), `export * from ${source};\n`);
  for (const [name, from] of Object.entries(modules)) symlinkSync(from, path.join(folder, 'node_modules', name));
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(path.join(folder, file.name), file.code);

  const secret = generateSecret();
  const port = await getFreePort();
  const child = spawn(file.name.endsWith('.py') ? CLIENTS_PYTHON : process.execPath, [file.name], {
    cwd: folder,
    env: {
      ...process.env,
      ...environment,
      PYTHONPATH: path.join(clients, 'receiver-python'),
      PYTHONDONTWRITEBYTECODE: '1',
      WEBHOOK_SECRET: secret,
      PORT: String(port),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => endChild(child).then(() => {}));
  let text = '';
  child.stderr.on('data', (chunk) => {
    text += chunk;
  });
  const url = `http://127.0.0.1:${port}/`;
  const isListening = () => fetch(url).then(Boolean, () => false);
  await expect.poll(async () => (await isListening()) || text || child.exitCode, { timeout: 60_000 }).toBe(true);
  return { url, port, secret, log: () => text };
}

/** Closes a connection in the middle of a body. */
async function sendHalfOfRequest(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write('POST / HTTP/1.1\r\nHost: receiver\r\nContent-Length: 100\r\n\r\n{', () => socket.destroy());
  await once(socket, 'close');
}

/** Returns a receiver whose database is the file that the samples with SQLite create. */
export function sqliteReceiver(file: ReadmeReceiver['file']): ReadmeReceiver {
  const folder = temporaryFolder();
  const query = async (sql: string) => {
    const database = new DatabaseSync(path.join(folder, 'clients.sqlite'), { timeout: 20_000 });
    try {
      return database.prepare(sql).all();
    } finally {
      database.close();
    }
  };
  return { file, folder, query };
}
