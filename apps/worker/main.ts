import { runApp } from '#runtime/run.ts';
import { installTemporalLog } from '#workflows/temporal-log.ts';
import { startWorker } from './app.ts';
import { readConfig } from './config.ts';
import { findLoopbackAddress } from './relay/task-counts.ts';

/**
 * The worker as a process: `node apps/worker/main.ts`, settings from the environment
 * (docs/configuration.md).
 */
await runApp({
  name: 'worker',
  readConfig,
  start: async (config, log) => {
    // A versioned worker counts its workflow tasks by the core's own metrics.
    const coreMetrics = config.version === null ? undefined : await findLoopbackAddress();
    installTemporalLog(log, coreMetrics);
    return startWorker(config, log, coreMetrics);
  },
});
