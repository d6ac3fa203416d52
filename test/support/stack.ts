import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { endpoints } from '../../apps/api/endpoints.ts';
import { userCache } from '../../apps/dev/servers/cache-folder.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { endChild } from './end-child.ts';
import { runCommand } from './run-command.ts';
import { temporaryFolder } from './temporary-folder.ts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** The nine reads, as what follows the organization's id. */
export const readPaths = endpoints.map(({ resource }) => resource);

export interface StackFile {
  regions: {
    region: string;
    api: string;
    console: string;
    metrics: string;
    databaseUrl: string;
    redisUrl: string;
    receiver: string;
    openIdProvider?: { url: string; organizationId: string; shortName: string; account: string };
    organizations: { id: string; name: string; ownerUserId: string; sampleKey: string }[];
  }[];
}

/**
 * A development stack for a test, with a separate state folder and ports, deleted when the test
 * ends. `settings` are the user's settings.
 */
export async function setupDevStack(settings: Record<string, string> = {}) {
  const folder = temporaryFolder();
  chmodSync(folder, 0o711);
  // The environment of a new machine: no settings of org-api, and no named server. Only the cache
  // is the user's: the run's set-up has put Temporal there, which each stack would otherwise build
  // for minutes.
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    XDG_CACHE_HOME: userCache(),
    ORG_API_STATE: path.join(folder, 'state'),
    ORG_API_PORT: String(await getFreePort()),
    ...settings,
  };

  return {
    env,
    stack: () => JSON.parse(readFileSync(path.join(env.ORG_API_STATE, 'stack.json'), 'utf8')) as StackFile,

    /**
     * Starts the program of `npm start`. `ready` resolves when it reports that it is ready, and
     * rejects with its output when it ends first.
     */
    launch(...args: string[]) {
      const child = spawn(process.execPath, [path.join(root, 'apps/dev/main.ts'), ...args], {
        cwd: root,
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      onTestFinished(() => endChild(child, 'SIGTERM').then(() => {}));
      const output = collect(child);
      const ready = new Promise<void>((resolve, reject) => {
        child.stdout?.on('data', () => output.text.includes('Ctrl-C stops everything') && resolve());
        child.once('exit', (code) => reject(new Error(`npm start ended with ${code}:\n${output.text}`)));
      });
      ready.catch(() => {}); // a test that stops the start does not await it
      /** Sends the signal twice, as a script gets Ctrl-C from the terminal and from npm. */
      const stop = (signal: NodeJS.Signals = 'SIGINT') => {
        child.kill(signal);
        return endChild(child, signal);
      };
      return { child, output, ready, stop };
    },

    /** Launches it and resolves when it is ready. */
    async start(...args: string[]) {
      const launched = this.launch(...args);
      await launched.ready;
      return launched;
    },

    /** Runs a command of the project beside the stack. */
    command: (script: string, ...args: string[]) => runCommand([script, ...args], env),
  };
}

export type DevStack = Awaited<ReturnType<typeof setupDevStack>>;

function collect(child: ChildProcess) {
  const output = { text: '', stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.on('data', (chunk: Buffer) => {
      output.text += chunk;
      output[name] += chunk;
    });
  }
  return output;
}

/** The statuses of the nine reads of an organization with a key, in order. */
export async function readStatuses(api: string, orgId: string, key: string): Promise<number[]> {
  const responses = await Promise.all(
    readPaths.map((path) => fetch(`${api}/v1/orgs/${orgId}${path}`, { headers: { authorization: `Bearer ${key}` } })),
  );
  return responses.map(({ status }) => status);
}
