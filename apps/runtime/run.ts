import { ListenRefused } from './http-server.ts';
import { createLog, describeError, type Logger } from './log.ts';
import { SettingsRefused } from './settings/read.ts';

/** What every app's configuration has, whatever else it has. */
interface AppConfig {
  region: string;
  logLevel: string;
}

/**
 * Runs an app as this process: reads its settings, starts it, and stops it in order on SIGTERM or SIGINT; a second signal ends it at once.
 *
 * Bad settings and taken addresses are the operator's, so they are told in sentences, without a stack; exit code 1 either way.
 */
export async function runApp<C extends AppConfig>(app: {
  name: string;
  readConfig: () => C;
  start: (config: C, log: Logger) => Promise<{ stop(): Promise<void> }>;
}): Promise<void> {
  try {
    const config = app.readConfig();
    const log = createLog({ level: config.logLevel, name: app.name, region: config.region });
    const end = (code: number) => log.flush(() => process.exit(code));
    process.on('uncaughtException', (error) => {
      log.fatal({ error: describeError(error) }, 'a fault that nothing handled; this process ends');
      end(1);
    });
    const running = await app.start(config, log);
    stopOnSignals(running, log, end);
  } catch (error) {
    const told = error instanceof SettingsRefused || error instanceof ListenRefused;
    process.stderr.write(
      `The ${app.name} did not start: ${told ? error.message : JSON.stringify(describeError(error))}\n`,
    );
    process.exit(1);
  }
}

function stopOnSignals(running: { stop(): Promise<void> }, log: Logger, end: (code: number) => void): void {
  let asked = false;
  const stop = (signal: string) => {
    if (asked) process.exit(1);
    asked = true;
    log.info({ signal }, 'stopping');
    running.stop().then(
      () => end(0),
      (error: unknown) => {
        log.error({ error: describeError(error) }, 'did not stop in order');
        end(1);
      },
    );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
}
