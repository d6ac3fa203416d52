import path from 'node:path';
import { getDirectly } from '#runtime/get-directly.ts';
import { compiledCode } from './compiled-code.ts';
import type { RegionApp } from './region-plan.ts';
import type { Report } from './servers/process.ts';
import { startServer } from './servers/server-program.ts';

/**
 * Starts an app as a separate process, as in production. Resolves when its process says that it
 * listens, and `readyUrl` then answers 200. Its folder on the command line says in `ps` to which
 * stack it belongs.
 *
 * @throws StartupError when it ends or is not ready within a minute.
 */
export function startApp(options: {
  region: string;
  name: RegionApp;
  folder: string;
  env: Record<string, string>;
  readyUrl: string;
  report: Report;
}) {
  const { region, name, folder, env, readyUrl, report } = options;
  return startServer({
    name: `${region} ${name}`,
    folder,
    readyMs: 60_000,
    report,
    prepare: async () => ({
      server: { port: Number(new URL(readyUrl).port) },
      ports: [], // other apps have its address already
      launch: {
        command: process.execPath,
        args: [path.join(import.meta.dirname, '..', name, 'main.ts'), folder],
        cwd: folder,
        env: { PATH: '/usr/bin:/bin', ...compiledCode, ...env },
        hasChannel: true,
      },
    }),
    async check(_server, { listens }) {
      if (!listens()) throw new Error('it does not listen yet');
      const { status } = await getDirectly(readyUrl, 2_000);
      if (status !== 200) throw new Error(`${readyUrl} responds with ${status}`);
    },
  });
}
