import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { becomesTrue, findNoted, spawnDetached, stopNoted } from '../../../apps/dev/servers/process.ts';
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
  const launch = { command, args: [...args], cwd: stateFolder, env: programEnvironment };
  await spawnDetached(launch, logFile(name), pidFile(name));
}

/** Returns whether a program of the node runs. */
export const isRunning = (name: string): boolean => findNoted(pidFile(name)) !== null;

/** The names of the programs that were started and not stopped. */
export const listStarted = (): string[] => (existsSync(inState('pid')) ? readdirSync(inState('pid')) : []);

/** Stops a program of the node. */
export async function stopProcess(name: string): Promise<void> {
  await stopNoted(pidFile(name));
  rmSync(pidFile(name), { force: true });
}

/** Polls until a condition of the node holds. @throws Error with the ends of all logs. */
export async function waitUntil(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  if (await becomesTrue(condition, 120_000, 200)) return;
  const logs = listStarted().map((name) => `${name}: ${readEnd(name)}`);
  throw new Error(`${what} did not become ready.\n${logs.join('\n')}`);
}

const readEnd = (name: string): string => readFileSync(logFile(name), 'utf8').trim().split('\n').slice(-3).join('\n  ');
