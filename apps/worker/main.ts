import { runApp } from '#runtime/run.ts';
import { startWorker } from './app.ts';
import { readConfig } from './config.ts';
import { installTemporalLog } from './relay/temporal.ts';

/** The worker as a process: `node apps/worker/main.ts`, settings from the environment (README lists them). */
await runApp({
  name: 'worker',
  readConfig,
  start: (config, log) => {
    installTemporalLog(log);
    return startWorker(config, log);
  },
});
