import { randomBytes } from 'node:crypto';
import { migrate } from '#domain/db/migrate.ts';
import { createLog } from '#runtime/log.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { startConsole } from '../../../apps/console/app.ts';
import { type ConsoleConfig, readConfig } from '../../../apps/console/config.ts';
import { getFreePort } from '../../../apps/dev/servers/ports.ts';
import { asOwner, startServers } from '../servers.ts';

/**
 * A PostgreSQL for the benchmark, with flushing to disk, and a console on it. `stop` removes
 * everything.
 */
export interface BenchStack {
  ownerUrl: string;
  origin: string;
  config: ConsoleConfig;
  /** Starts the console; the database should be filled by then. */
  serve(): Promise<void>;
  stop(): Promise<void>;
}

const secret = () => randomBytes(32).toString('base64');

export async function startStack(report: (line: string) => void): Promise<BenchStack> {
  return startServers(report, async ({ postgres, onStop, stop }) => {
    const [ownerUrl, consoleUrl] = [new URL(postgres.adminUrl), new URL(postgres.adminUrl)];
    ownerUrl.pathname = consoleUrl.pathname = 'bench_console';
    Object.assign(consoleUrl, { username: 'bench_console', password: 'bench' });
    await asOwner(postgres.adminUrl, (admin) => admin.query('create database bench_console template template0'));
    await migrate({
      owner: parsePostgresUrl(ownerUrl.href),
      logins: [{ role: 'console', server: parsePostgresUrl(consoleUrl.href) }],
    });
    const port = await getFreePort();
    const origin = `http://localhost:${port}`;
    const config = readConfig({
      REGION: 'us',
      CONSOLE_DATABASE_URL: consoleUrl.href,
      CONSOLE_URL: origin,
      API_URL: 'http://127.0.0.1:8080',
      KEY_PEPPERS: `1:${secret()}`,
      KEY_TAG_SECRETS: secret(),
      WEBHOOK_SECRET_KEYS: `1:${secret()}`,
      HOST: '127.0.0.1',
      PORT: String(port),
      METRICS_PORT: '0',
      DRAIN_DELAY_MS: '0',
      LOG_LEVEL: 'silent',
    });
    const serve = async () => {
      const running = await startConsole(config, createLog({ level: 'silent', name: 'console', region: 'us' }));
      onStop(() => running.stop());
    };
    return { ownerUrl: ownerUrl.href, origin, config, serve, stop };
  });
}
