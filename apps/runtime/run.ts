import { StartupError } from './errors.ts';
import { onInterruption } from './interruption.ts';
import { createLog, describeError, type Logger } from './log.ts';
import { rejectEnvironment } from './settings/environment.ts';

/** What the configuration of every app contains. */
interface AppConfig {
  region: string;
  logLevel: string;
}

/**
 * Runs an app as this process: reads its settings, starts it, and stops it in order on a signal. A
 * second signal ends it at once, unless it comes within a second of the first. An expected startup
 * failure prints a sentence with the remedy and no stack trace. The exit code is 0 after a stop, and
 * 1 after a failure or a second signal.
 */
export async function runApp<C extends AppConfig>(app: {
  name: string;
  readConfig: () => C;
  start: (config: C, log: Logger) => Promise<{ stop(): Promise<void> }>;
}): Promise<void> {
  try {
    rejectEnvironment(process.env);
    const config = app.readConfig();
    const log = createLog({ level: config.logLevel, name: app.name, region: config.region });
    const end = (code: number) => log.flush(() => process.exit(code));
    process.on('uncaughtException', (error) => {
      log.fatal({ error: describeError(error) }, 'unhandled error; the process ends');
      end(1);
    });
    const started = app.start(config, log);
    stopOnSignals(started, log, end);
    await started;
    // `npm start` waits for it: only this process has the channel.
    process.send?.('listening', undefined, undefined, () => {});
  } catch (error) {
    process.stderr.write(`The ${app.name} did not start: ${describeReason(error)}\n`);
    process.exit(1);
  }
}

/** The first process of a container ignores signals that it does not handle, also at the start. */
function stopOnSignals(started: Promise<{ stop(): Promise<void> }>, log: Logger, end: (code: number) => void): void {
  let running: { stop(): Promise<void> } | null = null;
  started.then(
    (app) => {
      running = app;
    },
    () => {}, // `runApp` reports it
  );
  onInterruption((signal) => {
    log.info({ signal }, 'stopping');
    if (running === null) return end(0);
    running.stop().then(
      () => end(0),
      (error: unknown) => {
        log.error({ error: describeError(error) }, 'the process could not stop cleanly');
        end(1);
      },
    );
  });
}

/** Returns the message of an expected failure, and for any other a description without its text. */
function describeReason(error: unknown): string {
  if (error instanceof StartupError) return error.message;
  return JSON.stringify(describeError(error));
}
