import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import type { Driver, Result } from './driver.ts';

const program = path.join(import.meta.dirname, 'driver.py');
const source = path.join(import.meta.dirname, '../../apps/clients/python');
const { PATH = '', CLIENTS_PYTHON = 'python3' } = process.env;

interface Message {
  ready?: true;
  failed?: string;
  wait?: number;
  result?: unknown;
}

/** The Python client in a process of the machine's Python, which has installed nothing for it. */
const createPythonDriver = (mode: 'sync' | 'async'): Driver => ({
  name: `Python (${mode})`,
  canEnd: mode === 'async',
  async create(settings, onWait = async () => {}) {
    const child = spawn(CLIENTS_PYTHON, ['-B', program, mode, source], {
      env: { PATH, PYTHONIOENCODING: 'utf-8', ...settings.environment },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill());
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const write = (message: object) => void child.stdin.write(`${JSON.stringify(message)}\n`);
    const read = async (): Promise<Message> => {
      const { value, done } = await lines.next();
      if (done) throw new Error('the Python client has ended');
      return JSON.parse(value) as Message;
    };
    const waits: number[] = [];
    const ask = async (message: object): Promise<unknown> => {
      write(message);
      for (;;) {
        const { wait, result } = await read();
        if (wait === undefined) return result;
        waits.push(wait);
        await onWait();
        write({});
      }
    };
    write({
      key: settings.key,
      base_url: settings.baseUrl,
      timeout: settings.timeoutSeconds,
      max_retries: settings.maxRetries,
      max_wait: settings.maxWaitSeconds,
      has_cache: settings.hasCache === true,
      has_real_waits: settings.hasRealWaits === true,
    });
    const { failed } = await read();
    if (failed !== undefined) return failed;
    let last: Promise<unknown> = Promise.resolve();
    /** One after another, as the process reads them. */
    const askInTurn = (message: object): Promise<unknown> => {
      last = last.then(() => ask(message));
      return last;
    };
    const getName = (operationId: string) => operationId.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return {
      call: async (operationId, organization, tag = undefined) =>
        (await askInTurn({ name: getName(operationId), organization, tag: tag ?? null })) as Result,
      end: () => void child.kill('SIGUSR1'),
      waits,
      print: async () => (await askInTurn({ print: true })) as string,
    };
  },
});

export const pythonDrivers: readonly Driver[] = [createPythonDriver('sync'), createPythonDriver('async')];
