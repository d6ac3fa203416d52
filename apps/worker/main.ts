import { runApp } from '#runtime/run.ts';
import { installTemporalLog } from '#workflows/temporal-log.ts';
import { startWorker } from './app.ts';
import { readConfig } from './config.ts';
import { findLoopbackAddress } from './relay/task-counts.ts';

/** `node apps/worker/main.ts`, with settings from the environment (docs/configuration.md). */
await runApp({
  name: 'worker',
  readConfig,
  start: async (config, log) => {
    // A versioned worker counts its workflow tasks with the core's own metrics.
    const coreMetrics = config.version === null ? undefined : await findLoopbackAddress();
    installTemporalLog(log, coreMetrics);
    return startWorker(config, log, coreMetrics);
  },
});
