import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { becomesTrue, spawnDetached } from '../../../apps/dev/servers/process.ts';
import { isAlive } from '../../../apps/dev/state-lock.mjs';
import { inState, stateFolder } from './node.ts';

const pidFile = (name: string): string => inState('pid', name);
const logFile = (name: string): string => inState('log', `${name}.log`);

/** What programs of the node get; they look for others, such as iptables, on the path. */
export const programEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: stateFolder,
};

/** Starts a program of the node, which outlives this process. Its output is in `log/NAME.log`. */
export async function startProcess(name: string, command: string, args: readonly string[]): Promise<void> {
  for (const folder of ['pid', 'log']) mkdirSync(inState(folder), { recursive: true });
  const { pid } = await spawnDetached({
    command,
    args: [...args],
    cwd: stateFolder,
    env: programEnvironment,
    logFile: logFile(name),
  });
  writeFileSync(pidFile(name), `${pid}`);
}

/** Returns whether a program of the node runs. */
export function isRunning(name: string): boolean {
  const pid = readPid(name);
  return pid !== null && isAlive(pid);
}

/** The names of the programs that were started and not stopped. */
export const listStarted = (): string[] => (existsSync(inState('pid')) ? readdirSync(inState('pid')) : []);

/** Asks a program to end, and kills it after ten seconds. */
export async function stopProcess(name: string): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const pid = readPid(name);
    if (pid === null || !isAlive(pid)) break;
    process.kill(pid, signal);
    if (await becomesTrue(() => !isAlive(pid), 10_000)) break;
  }
  rmSync(pidFile(name), { force: true });
}

/** Polls until a condition of the node holds. @throws Error with the ends of all logs. */
export async function waitUntil(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  if (await becomesTrue(condition, 120_000, 200)) return;
  const logs = listStarted().map((name) => `${name}: ${readEnd(name)}`);
  throw new Error(`${what} did not become ready.\n${logs.join('\n')}`);
}

const readEnd = (name: string): string => readFileSync(logFile(name), 'utf8').trim().split('\n').slice(-3).join('\n  ');

/** Returns null for none, and for a process that is another program: pids are used again. */
function readPid(name: string): number | null {
  try {
    const pid = Number(readFileSync(pidFile(name), 'utf8'));
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(stateFolder) ? pid : null;
  } catch {
    return null;
  }
}
