import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { childEnvironment } from './child-environment.ts';

/** One app as a child process that is restarted whenever it ends, as Kubernetes would. */
export interface AppProcess {
  /** `http://127.0.0.1:port` of its metrics. */
  metricsUrl: string;
  /** Log file of all its processes. */
  logFile: string;
  /** Number of times that it ended without being killed by the run. */
  endedByItself(): number;
  /** Ends it, with SIGKILL by default; resolves when it has ended. It restarts a moment later. */
  kill(signal?: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  /** Ends it with SIGTERM, after 40 s with SIGKILL. Safe to call twice. */
  stop(): Promise<void>;
}

const apps = fileURLToPath(new URL('../../apps', import.meta.url));
const restartAfterMs = 250;
const stopDeadlineMs = 40_000;

/**
 * Starts `apps/<name>/main.ts` with these settings and without the environment; its log goes to a
 * file in `folder`.
 */
export async function startAppProcess(options: {
  name: 'api' | 'console' | 'worker';
  label: string;
  folder: string;
  /** Settings; a function is called before each start. */
  environment: Record<string, string> | (() => Record<string, string>);
}): Promise<AppProcess> {
  const { name, label, folder, environment } = options;
  const metricsPort = await getFreePort();
  const logFile = path.join(folder, `${label}.log`);
  const log = createWriteStream(logFile, { flags: 'a' });
  let child: ChildProcess;
  let ended: Promise<void>;
  let killed = false;
  let stopping: Promise<void> | undefined;
  let endedByItself = 0;

  function launch(): void {
    killed = false;
    const settings = typeof environment === 'function' ? environment() : environment;
    child = spawn(process.execPath, [path.join(apps, name, 'main.ts')], {
      env: { ...childEnvironment, HOST: '127.0.0.1', METRICS_PORT: String(metricsPort), ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    ended = new Promise((resolve) => child.once('close', () => resolve()));
    void ended.then(() => {
      if (stopping !== undefined) return;
      if (!killed) endedByItself += 1;
      setTimeout(() => stopping ?? launch(), restartAfterMs);
    });
  }

  async function end(): Promise<void> {
    const last = setTimeout(() => child.kill('SIGKILL'), stopDeadlineMs);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(last);
    process.off('exit', abandon);
    await new Promise<void>((resolve) => log.end(resolve));
  }

  const abandon = () => child.kill('SIGKILL');
  process.once('exit', abandon);
  launch();
  return {
    metricsUrl: `http://127.0.0.1:${metricsPort}`,
    logFile,
    endedByItself: () => endedByItself,
    async kill(signal = 'SIGKILL') {
      killed = true;
      child.kill(signal);
      await ended;
    },
    stop() {
      stopping ??= end();
      return stopping;
    },
  };
}
