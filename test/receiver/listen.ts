import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { childEnvironment } from '#test/child-environment.ts';
import { endChild } from '#test/end-child.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { setupDatabase } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { readBody } from '../../apps/receiver/body.ts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** Runs the program of `npm run tool -- listen`; it is ended with the test at the latest. */
export function runListen(args: string[], env: Record<string, string> = {}) {
  const child: ChildProcess = spawn(process.execPath, [path.join(root, 'apps/receiver/listen/main.ts'), ...args], {
    cwd: root,
    env: { ...childEnvironment, ORG_API_STATE: '/nonexistent', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { text: '', stderr: '' };
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output.text += chunk));
  child.stderr?.on('data', (chunk) => (output.stderr += chunk));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  onTestFinished(() => endChild(child).then(() => {}));
  return {
    output,
    ended,
    stop: () => endChild(child, 'SIGINT'),
    kill: () => endChild(child),
    pid: child.pid,
    /** Resolves with the match once the output has it; rejects when the program ends first. */
    async says(pattern: RegExp): Promise<RegExpExecArray> {
      for (;;) {
        const match = pattern.exec(output.text);
        if (match !== null) return match;
        const exited = await Promise.race([
          ended,
          new Promise<'more'>((r) => child.stdout?.once('data', () => r('more'))),
        ]);
        if (exited !== 'more' && !pattern.test(output.text))
          throw new Error(`listen ended with ${exited}:\n${output.text}`);
      }
    },
  };
}

/** A receiver behind the tool: keeps its requests, and answers as configured. */
export async function startTarget(reply: { status: number; headers?: Record<string, string>; body?: string }) {
  const came: { path: string; rawHeaders: string[]; headers: IncomingMessage['headers']; body: Buffer }[] = [];
  const server = createServer(async (request, response) => {
    const body = (await readBody(request)) ?? Buffer.alloc(0);
    came.push({ path: request.url ?? '', rawHeaders: request.rawHeaders, headers: request.headers, body });
    response.writeHead(reply.status, reply.headers).end(reply.body);
  });
  const port = await listenLocally(server);
  return { came, reply, url: `http://127.0.0.1:${port}/mine?x=1` };
}

/**
 * The files that `npm start` writes for other programs, for a test's database: one organization,
 * marked as a development stack's by default.
 */
export async function setupStack({ development = true } = {}) {
  const world = await setupDatabase();
  const { database, owner, make } = world;
  const professional = await make.member();
  if (development) await owner.pool.query(`alter database "${database.name}" set org_api.development = 'on'`);
  const folder = temporaryFolder();
  const organizations = [{ id: professional.orgId, name: 'Harbor Family Law' }];
  writeFileSync(
    path.join(folder, 'stack.json'),
    JSON.stringify({ regions: [{ region: 'us', databaseUrl: database.ownerUrl, organizations }] }),
  );
  const webhookSecretKeys = `1:${randomBytes(32).toString('base64')}`;
  writeFileSync(path.join(folder, 'secrets.json'), JSON.stringify({ us: { webhookSecretKeys } }));
  return { ...world, orgId: professional.orgId, env: { ORG_API_STATE: folder } };
}
